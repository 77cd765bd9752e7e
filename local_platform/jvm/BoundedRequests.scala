package mesh

import java.util

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import kafka.server.{ApiRequestHandler, ControllerApis, KafkaApis}
import org.apache.kafka.clients.admin.AlterConfigOp
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.acl.AclOperation
import org.apache.kafka.common.config.ConfigResource
import org.apache.kafka.common.errors.{
  ApiException, ClusterAuthorizationException, InvalidRequestException, UnsupportedVersionException
}
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.common.requests.{
  AddOffsetsToTxnRequest, AlterConfigsRequest, ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, DeleteGroupsRequest,
  DescribeConfigsRequest, DescribeGroupsRequest, IncrementalAlterConfigsRequest, JoinGroupRequest, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest,
  ProduceRequest, StreamsGroupDescribeRequest, SyncGroupRequest, TxnOffsetCommitRequest
}
import org.apache.kafka.common.resource.ResourceType
import org.apache.kafka.server.common.RequestLocal
import org.slf4j.LoggerFactory

/**
 * Answers requests of clients that are above a bound. [[PatchKafka]] has Kafka ask before it handles one.
 *
 * Property of the JVM:
 *   mesh.request.described=<n>   topics and others whose settings a domain's request describes
 */
object BoundedRequests {
  private val msNs = 1000000L
  private val usNs = 1000L
  // what clients of a domain use
  private val served = Set(
    ApiKeys.ADD_OFFSETS_TO_TXN, ApiKeys.ADD_PARTITIONS_TO_TXN, ApiKeys.ALTER_CONFIGS, ApiKeys.API_VERSIONS,
    ApiKeys.CONSUMER_GROUP_DESCRIBE, ApiKeys.CONSUMER_GROUP_HEARTBEAT, ApiKeys.CREATE_PARTITIONS,
    ApiKeys.CREATE_TOPICS, ApiKeys.DELETE_GROUPS, ApiKeys.DELETE_RECORDS, ApiKeys.DELETE_TOPICS,
    ApiKeys.DESCRIBE_ACLS, ApiKeys.DESCRIBE_CLUSTER, ApiKeys.DESCRIBE_CONFIGS, ApiKeys.DESCRIBE_GROUPS,
    ApiKeys.DESCRIBE_PRODUCERS, ApiKeys.DESCRIBE_TOPIC_PARTITIONS, ApiKeys.DESCRIBE_TRANSACTIONS,
    ApiKeys.END_TXN, ApiKeys.FETCH, ApiKeys.FIND_COORDINATOR, ApiKeys.HEARTBEAT,
    ApiKeys.INCREMENTAL_ALTER_CONFIGS, ApiKeys.INIT_PRODUCER_ID, ApiKeys.JOIN_GROUP, ApiKeys.LEAVE_GROUP,
    ApiKeys.LIST_GROUPS, ApiKeys.LIST_OFFSETS, ApiKeys.LIST_TRANSACTIONS, ApiKeys.METADATA,
    ApiKeys.OFFSET_COMMIT, ApiKeys.OFFSET_DELETE, ApiKeys.OFFSET_FETCH, ApiKeys.OFFSET_FOR_LEADER_EPOCH,
    ApiKeys.PRODUCE, ApiKeys.SASL_AUTHENTICATE, ApiKeys.SASL_HANDSHAKE, ApiKeys.STREAMS_GROUP_DESCRIBE,
    ApiKeys.STREAMS_GROUP_HEARTBEAT, ApiKeys.SYNC_GROUP, ApiKeys.TXN_OFFSET_COMMIT)
  private val described = Integer.getInteger("mesh.request.described", 250).intValue
  private val longestName = "-" * 249
  private val admin = "admin"
  private val topic = ConfigResource.Type.TOPIC.id
  private val current = new ThreadLocal[RequestChannel.Request]
  private val log = LoggerFactory.getLogger("mesh.BoundedRequests")

