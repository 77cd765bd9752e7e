package mesh

import java.util

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.acl.AclOperation
import org.apache.kafka.common.errors.{
  ApiException, ClusterAuthorizationException, InvalidRequestException, UnsupportedVersionException
}
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.common.requests.{
  ConsumerGroupDescribeRequest, DescribeConfigsRequest, DescribeGroupsRequest,
  DescribeShareGroupOffsetsRequest, ListOffsetsRequest, OffsetFetchRequest, ProduceRequest,
  ShareGroupDescribeRequest, StreamsGroupDescribeRequest
}
import org.apache.kafka.common.resource.ResourceType

/**
 * Answers requests of clients that are above a bound. [[PatchKafka]] has Kafka ask before it handles one.
 *
 * Property of the JVM:
 *   mesh.request.described=<n>   topics and others whose settings a domain's request describes
 */
object BoundedRequests {
  private val msNs = 1000000L
  // a login of a domain has no right on the cluster; the controller logs each that it refuses
  private val ofAdministrators = Set(
    ApiKeys.ALTER_CLIENT_QUOTAS, ApiKeys.ALTER_PARTITION_REASSIGNMENTS, ApiKeys.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKeys.CREATE_ACLS, ApiKeys.DELETE_ACLS, ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKeys.ELECT_LEADERS,
    ApiKeys.UNREGISTER_BROKER, ApiKeys.UPDATE_FEATURES)
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
    fault.foreach { error =>
      try apis.requestHelper.sendErrorResponseMaybeThrottle(request, error) catch {
        // without what an answer is made from
        case _: RuntimeException => apis.requestChannel.closeConnection(request, util.Map.of())
      }
    }
    fault.nonEmpty
  }

  private def found(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] = {
    BoundedWork.charge(request.context.principal.getName, announced(apis, request))
    request.header.apiKey match {
      case kind if ofAdministrators(kind) && !BoundedWork.isOwn(request.context.principal.getName) =>
        Some(new ClusterAuthorizationException(s"$kind is for who administers the cluster"))
      case ApiKeys.PRODUCE =>
        BoundedAppends.fault(apis, request).orElse(BoundedProducers.fault(request))
      case ApiKeys.JOIN_GROUP | ApiKeys.SYNC_GROUP | ApiKeys.CONSUMER_GROUP_HEARTBEAT |
          ApiKeys.SHARE_GROUP_HEARTBEAT | ApiKeys.STREAMS_GROUP_HEARTBEAT =>
        BoundedPatterns.fault(request)
          .orElse(BoundedMembers.fault(request)).orElse(BoundedMembers.unreadable(request))
      case ApiKeys.LIST_TRANSACTIONS => BoundedPatterns.fault(request)
      case ApiKeys.DESCRIBE_CONFIGS => tooMany(request)
      case kind if groups.contains(kind) => repeated(groups(kind)(request))
      case ApiKeys.OFFSET_FETCH => repeated(groupsOfOffsets(request).map(_.groupId))
      case ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS =>
        repeated(request.body[DescribeShareGroupOffsetsRequest].data.groups.asScala.map(_.groupId).toSeq)
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
  private def announced(apis: KafkaApis, request: RequestChannel.Request): Long = request.header.apiKey match {
    case ApiKeys.LIST_OFFSETS =>
      // a time is looked for in all that an index does not tell; one that may not be asked for is not
      10 * msNs * request.body[ListOffsetsRequest].topics.asScala.iterator
        .filter(one => apis.metadataCache.contains(one.name) && sees(apis, request, one.name))
        .flatMap(one => one.partitions.asScala.filter(_.timestamp >= 0)
          .map(asked => new TopicPartition(one.name, asked.partitionIndex)))
        .count(apis.metadataCache.contains(_))
    case kind if groups.contains(kind) => 5 * msNs * groups(kind)(request).size
    case ApiKeys.DESCRIBE_CONFIGS => 4 * msNs * request.body[DescribeConfigsRequest].data.resources.size
    case kind if kind.forwardable => msNs / 25 * request.sizeInBytes
    case ApiKeys.PRODUCE => msNs / 50 * request.body[ProduceRequest].data.topicData.size
    // threads of coordinators do the work, whose time nobody measures
    case ApiKeys.OFFSET_FETCH =>
      val asksForAll = groupsOfOffsets(request).exists(_.topics == null)
      val most = if (asksForAll) BoundedOffsets.kept(request.context.principal.getName) else 0
      ofSize(request) + most * msNs / 100
    case ApiKeys.STREAMS_GROUP_HEARTBEAT => 3 * ofSize(request)
    case ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS | ApiKeys.DELETE_GROUPS | ApiKeys.FIND_COORDINATOR => ofSize(request)
    case ApiKeys.OFFSET_COMMIT | ApiKeys.TXN_OFFSET_COMMIT | ApiKeys.OFFSET_DELETE => ofSize(request) / 4
    case _ => 0
  }

  private def ofSize(request: RequestChannel.Request): Long = msNs / 1000 * request.sizeInBytes

  private def groupsOfOffsets(request: RequestChannel.Request) =
    request.body[OffsetFetchRequest].data.groups.asScala.toSeq

  private def sees(apis: KafkaApis, request: RequestChannel.Request, topic: String): Boolean =
    apis.authHelper.authorize(request.context, AclOperation.DESCRIBE, ResourceType.TOPIC, topic, false, false)

  /** The groups that a request asks Kafka to describe: their threads write all that they know of each. */
  private val groups: Map[ApiKeys, RequestChannel.Request => Seq[String]] = Map(
    ApiKeys.DESCRIBE_GROUPS -> (_.body[DescribeGroupsRequest].data.groups.asScala.toSeq),
    ApiKeys.CONSUMER_GROUP_DESCRIBE -> (_.body[ConsumerGroupDescribeRequest].data.groupIds.asScala.toSeq),
    ApiKeys.SHARE_GROUP_DESCRIBE -> (_.body[ShareGroupDescribeRequest].data.groupIds.asScala.toSeq),
    ApiKeys.STREAMS_GROUP_DESCRIBE -> (_.body[StreamsGroupDescribeRequest].data.groupIds.asScala.toSeq))

  private def repeated(names: Seq[String]): Option[ApiException] =
    if (names.distinct.size == names.size) None
    else Some(new InvalidRequestException("a request names a group more than once"))

  /** What a topic's settings take is a thousand times what it takes to ask for them. */
  private def tooMany(request: RequestChannel.Request): Option[ApiException] = {
    val asked = request.body[DescribeConfigsRequest].data.resources.size
    if (asked <= described || BoundedWork.isOwn(request.context.principal.getName)) None
    else Some(new InvalidRequestException(s"a request describes the settings of $described things at most"))
  }
}
