package mesh

import java.util
import java.util.concurrent.ConcurrentHashMap

import org.apache.kafka.common.config.ConfigResource
import org.apache.kafka.common.errors.PolicyViolationException
import org.apache.kafka.server.policy.{AlterConfigPolicy, CreateTopicPolicy}

/**
 * What a topic may cost its cluster (KIP-201). Brokers ask before they create a topic or change its
 * settings; `mesh.*` and Kafka's own topics are not asked about. A setting that no setting of the
 * broker names is refused.
 *
 * Settings of the broker:
 *   mesh.policy.range.<setting of a topic>=<least>:<largest>   an empty end is open
 *   mesh.policy.values.<setting of a topic>=<one>:<another>    which ones it may have
 *   mesh.policy.free=<setting of a topic>:<another>            which ones may be anything
 *   mesh.policy.characters=<n>                                 of one setting's value
 *   mesh.policy.characters.of.lists=<n>                        of one that lists replicas
 *   mesh.policy.partitions=<n>                                 of a new topic
 *   mesh.policy.partitions.per.hour=<n>                        of new topics below one prefix
 */
abstract class TopicPolicy {
  private val prefix = "mesh.policy.range."
  private val prefixOfValues = "mesh.policy.values."
  private val values = new util.TreeMap[String, Array[String]]()
  private val ranges = new util.TreeMap[String, (Double, Double)]()
  private var free = Set.empty[String]
  private var longest, longestList = Int.MaxValue

  def configure(settings: util.Map[String, _]): Unit = {
    val limit = settings.get("mesh.policy.characters")
    if (limit != null) longest = limit.toString.toInt
    val ofLists = settings.get("mesh.policy.characters.of.lists")
    if (ofLists != null) longestList = ofLists.toString.toInt
    val named = settings.get("mesh.policy.free")
    if (named != null) free = named.toString.split(":").toSet
    settings.forEach { (name, value) =>
      if (name.startsWith(prefixOfValues)) {
        values.put(name.substring(prefixOfValues.length), value.toString.split(":"))
      }
      if (name.startsWith(prefix)) {
        val ends = value.toString.split(":", -1)
        ranges.put(name.substring(prefix.length), (end(ends(0), 0), end(ends(1), Double.MaxValue)))
      }
    }
  }

  def close(): Unit = ()

  private def end(text: String, open: Double): Double = if (text.isEmpty) open else text.toDouble

  protected def isExempt(topic: String): Boolean = topic.startsWith("mesh.") || topic.startsWith("__")

  /**
   * Raises PolicyViolationException for the first setting that is too long, may not be set, or is
   * not what it may be. One without a value is removed, whatever it is.
   */
  protected def require(topic: String, settings: util.Map[String, String]): Unit = {
    settings.forEach { (name, value) =>
      val most = if (name.endsWith(".throttled.replicas")) longestList else longest
      if (value != null && value.length > most) {
        throw new PolicyViolationException(
          s"$name of $topic has ${value.length} characters: it may have $most")
      }
      if (value != null && !isNamed(name)) {
        throw new PolicyViolationException(
          s"$name of $topic is $value: it may not be set, leave it out. What may be: ${named.mkString(", ")}")
      }
    }
    ranges.forEach { (name, range) =>
      val value = settings.get(name)
      if (value != null && !(value.trim.toDouble >= range._1 && value.trim.toDouble <= range._2)) {
        throw new PolicyViolationException(s"$name of $topic is $value: ${inWords(name)}")
      }
    }
    values.forEach { (name, known) =>
      val value = settings.get(name)
      if (value != null && !known.contains(value.trim)) {
        throw new PolicyViolationException(s"$name of $topic is $value: it may be ${known.mkString(" or ")}")
      }
    }
  }

  private def isNamed(name: String): Boolean =
    free(name) || ranges.containsKey(name) || values.containsKey(name)

  private def named: Seq[String] = {
    val found = new util.TreeSet[String](ranges.keySet)
    found.addAll(values.keySet)
    free.foreach(found.add)
    found.toArray(Array.empty[String]).toSeq
  }

  private def inWords(name: String): String = {
    val (least, largest) = ranges.get(name)
    val upTo = if (largest == Double.MaxValue) "" else s" and at most ${plain(largest)}"
    s"it has to be at least ${plain(least)}$upTo"
  }

  private def plain(value: Double): String =
    if (value == value.floor) value.toLong.toString else value.toString
}

/** Asked for each change of settings, with the changed ones; one that is removed has no value. */
class AlterPolicy extends TopicPolicy with AlterConfigPolicy {
  override def validate(request: AlterConfigPolicy.RequestMetadata): Unit = {
    val resource = request.resource
    if (resource.`type` == ConfigResource.Type.TOPIC && !isExempt(resource.name)) {
      require(resource.name, request.configs)
    }
  }
}

/** Asked for each new topic, by the active controller. */
class CreatePolicy extends TopicPolicy with CreateTopicPolicy {
  private var most = Int.MaxValue
  private var perHour = Double.MaxValue
  private val buckets = new ConcurrentHashMap[String, Bucket]()

  override def configure(settings: util.Map[String, _]): Unit = {
    super.configure(settings)
    val limit = settings.get("mesh.policy.partitions")
    if (limit != null) most = limit.toString.toInt
    val rate = settings.get("mesh.policy.partitions.per.hour")
    if (rate != null) perHour = rate.toString.toDouble
  }

  override def validate(request: CreateTopicPolicy.RequestMetadata): Unit = {
    val topic = request.topic
    if (!isExempt(topic)) {
      require(topic, request.configs)
      val partitions = count(request)
      if (partitions > most) {
        throw new PolicyViolationException(s"$topic has $partitions partitions: it may have $most")
      }
      val dot = topic.indexOf('.')
      if (dot > 0) take(topic.substring(0, dot), partitions)
    }
  }

  private def count(request: CreateTopicPolicy.RequestMetadata): Int =
    if (request.replicasAssignments != null) request.replicasAssignments.size
    else if (request.numPartitions == null) 1
    else request.numPartitions

  private def take(owner: String, partitions: Int): Unit = {
    val now = System.nanoTime
    val bucket = buckets.computeIfAbsent(owner, _ => new Bucket(perHour, now))
    if (!bucket.take(partitions, perHour, now)) {
      throw new PolicyViolationException(
        s"topics $owner.* have ${perHour.toLong} new partitions in an hour at most: " +
          s"$partitions more have to wait"
      )
    }
  }
}

/** Tokens that come back over an hour. */
private class Bucket(private var tokens: Double, private var since: Long) {
  def take(count: Int, perHour: Double, now: Long): Boolean = synchronized {
    tokens = math.min(perHour, tokens + (now - since) / 3.6e12 * perHour)
    since = now
    val fits = count <= tokens
    if (fits) tokens -= count
    fits
  }
}
