package mesh

import java.nio.charset.StandardCharsets.US_ASCII
import java.util

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.common.config.ConfigDef.{Importance, Type}
import org.apache.kafka.connect.source.SourceRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Adds the header `mesh.source` to each record of a MirrorSourceConnector: the prefix
 * `<cluster>/<topic id>/`, then the partition and the offset that it was read from.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
class Provenance extends Transformation[SourceRecord] {
  private var prefix = ""

  override def config: ConfigDef = new ConfigDef()
    .define("prefix", Type.STRING, Importance.HIGH, "What the header's value begins with")

  override def configure(settings: util.Map[String, _]): Unit =
    prefix = settings.get("prefix").asInstanceOf[String]

  override def apply(record: SourceRecord): SourceRecord = {
    val place = record.sourcePartition.get("partition")
    val value = prefix + place + "/" + record.sourceOffset.get("offset")
    record.headers.addBytes("mesh.source", value.getBytes(US_ASCII))
    record
  }

  override def close(): Unit = ()
}
