package mesh

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util

import org.apache.kafka.common.config.ConfigDef
import org.apache.kafka.common.config.ConfigDef.{Importance, Type}
import org.apache.kafka.connect.data.{Decimal, Field, Schema, Struct}
import org.apache.kafka.connect.source.SourceRecord
import org.apache.kafka.connect.transforms.Transformation

/**
 * Fails the task at a change event of Debezium that does not hold the whole row:
 *
 *  - a large value that the change left as it was, which PostgreSQL does not write to its log
 *    unless the table has REPLICA IDENTITY FULL: Debezium puts a placeholder in its place, or null
 *    where the type has no placeholder;
 *  - a TRUNCATE, which removes rows without naming them;
 *  - a key without fields, which all rows would have: Debezium leaves a column out whose type it does
 *    not know;
 *  - no key, of a table that is none of those without: it has lost its primary key.
 *
 * Any other record passes unchanged, but that its `source` says what Debezium leaves to the schema's
 * defaults (`snapshot`). The error names table and column, and begins with a code.
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
class WholeRows extends Transformation[SourceRecord] {
  private var forms = new util.HashSet[String]()
  private var bytes = new Array[Byte](0)
  /** Tables without a primary key; null where that is not known. */
  private var keyless: util.Set[String] = _

  override def config: ConfigDef = new ConfigDef()
    .define("placeholder", Type.STRING, Importance.HIGH, "Debezium's unavailable.value.placeholder")
    .define("keyless", Type.STRING, null, Importance.HIGH, "tables without a primary key, with commas")

  override def configure(settings: util.Map[String, _]): Unit = {
    val tables = settings.get("keyless").asInstanceOf[String]
    keyless = if (tables == null) null else new util.HashSet[String](util.Arrays.asList(tables.split(","): _*))
    val text = settings.get("placeholder").asInstanceOf[String]
    bytes = text.getBytes(UTF_8)
    forms = new util.HashSet[String]()
    forms.add(text)
    forms.add(util.Base64.getEncoder.encodeToString(bytes))
    forms.add(util.Base64.getUrlEncoder.encodeToString(bytes))
    forms.add(util.HexFormat.of().formatHex(bytes))
    forms.add(util.UUID.nameUUIDFromBytes(bytes).toString)
  }

  override def apply(record: SourceRecord): SourceRecord = {
    val value = record.value
    if (value.isInstanceOf[Struct]) {
      val change = value.asInstanceOf[Struct]
      if (isChange(change.schema)) {
        // it has no key, whatever the others of its table have
        if ("t".equals(change.getString("op")))
          throw new RefusedException(
            "table_truncated: " + table(change) + " was truncated, which names no row to delete")
        if (isNoKey(record.keySchema))
          throw new RefusedException(
            "key_not_captured: " + table(change) + ": its records would have one key, without fields")
        if (record.keySchema == null && keyless != null && !keyless.contains(table(change)))
          throw new RefusedException(
            "key_lost: " + table(change) + ": it had a primary key when it was last looked at")
        require(change, isOfKnownRow(record, change))
        if (change.getStruct("source") != null) tellDefaults(change.getStruct("source"))
      }
    }
    record
  }

  override def close(): Unit = ()

  /** Null is the value of a field that may be null: see [[NullFields]]. */
  private def tellDefaults(source: Struct): Unit = {
    val fields = source.schema.fields
    var index = 0
    while (index < fields.size) {
      val field = fields.get(index)
      if (source.getWithoutDefault(field.name) == null && field.schema.defaultValue != null)
        source.put(field, field.schema.defaultValue)
      index += 1
    }
  }

  private def isNoKey(schema: Schema): Boolean =
    schema != null && Schema.Type.STRUCT.equals(schema.`type`) && schema.fields.isEmpty

  private def isChange(schema: Schema): Boolean =
    schema.field("op") != null && schema.field("after") != null &&
      schema.field("before") != null && schema.field("source") != null

  /** Of an update, or of the insert that Debezium makes of a changed key. */
  private def isOfKnownRow(record: SourceRecord, change: Struct): Boolean =
    "u".equals(change.getString("op")) ||
      record.headers.lastWithName("__debezium.oldkey") != null

  private def require(change: Struct, isOfKnownRow: Boolean): Unit = {
    val after = change.getStruct("after")
    // a snapshot and an insert have whole rows
    if (after != null && isOfKnownRow) {
      val before = change.getStruct("before")
      val fields = after.schema.fields
      var index = 0
      while (index < fields.size) {
        val field = fields.get(index)
        if (isMissing(field, after, before, "u".equals(change.getString("op"))))
          throw new RefusedException(
            "value_not_captured: " + table(change) + "." + field.name + ": PostgreSQL left a " +
              "large value out of its log, since the table has no REPLICA IDENTITY FULL")
        index += 1
      }
    }
  }

  /** With REPLICA IDENTITY FULL the value before the change is known, and is the same. */
  private def isMissing(field: Field, after: Struct, before: Struct, update: Boolean): Boolean = {
    val value = after.getWithoutDefault(field.name)
    val known = if (before == null) null else before.getWithoutDefault(field.name)
    if (value == null) update && before == null && hasNoPlaceholder(field.schema)
    else isPlaceholder(value) && !value.equals(known)
  }

  private def hasNoPlaceholder(schema: Schema): Boolean =
    Decimal.LOGICAL_NAME.equals(schema.name) ||
      "io.debezium.data.VariableScaleDecimal".equals(schema.name) ||
      "io.debezium.data.Bits".equals(schema.name) || Schema.Type.ARRAY.equals(schema.`type`)

  private def isPlaceholder(value: Any): Boolean =
    if (value.isInstanceOf[String]) forms.contains(value)
    else if (value.isInstanceOf[ByteBuffer])
      value.asInstanceOf[ByteBuffer].equals(ByteBuffer.wrap(bytes))
    else if (value.isInstanceOf[Array[Byte]])
      util.Arrays.equals(value.asInstanceOf[Array[Byte]], bytes)
    else if (value.isInstanceOf[util.Map[_, _]])
      value.asInstanceOf[util.Map[_, _]].containsKey(new String(bytes, UTF_8))
    else if (value.isInstanceOf[util.List[_]]) isPlaceholderOf(value.asInstanceOf[util.List[_]])
    else false

  /** A list of one placeholder, or of the placeholder's bytes as numbers. */
  private def isPlaceholderOf(items: util.List[_]): Boolean =
    if (items.size == 1) isPlaceholder(items.get(0))
    else {
      var same = items.size == bytes.length
      var index = 0
      while (same && index < bytes.length) {
        val item = items.get(index)
        same = item.isInstanceOf[Number] && item.asInstanceOf[Number].longValue == bytes(index)
        index += 1
      }
      same
    }

  private def table(change: Struct): String = {
    val source = change.getStruct("source")
    source.getString("schema") + "." + source.getString("table")
  }
}
