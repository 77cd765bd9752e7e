package mesh

import java.util.{Collections, HashMap, Map, WeakHashMap}

import org.apache.kafka.clients.Metadata
import org.apache.kafka.clients.consumer.ConsumerConfig
import org.apache.kafka.common.Uuid
import org.apache.kafka.common.errors.UnknownTopicIdException
import org.apache.kafka.common.requests.MetadataResponse

/**
 * Keeps a consumer from reading a topic that was deleted and made again. Kafka's consumers follow a
 * name: they would go on in the new topic, at the position that they had in the old one.
 *
 * The setting `mesh.topic.ids` of a consumer has the ids of its topics, `name=id` in base 64, separated
 * by commas. The consumer asks for records by these ids alone, also where a broker says that there is
 * no such topic: it would ask by the name then. A broker's answer in which one of them has another id
 * is not taken, and polls fail with UnknownTopicIdException.
 *
 * [[PatchMetadata]] has Kafka's classes ask this.
 */
object TopicIds {
  private val setting = "mesh.topic.ids"
  private val known = Collections.synchronizedMap(new WeakHashMap[Metadata, Known]())
  /** No topic's. */
  private val none = Uuid.randomUuid

  /** The ids of a consumer's topics, and how many answers in a row had others. */
  private class Known(val ids: Map[String, Uuid]) {
    @volatile var refused = 0
  }

  /**
   * Ids of topics, with that of no topic for what has none: a consumer that lacks the id of one asks by name for
   * all that it asks of a broker.
   */
  private class Ids(told: Map[String, Uuid], ids: Map[String, Uuid]) extends HashMap[String, Uuid](told) {
    putAll(ids)

    override def getOrDefault(topic: Object, other: Uuid): Uuid = super.getOrDefault(topic, none)
  }

  /** What a consumer knows of brokers begins. */
  def expect(metadata: Metadata, config: ConsumerConfig): Unit = {
    val told = config.originals.get(setting)
    if (told != null) known.put(metadata, new Known(parsed(told.toString)))
  }

  /**
   * Whether the answer is not to be taken. The consumer asks again, and fails at the second one in a row: a broker
   * may be behind the others.
   */
  def refuses(metadata: Metadata, answer: MetadataResponse, nowMs: Long): Boolean = {
    val found = known.get(metadata)
    val fault = if (found == null) null else another(found.ids, answer)
    if (fault == null) {
      if (found != null) found.refused = 0
      false
    } else {
      found.refused += 1
      metadata.failedUpdate(nowMs)
      if (found.refused > 1) metadata.fatalError(new UnknownTopicIdException(fault))
      true
    }
  }

  /** Ids of topics as brokers gave them, with those that the consumer knows by its setting. */
  def kept(told: Map[String, Uuid], metadata: Metadata): Map[String, Uuid] = {
    val found = known.get(metadata)
    if (found == null) told else new Ids(told, found.ids)
  }

  private def another(ids: Map[String, Uuid], answer: MetadataResponse): String = {
    val topics = answer.data.topics.iterator
    var fault: String = null
    while (fault == null && topics.hasNext) {
      val topic = topics.next()
      val id = ids.get(topic.name)
      // where a topic is not there, its id is zero
      if (id != null && topic.topicId != Uuid.ZERO_UUID && topic.topicId != id)
        fault = s"the topic ${topic.name} was deleted and made again: its id is ${topic.topicId}, and was $id"
    }
    fault
  }

  /** Names have neither a comma nor an equals sign; Kafka's clients in C write ids in the other base 64. */
  private def parsed(text: String): Map[String, Uuid] = {
    val found = new HashMap[String, Uuid]()
    text.split(",").filter(_.nonEmpty).foreach { one =>
      val at = one.indexOf('=')
      val id = one.substring(at + 1).replace("=", "").replace('+', '-').replace('/', '_')
      found.put(one.substring(0, at), Uuid.fromString(id))
    }
    found
  }
}
