package mesh

import java.nio.ByteBuffer
import java.util
import java.util.regex.Pattern

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.connect.data.{Schema, Struct}
import org.apache.kafka.connect.sink.SinkRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Refuses a record out of whose schemas Debezium's JDBC sink would make a statement that nobody
 * wrote: it puts names of fields, and of their schemas defaults and parameters, into CREATE TABLE,
 * ALTER TABLE and INSERT, and does not escape them. So names are plain, and texts need no escape.
 *
 * Any other record passes unchanged. The error begins with a code, names the record's place and the
 * field, with what is not plain escaped. Values are bound by the sink, and need no look.
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
class PlainNames extends Transformation[SinkRecord] {
  private val topics = Pattern.compile("[A-Za-z0-9._-]{1,249}")
  private val names = Pattern.compile("[A-Za-z_][A-Za-z0-9_]{0,62}")
  // no modifier letters: U+02BC becomes a quote in some encodings
  private val texts =
    Pattern.compile("[\\p{Lu}\\p{Ll}\\p{Lo}\\p{Nd} _.,:+/@#()\\[\\]{}=%*!<>-]{0,1000}")
  private val types = Pattern.compile("[A-Za-z0-9_ (),.\\[\\]-]{0,100}")
  private val mostSchemas = 10000
  private val mostLevels = 50
  private val longestShown = 100
  private val known = new util.IdentityHashMap[Schema, Schema]()
  // schemas below those that are known: as many as one may have are kept, of all topics
  private var knownSchemas = 0

  override def config: ConfigDef = new ConfigDef()

  override def configure(settings: util.Map[String, _]): Unit = ()

  override def apply(record: SinkRecord): SinkRecord = {
    if (!topics.matcher(record.topic).matches)
      throw refusal(record, "name_not_plain", record.topic, "route it to a topic of another name")
    check(record, record.keySchema, record.key, "key")
    check(record, record.valueSchema, record.value, "value")
    record
  }

  override def close(): Unit = ()

  private def check(record: SinkRecord, schema: Schema, value: Any, side: String): Unit =
    if (schema != null) {
      if (!known.containsKey(schema)) {
        val found = walk(record, schema, side)
        if (knownSchemas + found > mostSchemas) {
          known.clear()
          knownSchemas = 0
        }
        known.put(schema, schema)
        knownSchemas += found
      }
    } else if (value.isInstanceOf[util.Map[_, _]] || value.isInstanceOf[util.List[_]])
      throw refusal(record, "schema_missing", side, "write it with a schema")

  /** How many schemas the record's has; throws RefusedException for one that is not plain. */
  private def walk(record: SinkRecord, root: Schema, side: String): Int = {
    val schemas = new util.ArrayDeque[Schema]()
    val places = new util.ArrayDeque[String]()
    val seen = new util.IdentityHashMap[Schema, Schema]()
    schemas.push(root)
    places.push(side)
    while (!schemas.isEmpty) {
      val schema = schemas.pop()
      val place = places.pop()
      if (!seen.containsKey(schema)) {
        seen.put(schema, schema)
        if (seen.size > mostSchemas)
          throw refusal(record, "schema_too_large", place, "write it with fewer fields")
        if (!isPlain(schema.defaultValue, 0))
          throw refusal(record, "default_not_plain", place,
            "leave its default out, or make it of letters, digits, spaces and _.,:+/@#()[]{}=%*!<>-")
        requireParameters(record, schema, place)
        val kind = schema.`type`
        if (Schema.Type.STRUCT.equals(kind)) {
          val fields = schema.fields
          var index = 0
          while (index < fields.size) {
            val field = fields.get(index)
            if (!names.matcher(field.name).matches)
              throw refusal(record, "name_not_plain", field.name,
                "name it with letters, digits and _, at most 63, no digit first")
            schemas.push(field.schema)
            places.push(field.name)
            index += 1
          }
        } else if (Schema.Type.ARRAY.equals(kind)) {
          schemas.push(schema.valueSchema)
          places.push(place)
        } else if (Schema.Type.MAP.equals(kind)) {
          schemas.push(schema.keySchema)
          places.push(place)
          schemas.push(schema.valueSchema)
          places.push(place)
        }
      }
    }
    seen.size
  }

  private def requireParameters(record: SinkRecord, schema: Schema, place: String): Unit = {
    val parameters = schema.parameters
    if (parameters != null) {
      val entries = parameters.entrySet.iterator
      while (entries.hasNext) {
        val entry = entries.next()
        if (!isPlainParameter(entry.getKey, entry.getValue))
          throw refusal(record, "parameter_not_plain", place,
            "leave the schema's parameter " + shown(entry.getKey) + " out, or make it a plain text")
      }
    }
  }

  /** What a converter keeps of Avro's own, such as a doc, is of no use to the sink. */
  private def isPlainParameter(name: String, value: String): Boolean =
    if (name.startsWith("__debezium.")) types.matcher(value).matches
    else name.startsWith("io.confluent.connect.avro.") || name.startsWith("connect.record.") ||
      texts.matcher(value).matches

  private def isPlain(value: Any, level: Int): Boolean =
    if (level > mostLevels) false
    else if (value.isInstanceOf[String])
      texts.matcher(value.asInstanceOf[String]).matches
    else if (value.isInstanceOf[Struct]) arePlain(value.asInstanceOf[Struct], level)
    else if (value.isInstanceOf[util.Map[_, _]]) {
      val entries = value.asInstanceOf[util.Map[_, _]]
      arePlain(entries.keySet, level) && arePlain(entries.values, level)
    } else if (value.isInstanceOf[util.List[_]])
      arePlain(value.asInstanceOf[util.List[_]], level)
    else
      value == null || value.isInstanceOf[Number] || value.isInstanceOf[java.lang.Boolean] ||
      value.isInstanceOf[util.Date] || value.isInstanceOf[ByteBuffer] ||
      value.isInstanceOf[Array[Byte]]

  private def arePlain(values: util.Collection[_], level: Int): Boolean = {
    val items = values.iterator
    var plain = true
    while (plain && items.hasNext) plain = isPlain(items.next(), level + 1)
    plain
  }

  private def arePlain(struct: Struct, level: Int): Boolean = {
    val fields = struct.schema.fields
    var plain = true
    var index = 0
    while (plain && index < fields.size) {
      plain = isPlain(struct.getWithoutDefault(fields.get(index).name), level + 1)
      index += 1
    }
    plain
  }

  private def refusal(record: SinkRecord, code: String, name: String, step: String): RefusedException =
    new RefusedException(
      code + ": " + record.originalTopic + "-" + record.originalKafkaPartition + " at offset " +
        record.originalKafkaOffset + ": " + shown(name) + ": a JDBC sink would put it into a " +
        "statement as it is: " + step)

  private def shown(name: String): String = {
    val text = new java.lang.StringBuilder()
    var index = 0
    while (index < name.length && text.length < longestShown) {
      val one = name.charAt(index)
      if (one < 128 && (Character.isLetterOrDigit(one) || one == '_')) text.append(one)
      else text.append("\\u").append(util.HexFormat.of().toHexDigits(one))
      index += 1
    }
    text.toString
  }
}
