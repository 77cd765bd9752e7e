package mesh

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.{ApiException, InvalidRegularExpression, PolicyViolationException}
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.common.requests.{ConsumerGroupHeartbeatRequest, ListTransactionsRequest}

/**
 * What a pattern of a request may cost. Kafka compiles it to instructions, those that it repeats as often
 * as it says: `(((a{1000}){1000}){1000})` are a thousand million.
 *
 * Property of the JVM:
 *   mesh.pattern.characters=<n>   of a pattern
 */
object BoundedPatterns {
  private val longest = Integer.getInteger("mesh.pattern.characters", 249).intValue
  private val repeated = java.util.regex.Pattern.compile("\\{\\s*\\d")

  /** Why the request is to be refused. */
  def fault(request: RequestChannel.Request): Option[ApiException] = request.header.apiKey match {
    case ApiKeys.CONSUMER_GROUP_HEARTBEAT =>
      fault(request.body[ConsumerGroupHeartbeatRequest].data.subscribedTopicRegex)
        .map(new InvalidRegularExpression(_))
    case ApiKeys.LIST_TRANSACTIONS =>
      fault(request.body[ListTransactionsRequest].data.transactionalIdPattern)
        .map(new PolicyViolationException(_))
    case _ => None
  }

  /** Whether a member subscribes to no pattern. */
  def isEmpty(heartbeat: ConsumerGroupHeartbeatRequest): Boolean = {
    val pattern = heartbeat.data.subscribedTopicRegex
    pattern == null || pattern.isEmpty
  }

  /** What it takes to look for a member's pattern in the names of all topics, ns: its characters times theirs. */
  def costNs(apis: KafkaApis, heartbeat: ConsumerGroupHeartbeatRequest): Long = {
    val characters = apis.metadataCache.getAllTopics.asScala.iterator.map(_.length.toLong).sum
    25L * heartbeat.data.subscribedTopicRegex.length * characters
  }

  private def fault(pattern: String): Option[String] =
    if (pattern == null) None
    else if (pattern.length > longest) Some(s"a pattern has $longest characters at most")
    else if (repeated.matcher(pattern).find) Some("a pattern repeats nothing by number, as in a{2}")
    else None
}
