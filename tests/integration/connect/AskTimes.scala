package mesh

import java.util

import org.apache.kafka.connect.data.{Schema, SchemaBuilder, Struct, Timestamp}
import org.apache.kafka.connect.source.SourceRecord
import org.apache.kafka.connect.transforms.TimestampConverter

/** What TimestampConverter makes of 2023-11-14 as each type of a column: a line "type text" for each. */
object AskTimes {
  private val milliseconds = 1700000000000L

  private def made(of: Schema, value: Any): String = {
    val schema = SchemaBuilder.struct.field("at", of).build
    val row = new Struct(schema).put("at", value)
    val asked = new TimestampConverter.Value[SourceRecord]
    asked.configure(util.Map.of("field", "at", "target.type", "string", "format", "yyyy-MM-dd"))
    val record = new SourceRecord(util.Map.of, util.Map.of, "east.users", schema, row)
    try String.valueOf(asked.apply(record).value.asInstanceOf[Struct].get("at"))
    catch { case error: RefusedException => "refused " + error.getMessage.takeWhile(_ != ':') }
  }

  private def number(name: String): Schema = SchemaBuilder.int64.optional.name(name).build

  def main(words: Array[String]): Unit = {
    val date = new util.Date(milliseconds)
    println("bigint " + made(Schema.INT64_SCHEMA, milliseconds))
    println("connect " + made(Timestamp.SCHEMA, date))
    for (one <- Seq("Timestamp", "MicroTimestamp", "NanoTimestamp", "MicroTime", "NanoTime")) {
      println(one + " " + made(number("io.debezium.time." + one), milliseconds))
      println(one + "? " + made(number("io.debezium.time." + one), null))
    }
  }
}
