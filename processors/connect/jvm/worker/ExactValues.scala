package mesh

import java.math.{BigDecimal, BigInteger}
import java.nio.ByteBuffer
import java.time.LocalDate
import java.util
import java.util.regex.Pattern

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.common.config.ConfigDef.{Importance, Type}
import org.apache.kafka.connect.data.{ConnectSchema, Schema, SchemaBuilder, Struct}
import org.apache.kafka.connect.header.ConnectHeaders
import org.apache.kafka.connect.sink.SinkRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Gives Debezium's JDBC sink arrays that a table of PostgreSQL has as they are, in the key and in the
 * value: decimals, without a scale (VariableScaleDecimal) or with one, which it does not read in an array, and
 * days, which PostgreSQL is sent as numbers and reads as dates such as 120101, or as texts in the zone
 * and the calendar of Java's Date, are texts.
 *
 * Refuses a record with a value that the sink cannot write: a map, an array of bytes, records or times,
 * of which it writes texts that say something else, a key that finds no row, a decimal of more digits than PostgreSQL
 * has, which takes the sink minutes to find, or than its schema says, a record in a field, for which the
 * sink has no column, 24:00, a time finer than a microsecond, one before 4713 BC,
 * for which PostgreSQL's driver writes -infinity, a UUID that PostgreSQL shows as another text, more
 * bits than the schema says, which the sink cuts, and a record by a name of Debezium's for another one;
 * in a key also the numbers -0.0 and NaN, which a table does not tell from others of the
 * topic, and more than the index of a table takes ([[KeySizes]]). Of any other type with a name of Debezium's or Connect's that is not its own, the name is left
 * out: the value is written as what it is. Refuses a change that contradicts itself, too, and what the sink would take for a change by the
 * name of its schema, and pass by. The error begins with a code, and names place
 * and field. It runs behind [[PlainNames]], which bounds schemas. It leaves headers out, which the sink
 * does not use: it fails at two of one name, which anybody may write. Nothing of Scala's own library is
 * used, so that Connect needs no more jars for it.
 */
class ExactValues extends Transformation[SinkRecord] {
  private val mostKnown = 2000
  private val mostLevels = 50
  private val known = new util.IdentityHashMap[Schema, Schema]()
  private val ofColumns = new util.IdentityHashMap[Schema, Schema]()
  private var hasKeys = false
  private var isCut = false

  override def config: ConfigDef = new ConfigDef()
    .define("keys", Type.BOOLEAN, false, Importance.HIGH, "whether a record's key is that of its row")
    .define("cut", Type.BOOLEAN, false, Importance.HIGH, "whether the sink leaves fields out")

  override def configure(settings: util.Map[String, _]): Unit = {
    hasKeys = "true".equals(settings.get("keys"))
    isCut = "true".equals(settings.get("cut"))
  }

