package mesh

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.kafka.common.errors.PolicyViolationException
import org.apache.kafka.common.message.{OffsetCommitRequestData, TxnOffsetCommitRequestData}
import org.apache.kafka.server.authorizer.AuthorizableRequestContext
import org.slf4j.LoggerFactory

/**
 * How many offsets a login may have Kafka keep, which has each one of a group, a topic and a partition in
 * its heap for seven days. [[PatchKafka]] has the coordinator of groups call these methods.
 *
 * Property of the JVM:
 *   mesh.offsets=<n>   different ones of a login in seven days
 *
 * A request with more ends with PolicyViolationException, and none of it is kept.
 */
object BoundedOffsets {
  private val most = Integer.getInteger("mesh.offsets", 50000).intValue
  private val log = LoggerFactory.getLogger("mesh.BoundedOffsets")
  private val logins = new ConcurrentHashMap[String, Recent]()

  /**
   * How many the logins of a login's domain have, as far as it is known; some thousands at least: what they
   * committed before the broker's start is not.
   */
  def kept(login: String): Long = {
    val owner = s"User:${BoundedWork.owner(login)}"
    logins.asScala.iterator.collect {
      case (name, kept) if name == owner || name.startsWith(s"$owner.") => kept.size
    }.sum.max(5000).toLong
  }

  def require(from: AuthorizableRequestContext, request: OffsetCommitRequestData): Unit =
    require(
      from,
      for {
        topic <- request.topics.asScala.iterator
        name = Option(topic.name).filter(_.nonEmpty).getOrElse(topic.topicId.toString)
        one <- topic.partitions.asScala
      } yield s"${request.groupId}\n$name\n${one.partitionIndex}"
    )

  def require(from: AuthorizableRequestContext, request: TxnOffsetCommitRequestData): Unit =
    require(
      from,
      for {
        topic <- request.topics.asScala.iterator
        one <- topic.partitions.asScala
        // kept for each open transaction
      } yield s"${request.groupId}\n${topic.name}\n${one.partitionIndex}\n${request.transactionalId}"
    )

  private def require(from: AuthorizableRequestContext, offsets: Iterator[String]): Unit = {
    val login = from.principal.toString
    val kept = logins.computeIfAbsent(login, _ => new Recent(most, Recent.week))
    if (!offsets.forall(kept.has(_))) {
      if (kept.isLogged()) log.warn("{} is denied an offset: it has {} of seven days", login, most)
      throw new PolicyViolationException(s"$login has $most offsets of seven days, and may have no other")
    }
  }
}
