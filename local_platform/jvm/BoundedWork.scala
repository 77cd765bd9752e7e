package mesh

import java.lang.management.ManagementFactory
import java.util
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import kafka.network.RequestChannel
import org.apache.kafka.common.errors.InvalidRequestException
import org.apache.kafka.common.protocol.{ApiKeys, MessageSizeAccumulator, ObjectSerializationCache}
import org.apache.kafka.common.requests.AbstractResponse

/**
 * How long the requests of a domain may keep a broker's processors, and how much its clients may leave
 * unread. Kafka's own quotas delay a connection once its request was handled: who comes by many
 * connections has as many handled. Here all logins of a domain count together, `<domain>` and
 * `<domain>.<name>`, and above a bound the next request closes its connection before it is read.
 * [[PatchKafka]] has Kafka call these methods.
 *
 * Properties of the JVM:
 *   mesh.work.ms=<n>        of a processor's time that a domain may take each second
 *   mesh.work.late.ms=<n>   how far ahead of that it may be
 *   mesh.work.unread=<n>    bytes of answers that it has not read, records apart: those lie in files. One
 *                           more closes its connection, unless there is no other
 *   mesh.work.answer=<n>    bytes of one answer, which else closes its connection; beside records a 32nd of it
 */
object BoundedWork {
  private val ms = Integer.getInteger("mesh.work.ms", 1000).intValue
  private val lateNs = Integer.getInteger("mesh.work.late.ms", 5000).longValue * 1000000L
  private val mostUnread = Integer.getInteger("mesh.work.unread", 33554432).longValue
  private val mostOfAnswer = Integer.getInteger("mesh.work.answer", 33554432).intValue
  private val own = Set("admin", "ANONYMOUS", "connect", "mesh", "registry")
  private val threads = ManagementFactory.getThreadMXBean
  private val domains = new ConcurrentHashMap[String, Work]
  // the answers that are on their way
  private val unread = new ConcurrentHashMap[RequestChannel.Request, Answer]
  private val handled = new ThreadLocal[Handled]

  private class Work {
    val spent = new Spent
    val unread = new AtomicLong
  }

  private case class Answer(work: Work, bytes: Long)

  private case class Handled(work: Work, began: Long)

  /** Whether a login is one of the platform and the mesh, and of no domain. */
  def isOwn(login: String): Boolean = own.contains(domain(login))

  /** Whose bounds a login counts to: its domain's, or its own where it is none of a domain. */
  def owner(login: String): String = if (isOwn(login)) login else domain(login)

  private def domain(login: String): String = login.takeWhile(_ != '.')

  private def of(login: String): Option[Work] =
    if (isOwn(login)) None else Some(domains.computeIfAbsent(domain(login), _ => new Work))

  /** What `read` makes of a request; InvalidRequestException where the login's domain is above a bound. */
  def reading[A](login: String)(read: => A): A = of(login) match {
    case None => read
    case Some(work) =>
      if (isAbove(work)) throw refusal(login)
      val began = threads.getCurrentThreadCpuTime
      try read finally work.spent.add(cost(began))
  }

  /** A request of the login takes so long, ns, beside what it is seen to take. */
  def charge(login: String, costNs: Long): Unit =
    if (costNs > 0) of(login).foreach(_.spent.add(costNs * 1000 / ms))

  /** Whether the domain of the login whose request is to be handled is above a bound; else it begins. */
  def refuses(request: RequestChannel.Request): Boolean = {
    val above = of(request.context.principal.getName).exists(isAbove)
    if (above) handled.remove() else begins(request)
    above
  }

  /** The thread begins with a request, or goes on with it. */
  def begins(request: RequestChannel.Request): Unit =
    handled.set(of(request.context.principal.getName).map(Handled(_, threads.getCurrentThreadCpuTime)).orNull)

  /** The thread has handled the request that it began. */
  def ends(): Unit = {
    val done = handled.get
    if (done != null) {
      done.work.spent.add(cost(done.began))
      handled.remove()
    }
  }

  /**
   * Whether an answer is larger than it may be, or too much beside others that are unread, and its connection
   * was closed instead; else it counts from now on, before room is made for it. Room is made for it twice, and one
   * that is larger than the memory for buffers can never be sent, though Kafka tries for ever.
   */
  def closes(channel: RequestChannel, request: RequestChannel.Request, body: AbstractResponse): Boolean =
    of(request.context.principal.getName).exists { work =>
      BoundedFetches.ends(request)
      val size = new MessageSizeAccumulator
      body.data.addSize(size, new ObjectSerializationCache, request.header.apiVersion)
      val bytes = size.sizeExcludingZeroCopy
      val most = if (inFiles(request.header.apiKey)) mostOfAnswer / 32 else mostOfAnswer
      // above two thousand million it is negative
      val above = bytes < 0 || bytes > most || !reserves(work, request, bytes)
      if (above) channel.closeConnection(request, util.Map.of())
      above
    }

  private def reserves(work: Work, request: RequestChannel.Request, bytes: Int): Boolean = {
    val before = unread.putIfAbsent(request, Answer(work, bytes))
    val all = if (before == null) work.unread.addAndGet(bytes) else 0
    val fits = all <= mostUnread || all == bytes
    if (!fits) forget(request)
    fits
  }

  /** It was read, or its connection has ended. */
  def sent(request: RequestChannel.Request): Unit = {
    BoundedConnections.answered(request.context.connectionId)
    forget(request)
  }

  private def forget(request: RequestChannel.Request): Unit = {
    val answer = unread.remove(request)
    if (answer != null) answer.work.unread.addAndGet(-answer.bytes)
  }

  private def inFiles(kind: ApiKeys): Boolean = kind == ApiKeys.FETCH || kind == ApiKeys.SHARE_FETCH

  private def isAbove(work: Work): Boolean = !work.spent.takes(0, lateNs) || work.unread.get > mostUnread

  private def cost(began: Long): Long = (threads.getCurrentThreadCpuTime - began) * 1000 / ms

  private def refusal(login: String) = new InvalidRequestException(
    s"the logins of ${domain(login)} keep a processor busy for more than $ms ms a second, or leave " +
      s"more than $mostUnread bytes of answers unread")
}
