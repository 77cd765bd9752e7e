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
 * is not taken, and each poll fails with UnknownTopicIdException.
 *
 * [[PatchMetadata]] has Kafka's classes ask this.
 */
object TopicIds {
  private val setting = "mesh.topic.ids"
  private val known = Collections.synchronizedMap(new WeakHashMap[Metadata, Map[String, Uuid]]())

  /** What a consumer knows of brokers begins. */
  def expect(metadata: Metadata, config: ConsumerConfig): Unit = {
    val told = config.originals.get(setting)
    if (told != null) known.put(metadata, parsed(told.toString))
  }

  /** Whether the answer is not to be taken; the consumer then asks again, and fails meanwhile. */
  def refuses(metadata: Metadata, answer: MetadataResponse, nowMs: Long): Boolean = {
    val ids = known.get(metadata)
    val fault = if (ids == null) null else another(ids, answer)
    if (fault == null) false
    else {
      metadata.failedUpdate(nowMs)
      metadata.fatalError(new UnknownTopicIdException(fault))
      true
    }
  }

  /** Ids of topics as brokers gave them, with those that the consumer knows by its setting. */
  def kept(told: Map[String, Uuid], metadata: Metadata): Map[String, Uuid] = {
    val ids = known.get(metadata)
    if (ids == null || told.entrySet.containsAll(ids.entrySet)) told
    else {
      val all = new HashMap[String, Uuid](told)
      all.putAll(ids)
      all
    }
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
    text.split(",").foreach { one =>
      val at = one.indexOf('=')
      val id = one.substring(at + 1).replace("=", "").replace('+', '-').replace('/', '_')
      found.put(one.substring(0, at), Uuid.fromString(id))
    }
    found
  }
}
