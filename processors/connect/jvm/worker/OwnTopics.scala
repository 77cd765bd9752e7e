package mesh

import java.util
import java.util.regex.Pattern

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.common.config.ConfigDef.{Importance, Type}
import org.apache.kafka.connect.source.SourceRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Fails the task at a record that other transforms lead out of the topics of its domain, and gives
 * one whose topic Kafka would not allow the nearest name that it does, as Debezium does for tables:
 * what the rows of an outbox name is any text, and the row stays in the database's log, where nobody
 * can mend it.
 *
 * A source's login may write where Connect keeps its positions, too, since a position is in the
 * transaction of its records. What the rows of an outbox name must not lead there.
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
class OwnTopics extends Transformation[SourceRecord] {
  private val notLegal = Pattern.compile("[^A-Za-z0-9._-]")
  private val longest = 249
  private var own = ""

  override def config: ConfigDef = new ConfigDef()
    .define("domain", Type.STRING, Importance.HIGH, "whose topics may be written")

  override def configure(settings: util.Map[String, _]): Unit =
    own = settings.get("domain").asInstanceOf[String]

  override def apply(record: SourceRecord): SourceRecord = {
    val topic = record.topic
    if (topic == null || !topic.startsWith(own + "."))
      throw new RefusedException("topic_not_own: " + own + ": a record leads to another's topic")
    val legal = legalOf(topic)
    if (legal.equals(topic)) record
    else
      record.newRecord(
        legal, record.kafkaPartition, record.keySchema, record.key, record.valueSchema, record.value,
        record.timestamp)
  }

  override def close(): Unit = ()

  /** One that begins with the domain is neither `.` nor `..`. */
  private def legalOf(topic: String): String =
    if (topic.length == own.length + 1) topic + "_"
    else {
      val cut = if (topic.length > longest) topic.substring(0, longest) else topic
      notLegal.matcher(cut).replaceAll("_")
    }
}