  /**
   * In place of how a handler begins with a request: the connection of one that fails, and whose failure cannot be
   * answered either, is closed. Kafka keeps it, and never answers.
   */
  def handle(apis: ApiRequestHandler, request: RequestChannel.Request, local: RequestLocal): Unit =
    try apis.handle(request, local) catch {
      case error: RuntimeException =>
        log.error("{} of {} cannot be answered: its connection is closed",
          request.header.apiKey, request.context.principal, error)
        apis match {
          case broker: KafkaApis =>
            broker.requestChannel.closeConnection(request, util.Map.of())
            ends(broker, local)
          case controller: ControllerApis => controller.requestChannel.closeConnection(request, util.Map.of())
        }
      case error: Throwable =>
        // as for want of memory: the handler is free again, and what it does next is not of this request
        try apis match {
          case broker: KafkaApis => ends(broker, local)
          case _ => leaves()
        } finally throw error
    }

  /** Whether the request waits, was answered with an error, or its connection closed, and is not handled now. */
  def refuses(apis: KafkaApis, request: RequestChannel.Request, local: RequestLocal): Boolean =
    !BoundedHandlers.begins(apis, request) || {
      val isAbove = BoundedWork.refuses(request)
      if (isAbove) apis.requestChannel.closeConnection(request, util.Map.of())
      else begins(request)
      val refused = isAbove || answers(apis, request)
      if (refused) ends(apis, local)
      refused
    }

  /** The handler is done with the request that it began. */
  def ends(apis: KafkaApis, local: RequestLocal): Unit = {
    leaves()
    BoundedHandlers.ends(apis, local)
  }

  /** The request of a domain that the thread handles; null for none. */
  def handling: RequestChannel.Request = current.get

  /**
   * In place of what a handler does once others have answered for a request, as before records of a transaction are
   * appended: whichever thread does it, it counts for the request, and occupies one of its domain's handlers.
   */
  def later[A](callback: (RequestLocal, A) => Unit): (RequestLocal, A) => Unit = {
    val request = current.get
    if (request == null) callback
    else { (local, answer) =>
      val outer = current.get
      if (outer eq request) callback(local, answer)
      else if (outer == null) BoundedHandlers.goesOn(request, local)(goesOn(request, _, callback, answer))
      else {
        // within the handling of another one, whose handler it is
        resume(request)
        try callback(local, answer) finally {
          leaves()
          resume(outer)
        }
      }
    }
  }

  private def goesOn[A](
      request: RequestChannel.Request, local: RequestLocal, callback: (RequestLocal, A) => Unit, answer: A): Unit =
    // hundreds may have been begun before the first one showed what it takes
    if (BoundedWork.refuses(request)) BoundedHandlers.closes(request)
    else {
      begins(request)
      try callback(local, answer) catch {
        case error: RuntimeException =>
          log.error("{} of {} cannot be answered: its connection is closed",
            request.header.apiKey, request.context.principal, error)
          BoundedHandlers.closes(request)
      } finally leaves()
    }

  private def resume(request: RequestChannel.Request): Unit = {
    BoundedWork.begins(request)
    begins(request)
  }

  private def begins(request: RequestChannel.Request): Unit = {
    if (BoundedWork.isOwn(request.context.principal.getName)) current.remove() else current.set(request)
    BoundedBatches.begin(request.context.principal.getName)
  }

  private def leaves(): Unit = {
    BoundedWork.ends()
    BoundedBatches.ends()
    current.remove()
  }

  private def answers(apis: KafkaApis, request: RequestChannel.Request): Boolean = {
    val fault =
      try found(apis, request) catch {
        case unreadable: RuntimeException =>
          Some(new InvalidRequestException(s"the request cannot be read: ${unreadable.getMessage}"))
      }
    fault.foreach(apis.requestHelper.sendErrorResponseMaybeThrottle(request, _))
    fault.nonEmpty
  }

