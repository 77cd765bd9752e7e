package mesh

import java.util

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.common.config.ConfigDef.{Importance, Type}
import org.apache.kafka.connect.data.Struct
import org.apache.kafka.connect.sink.SinkRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Refuses a change that contradicts itself, as Debezium's transformations and its sink would pass it
 * by or take it for a row, and what they would take for a change by the name of its schema. It runs
 * before all others: behind ExtractNewRecordState nothing of a change is left to be looked at.
 *
 * With `rows` it refuses any change: a transform that names fields of a row finds none in it, and
 * passes it on as it is.
 *
 * The error begins with a code, and names the record's place. Nothing of Scala's own library is used,
 * as in [[ExactValues]].
 */
class SoundChanges extends Transformation[SinkRecord] {
  private var hasRows = false

  override def config: ConfigDef =
    new ConfigDef().define("rows", Type.BOOLEAN, false, Importance.HIGH, "whether none is a change")

  override def configure(settings: util.Map[String, _]): Unit =
    hasRows = "true".equals(settings.get("rows"))

  override def apply(record: SinkRecord): SinkRecord = {
    if (SoundChanges.isOne(record) && hasRows)
      throw SoundChanges.refusal(record, "value",
        "a transform names fields of rows, which a change has inside: put ExtractNewRecordState " +
          "before it")
    record
  }

  override def close(): Unit = ()
}

object SoundChanges {
  /** Whether a record is a change, which does not contradict itself then. */
  def isOne(record: SinkRecord): Boolean = {
    val schema = record.valueSchema
    val is = record.value.isInstanceOf[Struct] && ExactValues.isTakenForChange(schema)
    if (is) {
      if (!ExactValues.isEnvelope(schema))
        throw refusal(record, "value",
          "the sink goes by the name of its schema, or by its field op, as if it were no row: give " +
            "the schema another name, or write a change of Debezium's")
      if (!ExactValues.isChange(record.value.asInstanceOf[Struct]))
        throw refusal(record, "op",
          "it contradicts what the change has before and after: write c, r or u with a row after it, " +
            "or d with the one before")
    }
    is
  }

  private def refusal(record: SinkRecord, name: String, why: String): RefusedException =
    new RefusedException(
      "change_ambiguous: " + record.originalTopic + "-" + record.originalKafkaPartition +
        " at offset " + record.originalKafkaOffset + ": " + name + ": " + why)
}
