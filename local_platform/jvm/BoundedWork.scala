package mesh

import java.io.IOException
import java.lang.management.ManagementFactory
import java.util
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import kafka.network.RequestChannel
import org.apache.kafka.common.errors.InvalidRequestException
import org.apache.kafka.common.protocol.{ApiKeys, MessageSizeAccumulator, ObjectSerializationCache}
import org.apache.kafka.common.requests.AbstractResponse
import org.slf4j.LoggerFactory

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
 *   mesh.work.expired.ms=<n>   of the time of the one thread that reads for all fetches whose time is over
 *   mesh.work.unread=<n>    bytes of answers that it has not read, records apart: those lie in files. One
 *                           more closes its connection, unless there is no other
 *   mesh.work.answer=<n>    bytes of one answer, which else closes its connection; beside records a 32nd of it
 */
object BoundedWork {
  private val ms = Integer.getInteger("mesh.work.ms", 1000).intValue
  private val lateNs = Integer.getInteger("mesh.work.late.ms", 5000).longValue * 1000000L
  private val expiredMs = Integer.getInteger("mesh.work.expired.ms", 200).intValue
  private val mostUnread = Integer.getInteger("mesh.work.unread", 33554432).longValue
  private val mostOfAnswer = Integer.getInteger("mesh.work.answer", 33554432).intValue
  private val secondNs = 1000000000L
  private val reader = "executor-Fetch"
  private val own = Set("admin", "ANONYMOUS", "connect", "mesh", "registry")
  private val log = LoggerFactory.getLogger("mesh.BoundedWork")
  private val threads = ManagementFactory.getThreadMXBean
  private val domains = new ConcurrentHashMap[String, Work]
  // the answers that are on their way, by connection
  private val unread = new ConcurrentHashMap[String, Answer]
  private val handled = new ThreadLocal[Handled]
  private val visit = new ThreadLocal[Visit]
  private val receiving = ThreadLocal.withInitial[Long](() => 0L)

  private class Work {
    val spent, expired = new Spent
    val unread = new AtomicLong
    val denied = new Pause
  }

  private case class Answer(work: Work, bytes: Long)

  private class Handled(val work: Work, var began: Long)

  private class Visit(val work: Work, val began: Long) {
    val beganAt: Long = System.nanoTime
    // one that completes is looked at within itself
    var depth = 1
  }

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

  /** The thread begins to receive from a connection of the login; IOException where its domain is above a bound. */
  def receives(login: String): Unit = of(login).foreach { work =>
    // Kafka closes the connection without a line of its own
    if (isAbove(work)) throw new IOException(refusal(login).getMessage)
    receiving.set(threads.getCurrentThreadCpuTime)
  }

  /** It has received what there was. */
  def received(login: String): Unit = of(login).foreach(_.spent.add(cost(receiving.get)))

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
    handled.set(of(request.context.principal.getName).map(new Handled(_, threads.getCurrentThreadCpuTime)).orNull)

  /** Whose request the thread handles; null for one of the platform and the mesh. */
  def handling: AnyRef = {
    val found = handled.get
    if (found == null) null else found.work
  }

  /**
   * Whether nobody looks at a fetch that waits, since its owner's domain is above a bound: it waits until its time is
   * over.
   */
  def leaves(owner: AnyRef): Boolean = owner match {
    case work: Work => isAbove(work)
    case _ => false
  }

  /**
   * Whether such a fetch was answered without records, or one of a domain that has had its share of the thread: one
   * thread reads for all whose time is over, and can never take more of a processor than a domain may.
   */
  def answers(owner: AnyRef, answer: Seq[Nothing] => Unit): Boolean = {
    val left = leaves(owner) || (owner match {
      case work: Work => readsForAll && !work.expired.takes(0, secondNs)
      case _ => false
    })
    if (left) answer(Nil)
    left
  }

  private def readsForAll: Boolean = Thread.currentThread.getName.startsWith(reader)

  /** The thread looks at a fetch that waits, or answers it: that counts for whose fetch it is, not for who appends. */
  def looks(owner: AnyRef): Unit = owner match {
    case work: Work =>
      val outer = visit.get
      if (outer == null) visit.set(new Visit(work, threads.getCurrentThreadCpuTime)) else outer.depth += 1
    case _ =>
  }

  /** It has looked at it. */
  def looked(owner: AnyRef): Unit = {
    val done = if (owner == null) null else visit.get
    if (done != null) {
      done.depth -= 1
      if (done.depth <= 0) {
        visit.remove()
        done.work.spent.add(cost(done.began))
        if (readsForAll) done.work.expired.add((System.nanoTime - done.beganAt) * 1000 / expiredMs)
        val mine = handled.get
        if (mine != null) mine.began += threads.getCurrentThreadCpuTime - done.began
      }
    }
  }

  /** The thread has handled the request that it began. */
  def ends(): Unit = {
    visit.remove()
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
    // what the controller answers goes to a broker, for all logins by one connection
    !request.isForwarded && of(request.context.principal.getName).exists { work =>
      BoundedFetches.ends(request)
      val size = new MessageSizeAccumulator
      val asked = request.header.apiVersion
      // versions are asked for by who does not know them, too
      val version = if (request.header.apiKey.isVersionSupported(asked)) asked else 0.toShort
      body.data.addSize(size, new ObjectSerializationCache, version)
      val bytes = size.sizeExcludingZeroCopy
      val most = if (inFiles(request.header.apiKey)) mostOfAnswer / 32 else mostOfAnswer
      // above two thousand million it is negative
      val above = bytes < 0 || bytes > most || !reserves(work, request.context.connectionId, bytes)
      if (above) {
        if (work.denied.isOver()) log.warn("an answer of {} bytes to {} was too much: its connection is closed",
          bytes, request.context.principal)
        channel.closeConnection(request, util.Map.of())
      }
      above
    }

  private def reserves(work: Work, connection: String, bytes: Int): Boolean = {
    forget(connection)
    var before = work.unread.get
    def fits = before == 0 || before + bytes <= mostUnread
    while (fits && !work.unread.compareAndSet(before, before + bytes)) before = work.unread.get
    if (fits) unread.put(connection, Answer(work, bytes))
    fits
  }

  /** It was read, or its connection has ended. */
  def sent(request: RequestChannel.Request): Unit = {
    BoundedConnections.answered(request.context.connectionId)
    forget(request.context.connectionId)
  }

  /** Nothing is unread of a connection any more. */
  def forget(connection: String): Unit = {
    val answer = unread.remove(connection)
    if (answer != null) answer.work.unread.addAndGet(-answer.bytes)
  }

  private def inFiles(kind: ApiKeys): Boolean = kind == ApiKeys.FETCH || kind == ApiKeys.SHARE_FETCH

  private def isAbove(work: Work): Boolean = !work.spent.takes(0, lateNs) || work.unread.get > mostUnread

  private def cost(began: Long): Long = (threads.getCurrentThreadCpuTime - began) * 1000 / ms

  private def refusal(login: String) = new InvalidRequestException(
    s"the logins of ${domain(login)} keep a processor busy for more than $ms ms a second, or leave " +
      s"more than $mostUnread bytes of answers unread")
}
