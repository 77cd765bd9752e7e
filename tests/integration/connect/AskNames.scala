package mesh

import java.util

import io.debezium.connector.jdbc.JdbcSinkConnectorConfig
import io.debezium.connector.jdbc.dialect.GeneralDatabaseDialect
import io.debezium.connector.jdbc.dialect.postgres.PostgresDatabaseDialect
import org.apache.kafka.connect.data.{Schema, SchemaBuilder, Struct}
import org.apache.kafka.connect.sink.SinkRecord

/**
 * What becomes of each name that the sink goes by, over each type of Connect: a line "name type kept",
 * "name type left out" or "name type refused CODE" for each. The record has the fields of a point.
 */
object AskNames {
  private val kinds = Schema.Type.values.filter(one => one.isPrimitive)

  /** The names by which the sink finds how a value is written to PostgreSQL. */
  private def names: Seq[String] = {
    val field = classOf[sun.misc.Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    val unsafe = field.get(null).asInstanceOf[sun.misc.Unsafe]
    // its constructor asks a database
    val dialect = unsafe.allocateInstance(classOf[PostgresDatabaseDialect])
    val registry = new util.TreeMap[String, AnyRef]
    def set(name: String, value: AnyRef): Unit = {
      val found = classOf[GeneralDatabaseDialect].getDeclaredField(name)
      unsafe.putObject(dialect, unsafe.objectFieldOffset(found), value)
    }
    set("typeRegistry", registry)
    set("connectorConfig", new JdbcSinkConnectorConfig(util.Map.of[String, String]))
    val registering = classOf[PostgresDatabaseDialect].getDeclaredMethod("registerTypes")
    registering.setAccessible(true)
    registering.invoke(dialect)
    registry.keySet.toArray(Array.empty[String]).toSeq
  }

  private def of(kind: Schema.Type): SchemaBuilder =
    if (kind == Schema.Type.ARRAY) SchemaBuilder.array(Schema.FLOAT64_SCHEMA)
    else if (kind == Schema.Type.STRUCT)
      SchemaBuilder.struct.field("x", Schema.FLOAT64_SCHEMA).field("y", Schema.FLOAT64_SCHEMA)
        .field("wkb", Schema.OPTIONAL_BYTES_SCHEMA)
    else SchemaBuilder.`type`(kind)

  private def found(name: String, kind: Schema.Type): String = {
    val schema = SchemaBuilder.struct.field("a", of(kind).name(name).optional.build).build
    val record = new SinkRecord("east.users", 0, null, null, schema, new Struct(schema), 5)
    val asked = new ExactValues
    asked.configure(util.Map.of)
    try {
      val after = asked.apply(record).valueSchema.field("a").schema
      if (after.`type` != kind || !after.isOptional) "is another type"
      else if (name == after.name) "kept"
      else if (after.name == null) "left out"
      else after.name
    } catch { case error: RefusedException => "refused " + error.getMessage.takeWhile(_ != ':') }
  }

  def main(words: Array[String]): Unit =
    for (name <- names; kind <- kinds ++ Seq(Schema.Type.ARRAY, Schema.Type.STRUCT))
      println(s"$name $kind ${found(name, kind)}")
}
