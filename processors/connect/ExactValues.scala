package mesh

import java.math.{BigDecimal, BigInteger}
import java.time.LocalDate
import java.util

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.common.config.ConfigDef.{Importance, Type}
import org.apache.kafka.connect.data.{Field, Schema, SchemaBuilder, Struct}
import org.apache.kafka.connect.header.ConnectHeaders
import org.apache.kafka.connect.sink.SinkRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Gives Debezium's JDBC sink arrays that a table of PostgreSQL has as they are, in the key and in the
 * value: decimals without a scale (VariableScaleDecimal), which it does not read in an array, and
 * days, which PostgreSQL is sent as numbers and reads as dates such as 120101, are texts.
 *
 * Refuses a record with a value that the sink cannot write: a decimal without a scale for another
 * database, which has no type for it ([[PatchSink]] lets PostgreSQL's be numeric), and 24:00. The
 * error begins with a code, and names place and field. It runs behind [[PlainNames]], which bounds
 * schemas. It leaves headers out, which the sink does not use: it fails at two of one name, which
 * anybody may write. Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
class ExactValues extends Transformation[SinkRecord] {
  private val mostKnown = 100
  private val mostLevels = 50
  private val known = new util.IdentityHashMap[Schema, Schema]()
  private var isPostgres = false

  override def config: ConfigDef = new ConfigDef()
    .define("database", Type.STRING, Importance.HIGH, "the kind of database, as in its address")

  override def configure(settings: util.Map[String, _]): Unit =
    isPostgres = "postgresql".equals(settings.get("database"))

  override def apply(record: SinkRecord): SinkRecord = {
    if (known.size >= mostKnown) known.clear()
    val key = exact(record, record.keySchema, "key", 0)
    val schema = exact(record, record.valueSchema, "value", 0)
    requireTimes(record, record.key)
    requireTimes(record, row(record.value))
    if ((key eq record.keySchema) && (schema eq record.valueSchema) && record.headers.isEmpty) record
    else
      record.newRecord(
        record.topic, record.kafkaPartition,
        key, moved(record.keySchema, key, record.key),
        schema, moved(record.valueSchema, schema, record.value),
        record.timestamp, new ConnectHeaders())
  }

  override def close(): Unit = ()

  /** The schema with which the sink writes what is there; the same one where it does already. */
  private def exact(record: SinkRecord, schema: Schema, place: String, level: Int): Schema =
    if (schema == null) null
    else {
      if (level > mostLevels)
        throw refusal(record, "schema_too_large", place, "its schema has too many levels",
          "write it with fewer")
      val before = known.get(schema)
      if (before != null) before
      else {
        val found = made(record, schema, place, level)
        known.put(schema, found)
        found
      }
    }

  private def made(record: SinkRecord, schema: Schema, place: String, level: Int): Schema = {
    val kind = schema.`type`
    if (ExactValues.isOfAnyScale(schema)) {
      if (!isPostgres)
        throw refusal(record, "value_not_exact", place,
          "the database has no type for a decimal of any scale",
          "capture it as text or as numeric(p,s)")
      schema
    } else if (Schema.Type.STRUCT.equals(kind)) struct(record, schema, level)
    else if (Schema.Type.ARRAY.equals(kind)) {
      val before = schema.valueSchema
      val found = exact(record, before, place, level + 1)
      val after =
        // the sink calls the type of the array by the name of this schema
        if (isPostgres && ExactValues.isText(before))
          copied(before, SchemaBuilder.string.name(before.name))
        else found
      if (after eq before) schema else copied(schema, described(schema, SchemaBuilder.array(after)))
    } else schema
  }

  private def struct(record: SinkRecord, schema: Schema, level: Int): Schema = {
    val builder = described(schema, SchemaBuilder.struct)
    var same = true
    val fields = schema.fields
    var index = 0
    while (index < fields.size) {
      val field = fields.get(index)
      val found = exact(record, field.schema, field.name, level + 1)
      same = same && (found eq field.schema)
      builder.field(field.name, found)
      index += 1
    }
    if (same) schema else copied(schema, builder)
  }

  private def described(schema: Schema, builder: SchemaBuilder): SchemaBuilder = {
    val named = if (schema.name == null) builder else builder.name(schema.name)
    if (schema.parameters == null) named else named.parameters(schema.parameters)
  }

  private def copied(schema: Schema, builder: SchemaBuilder): Schema = {
    val made = builder.doc(schema.doc).version(schema.version)
    (if (schema.isOptional) made.optional else made).build
  }

  /** A value of one schema as that of the other. */
  private def moved(before: Schema, after: Schema, value: Any): Object =
    if (value == null || (before eq after)) value.asInstanceOf[Object]
    else if (Schema.Type.STRUCT.equals(after.`type`)) movedStruct(after, value.asInstanceOf[Struct])
    else if (Schema.Type.ARRAY.equals(after.`type`)) {
      val found = new util.ArrayList[Object]()
      val items = value.asInstanceOf[util.List[_]].iterator
      while (items.hasNext) found.add(moved(before.valueSchema, after.valueSchema, items.next()))
      found
    } else if (ExactValues.isOfAnyScale(before)) ExactValues.decimal(value.asInstanceOf[Struct])
    else ExactValues.day(value.asInstanceOf[Integer])

  private def movedStruct(after: Schema, value: Struct): Struct = {
    val found = new Struct(after)
    val fields = value.schema.fields.iterator
    while (fields.hasNext) {
      val field = fields.next()
      val to = after.field(field.name)
      found.put(to, moved(field.schema, to.schema, value.getWithoutDefault(field.name)))
    }
    found
  }

  /** What the sink writes of a value: of a change of Debezium's the row as it is then. */
  private def row(value: Any): Any =
    if (value.isInstanceOf[Struct]) {
      val struct = value.asInstanceOf[Struct]
      val name = struct.schema.name
      if (name != null && name.endsWith(".Envelope") && struct.schema.field("after") != null)
        struct.getWithoutDefault("after")
      else value
    } else value

  private def requireTimes(record: SinkRecord, value: Any): Unit =
    if (value.isInstanceOf[Struct]) {
      val struct = value.asInstanceOf[Struct]
      val fields = struct.schema.fields
      var index = 0
      while (index < fields.size) {
        val field = fields.get(index)
        if (isEndOfDay(field, struct))
          throw refusal(record, "value_not_exact", field.name, "a JDBC sink has no 24:00",
            "write 23:59:59.999999, or leave the field out with ReplaceField")
        index += 1
      }
    }

  private def isEndOfDay(field: Field, struct: Struct): Boolean = {
    val day = ExactValues.lengthOfDay(field.schema.name)
    day > 0 && {
      val value = struct.getWithoutDefault(field.name)
      value.isInstanceOf[Number] && value.asInstanceOf[Number].longValue == day
    }
  }

  private def refusal(
      record: SinkRecord, code: String, name: String, why: String, step: String): RefusedException =
    new RefusedException(
      code + ": " + record.originalTopic + "-" + record.originalKafkaPartition + " at offset " +
        record.originalKafkaOffset + ": " + name + ": " + why + ": " + step)
}

/** What Debezium calls the types of values, and values as PostgreSQL reads them. */
object ExactValues {
  def isOfAnyScale(schema: Schema): Boolean =
    "io.debezium.data.VariableScaleDecimal".equals(schema.name) &&
      Schema.Type.STRUCT.equals(schema.`type`)

  /** Whether values of this type are texts in an array. */
  def isText(schema: Schema): Boolean =
    isOfAnyScale(schema) ||
      "io.debezium.time.Date".equals(schema.name) && Schema.Type.INT32.equals(schema.`type`)

  def decimal(value: Struct): String =
    new BigDecimal(new BigInteger(value.getBytes("value")), value.getInt32("scale").intValue).toString

  /** It has no year 0, and no sign. */
  def day(value: Integer): String = {
    val date = LocalDate.ofEpochDay(value.longValue)
    val year = date.getYear
    val shown = String.valueOf(if (year > 0) year else 1 - year)
    val rest = date.withYear(2000).toString.substring(4)
    "0".repeat(Math.max(0, 4 - shown.length)) + shown + rest + (if (year > 0) "" else " BC")
  }

  /** What 24:00 is in a type of times; 0 for other types. */
  def lengthOfDay(name: String): Long =
    if ("io.debezium.time.MicroTime".equals(name)) 86400000000L
    else if ("io.debezium.time.Time".equals(name)) 86400000L
    else if ("io.debezium.time.NanoTime".equals(name)) 86400000000000L
    else 0L
}
