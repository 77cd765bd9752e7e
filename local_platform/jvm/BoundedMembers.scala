package mesh

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import org.apache.kafka.common.errors.{ApiException, InvalidRequestException, PolicyViolationException}
import org.apache.kafka.common.message.{ConsumerProtocolAssignment, ConsumerProtocolSubscription}
import org.apache.kafka.common.protocol.{ApiKeys, Readable}
import org.apache.kafka.common.requests.{
  ConsumerGroupHeartbeatRequest, JoinGroupRequest, StreamsGroupHeartbeatRequest, SyncGroupRequest
}
import org.slf4j.LoggerFactory

/**
 * How much members of groups may send of themselves: names, topics, patterns, metadata and assignments,
 * which Kafka has in its heap for as long as they send heartbeats.
 *
 * Properties of the JVM:
 *   mesh.members.bytes=<n>    of a domain's logins in an hour, and at once
 *   mesh.members.topics=<n>   topics that a member subscribes to by their names
 */
object BoundedMembers {
  private val most = Integer.getInteger("mesh.members.bytes", 64 << 20).intValue
  private val mostTopics = Integer.getInteger("mesh.members.topics", 1000).intValue
  // what an ordinary heartbeat has, which says nothing new
  private val plain = 512
  // what a member costs that says nothing of itself
  private val member = 1024
  // what Kafka keeps of the name of a topic, in several tables
  private val topic = 256
  private val consumers = "consumer"
  private val log = LoggerFactory.getLogger("mesh.BoundedMembers")
  private val owners = new ConcurrentHashMap[String, Members]()

  private class Members {
    val sent = new Spent
    val denied = new Pause
  }

  /** Why the request is to be refused. */
  def fault(request: RequestChannel.Request): Option[ApiException] = {
    val named = request.header.apiKey match {
      case ApiKeys.CONSUMER_GROUP_HEARTBEAT => topics(request.body[ConsumerGroupHeartbeatRequest])
      case _ => 0
    }
    val size = request.sizeInBytes + named * topic + (if (joins(request)) member else -plain)
    if (named > mostTopics) Some(new InvalidRequestException(s"a member subscribes to $mostTopics topics at most"))
    // workers of Connect that have many connectors tell all of them at each change, for all domains together
    else if (size <= 0 || BoundedWork.isOwn(request.context.principal.getName)) None
    else {
      val owner = BoundedWork.owner(request.context.principal.getName)
      val members = owners.computeIfAbsent(owner, _ => new Members)
      val cost = (size.toDouble / most * Recent.hour).toLong
      if (members.sent.takes(cost, Recent.hour - cost)) None
      else {
        val text = s"members of groups of $owner have sent $most bytes of themselves in an hour"
        if (members.denied.isOver()) log.warn("{}", text)
        Some(new PolicyViolationException(text))
      }
    }
  }

  /** How many topics a member names. */
  def topics(request: ConsumerGroupHeartbeatRequest): Int = {
    val named = request.data.subscribedTopicNames
    if (named == null) 0 else named.size
  }

  /**
   * The same for what members of a consumer's group say of topics: Kafka reads it in the few threads that
   * care for all groups.
   */
  def unreadable(request: RequestChannel.Request): Option[ApiException] = {
    val login = request.context.principal.getName
    val said = request.header.apiKey match {
      case ApiKeys.JOIN_GROUP =>
        val data = request.body[JoinGroupRequest].data
        if (data.protocolType != consumers) Nil
        else data.protocols.asScala.map(one => (one.metadata, subscription _)).toSeq
      case ApiKeys.SYNC_GROUP =>
        val data = request.body[SyncGroupRequest].data
        // before version 5 the type is not told
        if (data.protocolType != null && data.protocolType != consumers) Nil
        else data.assignments.asScala.map(one => (one.assignment, assignment _)).toSeq
      case _ => Nil
    }
    try {
      said.filter(_._1.nonEmpty).foreach { case (bytes, read) => BoundedParsing.inner(bytes, login)(read) }
      None
    } catch {
      case tooMuch: InvalidRequestException => Some(tooMuch)
      case fault: RuntimeException if announces(fault) && said.exists(_._1.length > BoundedParsing.mostInside) =>
        Some(new InvalidRequestException(s"a member says too much of topics: ${fault.getMessage}"))
      // not every client says it as Kafka's own: Kafka makes nothing of it
      case _: RuntimeException => None
    }
  }

  /** A list announces more than there is, or than may be read. */
  private def announces(fault: RuntimeException): Boolean =
    fault.getMessage != null && fault.getMessage.startsWith("Tried to allocate a collection")

  private def subscription(from: Readable): Unit =
    new ConsumerProtocolSubscription(from, version(from, ConsumerProtocolSubscription.HIGHEST_SUPPORTED_VERSION))

  private def assignment(from: Readable): Unit =
    new ConsumerProtocolAssignment(from, version(from, ConsumerProtocolAssignment.HIGHEST_SUPPORTED_VERSION))

  /** The version that it begins with, as far as it is known. */
  private def version(from: Readable, highest: Short): Short = math.min(from.readShort, highest).toShort

  private def joins(request: RequestChannel.Request): Boolean = request.header.apiKey match {
    case ApiKeys.JOIN_GROUP => true
    case ApiKeys.CONSUMER_GROUP_HEARTBEAT =>
      request.body[ConsumerGroupHeartbeatRequest].data.memberEpoch == 0
    case ApiKeys.STREAMS_GROUP_HEARTBEAT =>
      request.body[StreamsGroupHeartbeatRequest].data.memberEpoch == 0
    case _ => false
  }
}
