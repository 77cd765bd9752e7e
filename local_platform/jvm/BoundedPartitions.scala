package mesh

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.{ApiException, PolicyViolationException}
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.common.requests.{
  CreatePartitionsRequest, CreateTopicsRequest, StreamsGroupHeartbeatRequest
}

/**
 * How many partitions the topics below a domain's prefix have together, and one of them: each is a folder and files
 * that a broker has open. Kafka asks its policy for new topics only ([[CreatePolicy]]).
 *
 * Properties of the JVM:
 *   mesh.partitions=<n>         of all topics
 *   mesh.partitions.topic=<n>   of one that is widened, or that a topology names
 *   mesh.partitions.hour=<n>    that are added to topics in an hour, and at once
 */
object BoundedPartitions {
  private val mostOfAll = Integer.getInteger("mesh.partitions", 4000).intValue
  private val mostOfTopic = Integer.getInteger("mesh.partitions.topic", 256).intValue
  private val anHour = Integer.getInteger("mesh.partitions.hour", 1000).intValue
  private val domains = new ConcurrentHashMap[String, Spent]()

  /** Why a request that makes or widens topics is to be refused. */
  def fault(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] =
    if (BoundedWork.isOwn(request.context.principal.getName)) None
    else {
      val owner = BoundedWork.owner(request.context.principal.getName)
      (request.header.apiKey match {
        case ApiKeys.CREATE_TOPICS => tooMany(apis, owner, made(request.body[CreateTopicsRequest]))
        case _ => widened(apis, owner, request.body[CreatePartitionsRequest])
      }).map(new PolicyViolationException(_))
    }

  /**
   * Why one that has Kafka make the topics of a topology is to be refused. The controller makes them, adds the numbers
   * that it is told as integers that run over, and has placed all of them before it asks its policy.
   */
  def full(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] = {
    val login = request.context.principal.getName
    val topology = request.body[StreamsGroupHeartbeatRequest].data.topology
    if (topology == null || BoundedWork.isOwn(login)) None
    else {
      val asked = topology.subtopologies.asScala.toSeq
      val internal = asked.flatMap(one => one.repartitionSourceTopics.asScala ++ one.stateChangelogTopics.asScala)
      // one that names none gets as many as another of the topology has
      val derived = (internal.map(_.partitions) ++ asked.flatMap(_.sourceTopics.asScala).map(count(apis, _))).maxOption
      val more = internal.iterator.filterNot(one => apis.metadataCache.contains(one.name))
        .map(one => (if (one.partitions > 0) one.partitions else math.max(derived.getOrElse(1), 1)).toLong).sum
      internal.find(_.partitions > mostOfTopic).map(one => wide(one.name, one.partitions))
        .orElse(tooMany(apis, BoundedWork.owner(login), more))
        .map(new PolicyViolationException(_))
    }
  }

  private def wide(topic: String, partitions: Int): String =
    s"$topic is to have $partitions partitions: it may have $mostOfTopic"

  private def made(request: CreateTopicsRequest): Long = request.data.topics.asScala.iterator.map { topic =>
    if (topic.assignments.isEmpty) math.max(topic.numPartitions, 1).toLong else topic.assignments.size.toLong
  }.sum

  private def widened(apis: KafkaApis, owner: String, request: CreatePartitionsRequest): Option[String] = {
    // of others' topics nothing is told: whether they are there, and how many partitions they have
    val asked = request.data.topics.asScala.toSeq.filter(_.name.startsWith(s"$owner."))
    val more = asked.iterator.map(one => math.max(0L, one.count.toLong - count(apis, one.name))).sum
    asked.find(_.count > mostOfTopic).map(one => wide(one.name, one.count))
      .orElse(tooMany(apis, owner, more))
      .orElse {
        val cost = Recent.hour / anHour * math.min(more, anHour + 1L)
        val isAbove = !domains.computeIfAbsent(owner, _ => new Spent).takes(cost, Recent.hour - cost)
        if (isAbove) Some(s"topics $owner.* get $anHour more partitions in an hour at most") else None
      }
  }

  private def tooMany(apis: KafkaApis, owner: String, more: Long): Option[String] = {
    val prefix = s"$owner."
    val all = apis.metadataCache.getAllTopics.asScala.iterator.filter(_.startsWith(prefix)).map(count(apis, _).toLong).sum
    if (all + more <= mostOfAll) None
    else Some(s"topics $owner.* have $all partitions, and may have $mostOfAll: there is no room for $more more")
  }

  private def count(apis: KafkaApis, topic: String): Int =
    apis.metadataCache.numPartitions(topic).map[Int](_.intValue).orElse(0)
}
