package mesh

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.{ApiException, PolicyViolationException}
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.common.requests.{CreatePartitionsRequest, CreateTopicsRequest}

/**
 * How many partitions the topics below a domain's prefix have together, and one of them: each is a folder and files
 * that a broker has open. Kafka asks its policy for new topics only ([[CreatePolicy]]).
 *
 * Properties of the JVM:
 *   mesh.partitions=<n>         of all topics
 *   mesh.partitions.topic=<n>   of one that is widened
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

  private def made(request: CreateTopicsRequest): Int = request.data.topics.asScala.iterator.map { topic =>
    if (topic.assignments.isEmpty) math.max(topic.numPartitions, 1) else topic.assignments.size
  }.sum

  private def widened(apis: KafkaApis, owner: String, request: CreatePartitionsRequest): Option[String] = {
    val asked = request.data.topics.asScala.toSeq
    val more = asked.iterator.map(one => math.max(0, one.count - count(apis, one.name))).sum
    val wide = asked.find(one => one.count > mostOfTopic && apis.metadataCache.contains(one.name))
    wide.map(one => s"${one.name} is to have ${one.count} partitions: it may have $mostOfTopic")
      .orElse(tooMany(apis, owner, more))
      .orElse {
        val cost = Recent.hour / anHour * more
        val isAbove = !domains.computeIfAbsent(owner, _ => new Spent).takes(cost, Recent.hour - cost)
        if (isAbove) Some(s"topics $owner.* get $anHour more partitions in an hour at most") else None
      }
  }

  private def tooMany(apis: KafkaApis, owner: String, more: Int): Option[String] = {
    val prefix = s"$owner."
    val all = apis.metadataCache.getAllTopics.asScala.iterator.filter(_.startsWith(prefix)).map(count(apis, _)).sum
    if (all + more.toLong <= mostOfAll) None
    else Some(s"topics $owner.* have $all partitions, and may have $mostOfAll: there is no room for $more more")
  }

  private def count(apis: KafkaApis, topic: String): Int =
    apis.metadataCache.numPartitions(topic).map[Int](_.intValue).orElse(0)
}