  override def apply(record: SinkRecord): SinkRecord = {
    if (known.size >= mostKnown) known.clear()
    val key = exact(record, record.keySchema, "key", 0)
    val schema = exact(record, record.valueSchema, "value", 0)
    requireValue(record, record.keySchema, record.key, "key")
    if (hasKeys) {
      requireKey(record, record.key)
      requireColumns(record, record.keySchema)
    }
    requireRow(record)
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

  private def made(record: SinkRecord, named: Schema, place: String, level: Int): Schema = {
    val schema = ExactValues.withoutSource(named)
    val kind = schema.`type`
    // the sink makes a column with it, and rows that are older have it
    if (schema.defaultValue != null && !Schema.Type.ARRAY.equals(kind))
      requireValue(record, schema, schema.defaultValue, place)
    if (KnownTypes.isForged(schema))
      throw refusal(record, "value_not_exact", place,
        "a table has no record of this name with these fields",
        "write its fields by themselves, or leave the field out with ReplaceField")
    else if (ExactValues.isOfAnyScale(schema)) schema
    else if (Schema.Type.STRUCT.equals(kind)) struct(record, schema, level)
    else if (Schema.Type.MAP.equals(kind))
      throw refusal(record, "value_not_exact", place,
        "of a map a table has a text, in which other keys and values may be read",
        "write a record or a text, or leave the field out with ReplaceField")
    else if (Schema.Type.ARRAY.equals(kind)) {
      val before = schema.valueSchema
      if (!ExactValues.isItem(before))
        throw refusal(record, "value_not_exact", place,
          "a table has no array of such items as they are",
          "write numbers, texts, decimals or days, or leave the field out with ReplaceField")
      val found = exact(record, before, place, level + 1)
      val after =
        // the sink calls the type of the array by the name of this schema
        if (ExactValues.isText(before))
          copied(before, SchemaBuilder.string.name(ExactValues.nameOfText(before.name)))
        else found
      if ((after eq before) && schema.defaultValue == null) schema
      else array(schema, described(schema, SchemaBuilder.array(after)))
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

  /** Without a default, for which the sink has no words: rows that are older than its column have null. */
  private def array(schema: Schema, builder: SchemaBuilder): Schema =
    copied(schema, if (schema.defaultValue == null) builder else builder.optional)

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
    } else if (Schema.Type.STRING.equals(after.`type`) && ExactValues.isText(before))
      ExactValues.text(before, value)
    else value.asInstanceOf[Object]

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
  private def requireRow(record: SinkRecord): Unit = {
    val value = record.value
    val schema = record.valueSchema
    // of a map with some names the sink makes columns of what are values
    if (value != null && !value.isInstanceOf[Struct])
      throw refusal(record, "schema_missing", "value",
        "it is no record with fields, which become columns", "write records, or use HoistField")
    if (SoundChanges.isOne(record)) {
      val after = value.asInstanceOf[Struct].getWithoutDefault("after")
      requireValue(record, schema.field("after").schema, after, "after")
      requireColumns(record, schema.field("after").schema)
      // of a delete the sink has this one
      requireColumns(record, schema.field("before").schema)
    } else {
      requireValue(record, schema, value, "value")
      requireColumns(record, schema)
    }
  }

  /** A sink that leaves fields out may leave out these. */
  private def requireColumns(record: SinkRecord, row: Schema): Unit =
    if (row != null && Schema.Type.STRUCT.equals(row.`type`) && !isCut && !ofColumns.containsKey(row)) {
      if (ofColumns.size >= mostKnown) ofColumns.clear()
      val fields = row.fields.iterator
      while (fields.hasNext) {
        val field = fields.next()
        if (Schema.Type.STRUCT.equals(field.schema.`type`) && !KnownTypes.isNamed(field.schema))
          throw refusal(record, "value_not_exact", field.name,
            "a sink makes no column for a record in a field",
            "write its fields by themselves, as with Flatten, or leave the field out with ReplaceField")
      }
      ofColumns.put(row, row)
    }

  /** Their schemas have a bounded depth: see `exact`. */
  private def requireValue(record: SinkRecord, schema: Schema, value: Any, place: String): Unit =
    if (schema != null && value != null) {
      if (ExactValues.isOfAnyScale(schema)) {
        if (!ExactValues.isDecimal(value.asInstanceOf[Struct])) throw noDecimal(record, place)
      } else if (value.isInstanceOf[BigDecimal]) {
        if (!ExactValues.isDecimal(value.asInstanceOf[BigDecimal])) throw noDecimal(record, place)
        if (!ExactValues.isOfPrecision(schema, value.asInstanceOf[BigDecimal]))
          throw refusal(record, "value_not_exact", place,
            "it has more digits than the precision of its schema", "write it with a larger one")
      } else if (value.isInstanceOf[Struct]) {
        val struct = value.asInstanceOf[Struct]
        val fields = struct.schema.fields
        var index = 0
        while (index < fields.size) {
          val field = fields.get(index)
          val found = struct.getWithoutDefault(field.name)
          requireValue(record, field.schema, found, field.name)
          index += 1
        }
      } else if (value.isInstanceOf[util.List[_]]) {
        if (schema.valueSchema != null && ExactValues.isLookedAt(schema.valueSchema)) {
          val items = value.asInstanceOf[util.List[_]].iterator
          while (items.hasNext) requireValue(record, schema.valueSchema, items.next(), place)
        }
      } else if (value.isInstanceOf[util.Map[_, _]]) {
        val entries = value.asInstanceOf[util.Map[Object, Object]].entrySet.iterator
        while (entries.hasNext) {
          val entry = entries.next()
          requireValue(record, schema.keySchema, entry.getKey, place)
          requireValue(record, schema.valueSchema, entry.getValue, place)
        }
      } else if (ExactValues.hasNoText(value)) throw noText(record, place)
      else if (KnownTypes.isNamed(schema)) {
        requireTime(record, schema, value, place)
        if (!ExactValues.isPlainUuid(schema, value))
          throw refusal(record, "value_not_exact", place,
            "a table has a UUID in small letters, with four hyphens", "write it so")
        if (!ExactValues.isJson(schema, value))
          throw refusal(record, "value_not_exact", place, "it is no JSON that PostgreSQL takes",
            "write JSON, or a text without the name of that type")
        if (!ExactValues.areBits(schema, value))
          throw refusal(record, "value_not_exact", place,
            "it has more bits than the parameter length of its schema", "write it with a larger one")
      }
    }

  private def requireTime(record: SinkRecord, schema: Schema, value: Any, place: String): Unit = {
    val fault =
      if (value.isInstanceOf[Number] || value.isInstanceOf[util.Date])
        Times.fault(schema.name, ExactValues.number(value))
      else if (value.isInstanceOf[String]) Times.fault(schema.name, value.asInstanceOf[String])
      else null
    if (fault != null)
      throw refusal(record, "value_not_exact", place, fault,
        "write another one, or leave the field out with ReplaceField")
  }

  private def requireKey(record: SinkRecord, key: Any): Unit =
    if (key.isInstanceOf[Struct]) {
      val struct = key.asInstanceOf[Struct]
      val fields = struct.schema.fields.iterator
      // by a key without a field the sink would delete all rows
      if (!fields.hasNext) throw noKey(record, "key", "it has no field")
      while (fields.hasNext) {
        val name = fields.next().name
        val value = struct.getWithoutDefault(name)
        if (value == null) throw noKey(record, name, "it is null, which no row is found by")
        requireOneKey(record, value, name)
      }
      if (KeySizes.of(struct) > KeySizes.most)
        throw refusal(record, "value_not_exact", "key",
          "an index of PostgreSQL takes " + KeySizes.most + " bytes", "write shorter keys")
    } else throw noKey(record, "key", "it is no record with fields, which find a row")

  private def noKey(record: SinkRecord, name: String, why: String): RefusedException =
    refusal(record, "value_not_exact", name, why, "write keys of which each field has a value")

  private def noText(record: SinkRecord, place: String): RefusedException =
    refusal(record, "value_not_exact", place,
      "it has the character U+0000, which no text of PostgreSQL has", "write it without, or as bytes")

  private def requireOneKey(record: SinkRecord, value: Any, name: String): Unit =
    if (ExactValues.hasNoText(value)) throw noText(record, name)
    else if (ExactValues.isTwoKeys(value))
      throw refusal(record, "value_not_exact", name,
        "a table has one row for 0.0 and -0.0, and one for all NaN",
        "write keys of whole numbers, decimals or texts")

  private def noDecimal(record: SinkRecord, place: String): RefusedException =
    refusal(record, "value_not_exact", place,
      "PostgreSQL has decimals of 131072 digits before the point and 16383 after it",
      "write fewer, or a text")

  private def refusal(
      record: SinkRecord, code: String, name: String, why: String, step: String): RefusedException =
    new RefusedException(
      code + ": " + record.originalTopic + "-" + record.originalKafkaPartition + " at offset " +
        record.originalKafkaOffset + ": " + name + ": " + why + ": " + step)
}

/** What Debezium and Connect call the types of values, and values as PostgreSQL reads them. */
object ExactValues {
  val mostBefore = 131072
  val mostBehind = 16383
  /** So many digits are not longer. */
  private val mostBytes = 61232
  private val dayMs = 86400000L
  private val day = "io.debezium.time.Date"
  private val decimal = "org.apache.kafka.connect.data.Decimal"
  private val anyScale = "io.debezium.data.VariableScaleDecimal"
  private val bits = "io.debezium.data.Bits"
  private val uuid = "io.debezium.data.Uuid"
  private val uuids = Pattern.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
  private val ofSource = "__debezium.source.column."

  def isOfAnyScale(schema: Schema): Boolean =
    anyScale.equals(schema.name) &&
      Schema.Type.STRUCT.equals(schema.`type`)

  /**
   * The schema without what its parameters say of the type that a captured column had, and without a
   * name that is not to be gone by: see [[KnownTypes]]. The same schema where it has neither. The sink
   * would make a column of that type, whoever wrote the schema, in which values may become others.
   */
  def withoutSource(schema: Schema): Schema = {
    val kind = schema.`type`
    val isForeign = KnownTypes.isForeign(schema)
    if (!isForeign && (schema.parameters == null || !hasSource(schema.parameters))) schema
    else {
      val kept = new util.LinkedHashMap[String, String]()
      if (schema.parameters != null) kept.putAll(schema.parameters)
      val names = kept.keySet.iterator
      while (names.hasNext) if (names.next().startsWith(ofSource)) names.remove()
      val isMap = Schema.Type.MAP.equals(kind)
      new ConnectSchema(
        kind, schema.isOptional, schema.defaultValue, if (isForeign) null else schema.name,
        schema.version, schema.doc, kept, if (Schema.Type.STRUCT.equals(kind)) schema.fields else null,
        if (isMap) schema.keySchema else null,
        if (isMap || Schema.Type.ARRAY.equals(kind)) schema.valueSchema else null)
    }
  }

  private def hasSource(parameters: util.Map[String, String]): Boolean = {
    val names = parameters.keySet.iterator
    var found = false
    while (!found && names.hasNext) found = names.next().startsWith(ofSource)
    found
  }

  /** Whether a text is as PostgreSQL shows it, if it is a UUID: it takes others for the same one. */
  def isPlainUuid(schema: Schema, value: Any): Boolean =
    !uuid.equals(schema.name) || !value.isInstanceOf[String] ||
      uuids.matcher(value.asInstanceOf[String]).matches

  /** Whether Debezium's sink writes another row of such a value than itself, or none. */
  def isTakenForChange(schema: Schema): Boolean = {
    val name = schema.name
    if (name == null) schema.field("op") != null
    else name.endsWith(".Envelope") || name.contains("SchemaChangeValue")
  }

  /** Whether it has the form that Debezium gives the changes of a table. */
  def isEnvelope(schema: Schema): Boolean = {
    val name = schema.name
    name != null && name.endsWith(".Envelope") && !name.contains("CloudEvents") &&
    !name.contains("SchemaChangeValue") && isOf(schema, "op", Schema.Type.STRING) &&
    isOf(schema, "before", Schema.Type.STRUCT) && isOf(schema, "after", Schema.Type.STRUCT)
  }

  private def isOf(schema: Schema, name: String, kind: Schema.Type): Boolean =
    schema.field(name) != null && kind.equals(schema.field(name).schema.`type`)

  /** Whether what a change says that it is agrees with its rows, of which a truncation has none. */
  def isChange(change: Struct): Boolean = {
    val hasAfter = has(change, "after")
    val op = if (change.schema.field("op") == null) null else change.getWithoutDefault("op")
    if ("d".equals(op)) !hasAfter && has(change, "before")
    else hasAfter && ("c".equals(op) || "r".equals(op) || "u".equals(op))
  }

  private def has(change: Struct, name: String): Boolean =
    change.schema.field(name) != null && change.getWithoutDefault(name) != null

  /** Whether values of this type are texts in an array. */
  def isText(schema: Schema): Boolean =
    isOfAnyScale(schema) || isDay(schema.name) && Schema.Type.INT32.equals(schema.`type`) ||
      decimal.equals(schema.name) && Schema.Type.BYTES.equals(schema.`type`)

  /**
   * By which the sink knows the type: with a name of its own Connect takes no text. Of decimals with a
   * precision the sink asks PostgreSQL for an array of `decimal(5,2)`, which has no such type.
   */
  def nameOfText(name: String): String =
    if (isDay(name)) day else if (decimal.equals(name)) anyScale else name

  /** Whether a value of this type may be refused. */
  def isLookedAt(schema: Schema): Boolean = {
    val kind = schema.`type`
    Schema.Type.STRING.equals(kind) || schema.name != null || Schema.Type.STRUCT.equals(kind) || Schema.Type.ARRAY.equals(kind) ||
    Schema.Type.MAP.equals(kind)
  }

  /** Whether a text is JSON, if it is called so. */
  def isJson(schema: Schema, value: Any): Boolean =
    !"io.debezium.data.Json".equals(schema.name) || !value.isInstanceOf[String] ||
      JsonTexts.isOne(value.asInstanceOf[String])

  /** Whether it is a text that PostgreSQL has not. */
  def hasNoText(value: Any): Boolean =
    value.isInstanceOf[String] && value.asInstanceOf[String].indexOf('\u0000') >= 0

  /** Whether it is one that PostgreSQL has, found without making its digits. */
  def isDecimal(value: Struct): Boolean = {
    val scale = value.schema.field("scale")
    val digits = value.schema.field("value")
    scale != null && Schema.Type.INT32.equals(scale.schema.`type`) &&
    digits != null && Schema.Type.BYTES.equals(digits.schema.`type`) && {
      val bytes = value.getBytes("value")
      value.getInt32("scale") != null && bytes != null &&
      bytes.length > 0 && bytes.length <= mostBytes && isDecimal(decimalOf(value))
    }
  }

  def isDecimal(value: BigDecimal): Boolean =
    value.scale <= mostBehind && value.unscaledValue.bitLength <= 8 * mostBytes &&
      value.precision.toLong - value.scale <= mostBefore

  /** Whether a column that is made of its schema takes it: a sink has none with a scale below zero. */
  def isOfPrecision(schema: Schema, value: BigDecimal): Boolean = {
    val parameters = schema.parameters
    val precision = if (parameters == null) null else parameters.get("connect.decimal.precision")
    precision == null || value.signum == 0 || {
      try
        value.precision.toLong - value.scale <= Integer.parseInt(precision).toLong - Math.max(0, value.scale)
      catch { case _: NumberFormatException => true }
    }
  }

  private def decimalOf(value: Struct): BigDecimal =
    new BigDecimal(new BigInteger(value.getBytes("value")), value.getInt32("scale").intValue)

  /** Whether a table has an array of such items as they are. */
  def isItem(schema: Schema): Boolean = {
    val kind = schema.`type`
    val name = schema.name
    val isPlain = !Schema.Type.BYTES.equals(kind) && !Schema.Type.STRUCT.equals(kind) &&
      !Schema.Type.MAP.equals(kind) && !Schema.Type.ARRAY.equals(kind)
    // a name without a dot is left out
    if (name == null || isPlain && name.indexOf('.') < 0) isPlain
    else if (Schema.Type.STRING.equals(kind))
      // an enum of Avro's is called as whoever wrote it called it
      !name.startsWith("io.debezium.") && !name.startsWith("org.apache.kafka.connect.data.") ||
      "io.debezium.data.Json".equals(name) || uuid.equals(name) ||
      "io.debezium.data.Enum".equals(name) || "io.debezium.data.Xml".equals(name)
    else isText(schema)
  }

  /** Whether it has the bits alone of which its schema tells, or is no string of bits. */
  def areBits(schema: Schema, value: Any): Boolean =
    !bits.equals(schema.name) || {
      val parameters = schema.parameters
      val length = if (parameters == null) null else parameters.get("length")
      val found =
        if (value.isInstanceOf[ByteBuffer]) util.BitSet.valueOf(value.asInstanceOf[ByteBuffer]).length
        else if (value.isInstanceOf[Array[Byte]]) util.BitSet.valueOf(value.asInstanceOf[Array[Byte]]).length
        else 0
      // the sink fails at one without a length
      try found <= Integer.parseInt(length)
      catch { case _: NumberFormatException => false }
    }

  def number(value: Any): Long =
    if (value.isInstanceOf[util.Date]) value.asInstanceOf[util.Date].getTime
    else value.asInstanceOf[Number].longValue

  /** A value of an array as a text. */
  def text(schema: Schema, value: Any): String =
    if (isOfAnyScale(schema)) decimalOf(value.asInstanceOf[Struct]).toString
    else if (value.isInstanceOf[BigDecimal]) value.toString
    else if (value.isInstanceOf[util.Date]) dayText(Math.floorDiv(number(value), dayMs))
    else dayText(number(value))

  /** It has no year 0, and no sign. */
  private def dayText(number: Long): String = {
    val date = LocalDate.ofEpochDay(number)
    val year = date.getYear
    val shown = String.valueOf(if (year > 0) year else 1 - year)
    val rest = date.withYear(2000).toString.substring(4)
    "0".repeat(Math.max(0, 4 - shown.length)) + shown + rest + (if (year > 0) "" else " BC")
  }

  private def isDay(name: String): Boolean =
    day.equals(name) || "org.apache.kafka.connect.data.Date".equals(name)

  /** Whether it is a number that another key of the topic may be equal to. */
  def isTwoKeys(value: Any): Boolean =
    (value.isInstanceOf[java.lang.Double] || value.isInstanceOf[java.lang.Float]) && {
      val number = value.asInstanceOf[Number].doubleValue
      number.isNaN || number == 0 && 1 / number < 0
    }
}