  private def found(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] = {
    BoundedWork.charge(request.context.principal.getName, announced(apis, request))
    request.header.apiKey match {
      case kind if !served(kind) && !BoundedWork.isOwn(request.context.principal.getName) => Some(unserved(kind))
      case ApiKeys.PRODUCE =>
        BoundedAppends.fault(apis, request).orElse(BoundedProducers.fault(request))
      case ApiKeys.ADD_PARTITIONS_TO_TXN => BoundedProducers.added(request)
      case ApiKeys.ADD_OFFSETS_TO_TXN =>
        val data = request.body[AddOffsetsToTxnRequest].data
        BoundedProducers.committed(request, data.transactionalId, data.groupId)
      case ApiKeys.TXN_OFFSET_COMMIT =>
        val data = request.body[TxnOffsetCommitRequest].data
        BoundedProducers.committed(request, data.transactionalId, data.groupId)
      case ApiKeys.STREAMS_GROUP_HEARTBEAT =>
        BoundedMembers.fault(request).orElse(BoundedPartitions.full(apis, request))
      case ApiKeys.JOIN_GROUP | ApiKeys.SYNC_GROUP | ApiKeys.CONSUMER_GROUP_HEARTBEAT =>
        BoundedPatterns.fault(request)
          .orElse(BoundedMembers.fault(request)).orElse(BoundedMembers.unreadable(request))
      case ApiKeys.CREATE_TOPICS | ApiKeys.CREATE_PARTITIONS => BoundedPartitions.fault(apis, request)
      case ApiKeys.LIST_TRANSACTIONS => BoundedPatterns.fault(request)
      case ApiKeys.ALTER_CONFIGS =>
        ofOthers(request, request.body[AlterConfigsRequest].data.resources.asScala.map(_.resourceType))
      case ApiKeys.INCREMENTAL_ALTER_CONFIGS =>
        val asked = request.body[IncrementalAlterConfigsRequest].data.resources.asScala
        ofOthers(request, asked.map(_.resourceType)).orElse(
          unknown(asked.flatMap(_.configs.asScala.map(_.configOperation))))
      case ApiKeys.DESCRIBE_CONFIGS => tooMany(request)
      case kind if groups.contains(kind) => repeated(groups(kind)(request))
      case ApiKeys.OFFSET_FETCH => repeated(groupsOfOffsets(request).map(_.groupId))
      case ApiKeys.DELETE_GROUPS => repeated(request.body[DeleteGroupsRequest].data.groupsNames.asScala.toSeq)
      case _ => None
    }
  }

  /**
   * Why settings of others than topics are not changed. A broker reads what those of itself refer to, by providers that
   * the request names, before the controller asks who may: any login was answered with any file of its account.
   */
  private def ofOthers(request: RequestChannel.Request, kinds: Iterable[Byte]): Option[ApiException] =
    if (request.context.principal.getName == admin || kinds.forall(_ == topic)) None
    else Some(new ClusterAuthorizationException("settings of others than topics are for who administers the cluster"))

  /** Why a change is refused that is none that there is: over one, the controller gives its leadership up. */
  private def unknown(operations: Iterable[Byte]): Option[ApiException] =
    operations.find(AlterConfigOp.OpType.forId(_) == null)
      .map(one => new InvalidRequestException(s"there is no change of a setting $one"))

