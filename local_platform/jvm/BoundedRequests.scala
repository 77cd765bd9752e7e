package mesh

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.ApiException
import org.apache.kafka.common.protocol.ApiKeys

/** Answers requests of clients that are above a bound. [[PatchKafka]] has Kafka ask before it handles one. */
object BoundedRequests {

  /** Whether the request was answered with an error, and is not to be handled. */
  def refuses(apis: KafkaApis, request: RequestChannel.Request): Boolean = {
    val fault = found(apis, request)
    fault.foreach(apis.requestHelper.sendErrorResponseMaybeThrottle(request, _))
    fault.nonEmpty
  }

  private def found(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] =
    request.header.apiKey match {
      case ApiKeys.PRODUCE =>
        BoundedAppends.fault(apis, request).orElse(BoundedProducers.fault(request))
      case ApiKeys.JOIN_GROUP | ApiKeys.SYNC_GROUP | ApiKeys.CONSUMER_GROUP_HEARTBEAT |
          ApiKeys.SHARE_GROUP_HEARTBEAT | ApiKeys.STREAMS_GROUP_HEARTBEAT =>
        BoundedMembers.fault(request)
      case _ => None
    }
}
