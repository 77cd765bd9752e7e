package mesh

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.{
  ApiException, InvalidRequestException, UnsupportedVersionException
}
import org.apache.kafka.common.protocol.ApiKeys

/** Answers requests of clients that are above a bound. [[PatchKafka]] has Kafka ask before it handles one. */
object BoundedRequests {

  /** Whether the request was answered with an error, and is not to be handled. */
  def refuses(apis: KafkaApis, request: RequestChannel.Request): Boolean = {
    BoundedBatches.begin(request.context.principal.toString)
    val fault =
      try found(apis, request) catch {
        case unreadable: RuntimeException =>
          Some(new InvalidRequestException(s"the request cannot be read: ${unreadable.getMessage}"))
      }
    fault.foreach(apis.requestHelper.sendErrorResponseMaybeThrottle(request, _))
    fault.nonEmpty
  }

  private def found(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] =
    request.header.apiKey match {
      case ApiKeys.PRODUCE =>
        BoundedAppends.fault(apis, request).orElse(BoundedProducers.fault(request))
      case ApiKeys.JOIN_GROUP | ApiKeys.SYNC_GROUP | ApiKeys.CONSUMER_GROUP_HEARTBEAT |
          ApiKeys.SHARE_GROUP_HEARTBEAT | ApiKeys.STREAMS_GROUP_HEARTBEAT =>
        BoundedPatterns.fault(request).orElse(BoundedMembers.fault(request))
      case ApiKeys.LIST_TRANSACTIONS => BoundedPatterns.fault(request)
      case ApiKeys.SHARE_FETCH => BoundedFetches.fault(request)
      // nobody receives it, and what clients say of themselves is kept for each of their ids
      case ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS | ApiKeys.PUSH_TELEMETRY =>
        Some(new UnsupportedVersionException("this broker takes no telemetry"))
      case _ => None
    }
}