  /**
   * Why a kind that clients of domains have no use for is refused. A login of a domain has no right on the cluster,
   * and the controller logs each that it refuses. Nobody receives telemetry, and what clients say of themselves is
   * kept for each of their ids. Groups that share cost the heap with each partition, and never expire.
   */
  private def unserved(kind: ApiKeys): ApiException =
    if (kind.name.contains("Share") || kind.name.contains("Telemetry"))
      new UnsupportedVersionException(s"this broker serves no $kind to domains")
    else new ClusterAuthorizationException(s"$kind is for who administers the cluster")

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
    // all that there are, in the threads that care for all groups
    case ApiKeys.LIST_GROUPS => 10 * msNs
    case ApiKeys.DESCRIBE_CONFIGS => 4 * msNs * request.body[DescribeConfigsRequest].data.resources.size
    case kind if kind.forwardable => msNs / 25 * request.sizeInBytes
    case ApiKeys.PRODUCE => msNs / 50 * request.body[ProduceRequest].data.topicData.size
    // threads of coordinators do the work, whose time nobody measures; each partition has a marker written
    case ApiKeys.ADD_PARTITIONS_TO_TXN => 50 * usNs * BoundedProducers.partitions(request).size
    case ApiKeys.OFFSET_FETCH =>
      val asksForAll = groupsOfOffsets(request).exists(_.topics == null)
      val most = if (asksForAll) BoundedOffsets.kept(request.context.principal.getName) else 0
      ofSize(request) + most * msNs / 100
    case ApiKeys.STREAMS_GROUP_HEARTBEAT => 3 * ofSize(request)
    // a record for each offset of theirs
    case ApiKeys.DELETE_GROUPS =>
      ofSize(request) + BoundedOffsets.kept(request.context.principal.getName) * msNs / 100
    case ApiKeys.FIND_COORDINATOR => ofSize(request)
    case ApiKeys.CONSUMER_GROUP_HEARTBEAT =>
      val heartbeat = request.body[ConsumerGroupHeartbeatRequest]
      // one of two threads looks for it in the names of all topics
      val ofPattern = if (BoundedPatterns.isEmpty(heartbeat)) 0 else 10 * msNs + BoundedPatterns.costNs(apis, heartbeat)
      ofPattern + 20 * usNs * BoundedMembers.topics(heartbeat)
    case ApiKeys.JOIN_GROUP => 20 * usNs * request.body[JoinGroupRequest].data.protocols.size
    case ApiKeys.SYNC_GROUP => 5 * usNs * request.body[SyncGroupRequest].data.assignments.size
    case ApiKeys.OFFSET_COMMIT =>
      val data = request.body[OffsetCommitRequest].data
      ofWritten(data.groupId, data.topics.asScala.map(one => (nameOf(one.name), one.partitions.size)))
    case ApiKeys.TXN_OFFSET_COMMIT =>
      val data = request.body[TxnOffsetCommitRequest].data
      ofWritten(data.groupId, data.topics.asScala.map(one => (one.name, one.partitions.size)))
    case ApiKeys.OFFSET_DELETE => ofSize(request) / 4
    case _ => 0
  }

  private def ofSize(request: RequestChannel.Request): Long = msNs / 1000 * request.sizeInBytes

  /** Each partition whose offset is committed is a record with all three names: 4 MB of them are a second. */
  private def ofWritten(group: String, topics: Iterable[(String, Int)]): Long =
    usNs / 4 * topics.iterator.map { case (topic, partitions) =>
      partitions.toLong * (group.length + topic.length + 100)
    }.sum

  /** The longest there may be for a topic that is named by its id. */
  private def nameOf(topic: String): String = if (topic == null || topic.isEmpty) longestName else topic

  private def groupsOfOffsets(request: RequestChannel.Request) =
    // up to version 7 there is one, which stands by itself
    request.body[OffsetFetchRequest].groups.asScala.toSeq

  private def sees(apis: KafkaApis, request: RequestChannel.Request, topic: String): Boolean =
    apis.authHelper.authorize(request.context, AclOperation.DESCRIBE, ResourceType.TOPIC, topic, false, false)

  /** The groups that a request asks Kafka to describe: their threads write all that they know of each. */
  private val groups: Map[ApiKeys, RequestChannel.Request => Seq[String]] = Map(
    ApiKeys.DESCRIBE_GROUPS -> (_.body[DescribeGroupsRequest].data.groups.asScala.toSeq),
    ApiKeys.CONSUMER_GROUP_DESCRIBE -> (_.body[ConsumerGroupDescribeRequest].data.groupIds.asScala.toSeq),
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
