package mesh

import java.util

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.{
  ApiException, InvalidRequestException, UnsupportedVersionException
}
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.common.requests.{DescribeConfigsRequest, ListOffsetsRequest}

/**
 * Answers requests of clients that are above a bound. [[PatchKafka]] has Kafka ask before it handles one.
 *
 * Property of the JVM:
 *   mesh.request.described=<n>   topics and others whose settings a domain's request describes
 */
object BoundedRequests {
  private val msNs = 1000000L
  private val described = Integer.getInteger("mesh.request.described", 250).intValue

  /** Whether the request was answered with an error or its connection closed, and is not to be handled. */
  def refuses(apis: KafkaApis, request: RequestChannel.Request): Boolean =
    if (BoundedWork.refuses(request)) {
      apis.requestChannel.closeConnection(request, util.Map.of())
      true
    } else {
      val refused = answers(apis, request)
      if (refused) BoundedWork.ends()
      refused
    }

  private def answers(apis: KafkaApis, request: RequestChannel.Request): Boolean = {
    BoundedBatches.begin(request.context.principal.toString)
    val fault =
      try found(apis, request) catch {
        case unreadable: RuntimeException =>
          Some(new InvalidRequestException(s"the request cannot be read: ${unreadable.getMessage}"))
      }
    fault.foreach(apis.requestHelper.sendErrorResponseMaybeThrottle(request, _))
    fault.nonEmpty
  }

  private def found(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] = {
    BoundedWork.charge(request.context.principal.getName, announced(request))
    request.header.apiKey match {
      case ApiKeys.PRODUCE =>
        BoundedAppends.fault(apis, request).orElse(BoundedProducers.fault(request))
      case ApiKeys.JOIN_GROUP | ApiKeys.SYNC_GROUP | ApiKeys.CONSUMER_GROUP_HEARTBEAT |
          ApiKeys.SHARE_GROUP_HEARTBEAT | ApiKeys.STREAMS_GROUP_HEARTBEAT =>
        BoundedPatterns.fault(request).orElse(BoundedMembers.fault(request))
      case ApiKeys.LIST_TRANSACTIONS => BoundedPatterns.fault(request)
      case ApiKeys.DESCRIBE_CONFIGS => tooMany(request)
      case ApiKeys.SHARE_FETCH => BoundedFetches.fault(request)
      // nobody receives it, and what clients say of themselves is kept for each of their ids
      case ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS | ApiKeys.PUSH_TELEMETRY =>
        Some(new UnsupportedVersionException("this broker takes no telemetry"))
      case _ => None
    }
  }

  /**
   * What a request is charged before it is handled, ns: several that come at once are all begun before the first
   * one has shown what it takes. The controller handles what is forwarded, for all logins one after the other.
   */
  private def announced(request: RequestChannel.Request): Long = request.header.apiKey match {
    case ApiKeys.LIST_OFFSETS =>
      // a time is looked for in all that an index does not tell
      10 * msNs * request.body[ListOffsetsRequest].topics.asScala.iterator
        .flatMap(_.partitions.asScala).count(_.timestamp >= 0)
    case ApiKeys.DESCRIBE_CONFIGS => 4 * msNs * request.body[DescribeConfigsRequest].data.resources.size
    case kind if kind.forwardable => msNs / 25 * request.sizeInBytes
    case _ => 0
  }

  /** What a topic's settings take is a thousand times what it takes to ask for them. */
  private def tooMany(request: RequestChannel.Request): Option[ApiException] = {
    val asked = request.body[DescribeConfigsRequest].data.resources.size
    if (asked <= described || BoundedWork.isOwn(request.context.principal.getName)) None
    else Some(new InvalidRequestException(s"a request describes the settings of $described things at most"))
  }
}
