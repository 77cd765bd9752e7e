package mesh

import org.apache.kafka.connect.data.Schema

/**
 * Which types of Connect Debezium's JDBC sink reads as what their name says. It goes by the name alone,
 * and takes a number of any type for the one that the name stands for: a double of a time is cut.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object KnownTypes {
  private val times = "io.debezium.time."
  private val data = "io.debezium.data."
  private val connect = "org.apache.kafka.connect.data."

  /** Whether a schema's name is that of a type which is made of the schema's own. */
  def isNamed(schema: Schema): Boolean =
    schema.name != null && schema.`type`.equals(kindOf(schema.name))

  /**
   * Whether the sink would go by a name that is not to be gone by: that of a type of a database, as
   * MONEY, or one of Debezium's or Connect's over another type. Values are exact without it.
   */
  def isForeign(schema: Schema): Boolean = {
    val name = schema.name
    name != null && !Schema.Type.STRUCT.equals(schema.`type`) && !isNamed(schema) &&
    (name.indexOf('.') < 0 || name.startsWith("io.debezium.") || name.startsWith(connect))
  }

  /** Whether it is a record with a name of a value's type, and other fields, which the sink leaves out. */
  def isForged(schema: Schema): Boolean = {
    val name = schema.name
    name != null && Schema.Type.STRUCT.equals(schema.`type`) &&
    (name.startsWith(times) || name.startsWith(data) || name.startsWith(connect)) &&
    !(isNamed(schema) && hasFields(schema))
  }

  /** What a type of this name is made of; null of a name that is not to be gone by. */
  private def kindOf(name: String): Schema.Type =
    name match {
      case "io.debezium.time.Date" | "io.debezium.time.Time" => Schema.Type.INT32
      case "io.debezium.time.MicroTime" | "io.debezium.time.NanoTime" => Schema.Type.INT64
      case "io.debezium.time.Timestamp" | "io.debezium.time.MicroTimestamp" => Schema.Type.INT64
      case "io.debezium.time.NanoTimestamp" | "io.debezium.time.MicroDuration" => Schema.Type.INT64
      case "io.debezium.time.ZonedTime" | "io.debezium.time.ZonedTimestamp" => Schema.Type.STRING
      case "io.debezium.data.Uuid" | "io.debezium.data.Json" => Schema.Type.STRING
      case "io.debezium.data.Enum" => Schema.Type.STRING
      case "io.debezium.data.Bits" => Schema.Type.BYTES
      case "io.debezium.data.VariableScaleDecimal" => Schema.Type.STRUCT
      case "io.debezium.data.geometry.Geometry" => Schema.Type.STRUCT
      case "io.debezium.data.geometry.Geography" => Schema.Type.STRUCT
      case "io.debezium.data.geometry.Point" => Schema.Type.STRUCT
      case "org.apache.kafka.connect.data.Date" => Schema.Type.INT32
      case "org.apache.kafka.connect.data.Time" => Schema.Type.INT32
      case "org.apache.kafka.connect.data.Timestamp" => Schema.Type.INT64
      case "org.apache.kafka.connect.data.Decimal" => Schema.Type.BYTES
      case _ => null
    }

  private def hasFields(schema: Schema): Boolean =
    if (schema.name.endsWith(".VariableScaleDecimal"))
      schema.fields.size == 2 && isOf(schema, "scale", Schema.Type.INT32) &&
      isOf(schema, "value", Schema.Type.BYTES)
    else {
      var known = if (isOf(schema, "wkb", Schema.Type.BYTES)) 1 else 0
      val hasBytes = known == 1
      if (isOf(schema, "srid", Schema.Type.INT32)) known += 1
      // a point says again what its bytes say
      val isPoint = schema.name.endsWith(".Point")
      if (isPoint && isOf(schema, "x", Schema.Type.FLOAT64)) known += 1
      if (isPoint && isOf(schema, "y", Schema.Type.FLOAT64)) known += 1
      hasBytes && schema.fields.size == known
    }

  private def isOf(schema: Schema, name: String, kind: Schema.Type): Boolean = {
    val field = schema.field(name)
    field != null && field.schema.name == null && kind.equals(field.schema.`type`)
  }
}
