package mesh

import java.util

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.common.config.ConfigDef.{Importance, Type}
import org.apache.kafka.connect.source.SourceRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Fails the task at a record that other transforms lead out of the topics of its domain.
 *
 * A source's login may write where Connect keeps its positions, too, since a position is in the
 * transaction of its records. What the rows of an outbox name must not lead there.
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
class OwnTopics extends Transformation[SourceRecord] {
  private var own = ""

  override def config: ConfigDef = new ConfigDef()
    .define("domain", Type.STRING, Importance.HIGH, "whose topics may be written")

  override def configure(settings: util.Map[String, _]): Unit =
    own = settings.get("domain").asInstanceOf[String]

  override def apply(record: SourceRecord): SourceRecord = {
    val topic = record.topic
    if (topic == null || !topic.startsWith(own + "."))
      throw new RefusedException("topic_not_own: " + own + ": a record leads to another's topic")
    record
  }

  override def close(): Unit = ()
}
