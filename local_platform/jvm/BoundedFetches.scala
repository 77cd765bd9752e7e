package mesh

import kafka.network.RequestChannel
import org.apache.kafka.common.errors.{ApiException, PolicyViolationException}
import org.apache.kafka.common.requests.ShareFetchRequest
import org.apache.kafka.server.share.session.ShareSession

/**
 * How long a fetch waits for records: one that waits was allowed when it came, and meanwhile its login's
 * right may end. And how many partitions a member of a group that shares fetches from: Kafka keeps them in
 * a session, also those that are not there or that the login may not read. (Sessions of consumers are not
 * kept at all: `max.incremental.fetch.session.cache.slots`.)
 *
 * Properties of the JVM:
 *   mesh.fetch.wait.ms=<n>      at most, whatever the client asks for
 *   mesh.share.partitions=<n>   of a request, and of a session before one is added
 */
object BoundedFetches {
  private val longest = Integer.getInteger("mesh.fetch.wait.ms", 2000).longValue
  private val most = Integer.getInteger("mesh.share.partitions", 1000).intValue

  /** How long a fetch that asks for so long waits. */
  def bounded(asked: Long): Long = math.min(asked, longest)

  /** Why the request of a member of a group that shares is to be refused. */
  def fault(request: RequestChannel.Request): Option[ApiException] = {
    val data = request.body[ShareFetchRequest].data
    var found = 0L
    data.topics.forEach(found += _.partitions.size)
    data.forgottenTopicsData.forEach(found += _.partitions.size)
    if (found > most) Some(refusal) else None
  }

  /** Ends with PolicyViolationException where a session has too many. */
  def room(session: ShareSession): Unit = if (session.size > most) throw refusal

  private def refusal: ApiException = new PolicyViolationException(
    s"a member of a group that shares fetches from more than $most partitions")
}
