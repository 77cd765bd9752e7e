package mesh

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.common.requests.FetchRequest

/**
 * How fetches wait for records. One that waits was allowed when it came, and meanwhile its login's right may end.
 * (Sessions of consumers are not kept at all: `max.incremental.fetch.session.cache.slots`.) Whoever appends to a
 * partition looks through all that wait at it, each with all its partitions: that counts for whose fetches they are
 * ([[BoundedWork]]). [[PatchKafka]] has Kafka call these methods.
 *
 * Properties of the JVM:
 *   mesh.fetch.wait.ms=<n>   at most, whatever the client asks for
 *   mesh.fetch.waiting=<n>   partitions that the fetches of a domain wait at; one more does not wait
 */
object BoundedFetches {
  private val longest = Integer.getInteger("mesh.fetch.wait.ms", 2000).longValue
  private val most = Integer.getInteger("mesh.fetch.waiting", 50000).intValue
  private val owners = new ConcurrentHashMap[String, AtomicInteger]()
  private val waiting = new ConcurrentHashMap[RequestChannel.Request, Waiting]()

  private case class Waiting(all: AtomicInteger, partitions: Int)

  /** How long a fetch that asks for so long waits. */
  def bounded(asked: Long): Long = {
    val request = BoundedRequests.handling
    if (asked <= 0 || request == null || request.header.apiKey != ApiKeys.FETCH) math.min(asked, longest)
    else if (fits(request, partitions(request.body[FetchRequest]))) math.min(asked, longest)
    else 0
  }

  private def partitions(fetch: FetchRequest): Int = fetch.data.topics.asScala.iterator.map(_.partitions.size).sum

  private def fits(request: RequestChannel.Request, partitions: Int): Boolean = {
    val owner = BoundedWork.owner(request.context.principal.getName)
    val all = owners.computeIfAbsent(owner, _ => new AtomicInteger)
    val fits = all.addAndGet(partitions) <= most
    if (fits) waiting.put(request, Waiting(all, partitions)) else all.addAndGet(-partitions)
    fits
  }

  /** The answer of the request was made: it waits no more. */
  def ends(request: RequestChannel.Request): Unit = {
    val done = waiting.remove(request)
    if (done != null) done.all.addAndGet(-done.partitions)
  }
}
