package mesh

import java.nio.charset.StandardCharsets
import java.util

import org.apache.avro.{JsonProperties, Schema => AvroSchema}
import org.apache.kafka.common.cache.Cache
import org.apache.kafka.connect.data.Schema
import org.apache.kafka.connect.errors.DataException

/**
 * Bounds what the converters of all connectors keep of schemas. Connect's copy of one holds each
 * record as often as it is named, and a converter kept a thousand copies: a hundred schemas of some
 * kilobytes each filled the heap that all domains share. [[PatchConverter]] has the converter ask
 * this where it asked its caches. It also refuses a decimal and a default that Avro and Connect read
 * differently.
 *
 * Nothing of Scala's own library is used, as in [[PlainNames]].
 */
object BoundedSchemas {
  /** Types of one schema; a table of 1600 columns is 3200 of them, and some. */
  private val mostTypes = 10000
  /** Types of all schemas that are kept, some hundred bytes each. */
  private val mostKept = 40000

  private final class Kept(val cache: Cache[AnyRef, AnyRef], val key: AnyRef, val types: Int)
  private val kept = new util.ArrayDeque[Kept]()
  private var types = 0

  /** Connect's schema of `schema`, if it is kept; throws DataException where it would be too large. */
  def get(cache: Cache[AnyRef, AnyRef], key: AnyRef, schema: AvroSchema): AnyRef = {
    val found = cache.get(key)
    if (found == null) require(schema)
    found
  }

  /** Keeps a schema, and lets go of those that came before it where all are too many. */
  def put(cache: Cache[AnyRef, AnyRef], key: AnyRef, value: AnyRef): Unit = {
    val one = new Kept(cache, key, if (value.isInstanceOf[Schema]) typesOf(value) else typesOf(key))
    synchronized {
      cache.put(key, value)
      kept.add(one)
      types += one.types
      while (types > mostKept && kept.size > 1) {
        val first = kept.poll()
        first.cache.remove(first.key)
        types -= first.types
      }
    }
  }

  private def require(schema: AvroSchema): Unit =
    if (expanded(schema, new util.IdentityHashMap[AvroSchema, Integer]()) > mostTypes)
      throw new DataException(
        "schema_too_large: " + schema.getFullName + " has more than " + mostTypes + " types, each " +
          "record counted as often as it is named: write it with fewer fields")

  /** Types of Connect's copy, up to one more than are allowed. */
  private def expanded(schema: AvroSchema, known: util.IdentityHashMap[AvroSchema, Integer]): Int = {
    val found = known.get(schema)
    if (found != null) found.intValue
    else {
      // what names itself is not copied there
      known.put(schema, Integer.valueOf(1))
      var sum = 1
      schema.getType match {
        case AvroSchema.Type.RECORD =>
          val fields = schema.getFields.iterator
          while (fields.hasNext && sum <= mostTypes) {
            val field = fields.next()
            requireOneDefault(field)
            sum += expanded(field.schema, known)
          }
        case AvroSchema.Type.UNION =>
          val branches = schema.getTypes.iterator
          while (branches.hasNext && sum <= mostTypes) sum += expanded(branches.next(), known)
        case AvroSchema.Type.ARRAY => sum += expanded(schema.getElementType, known)
        case AvroSchema.Type.MAP => sum += expanded(schema.getValueType, known)
        case AvroSchema.Type.BYTES | AvroSchema.Type.FIXED => requireOneScale(schema)
        case _ =>
      }
      sum = Math.min(sum, mostTypes + 1)
      known.put(schema, Integer.valueOf(sum))
      sum
    }
  }

  /** Avro and Connect have a place for it each. */
  private def requireOneScale(schema: AvroSchema): Unit = {
    val parameters = schema.getObjectProp("connect.parameters")
    if ("decimal".equals(schema.getProp("logicalType")) && parameters.isInstanceOf[util.Map[_, _]]) {
      val ofConnect = parameters.asInstanceOf[util.Map[_, _]].get("scale")
      val ofAvro = schema.getObjectProp("scale")
      val scale = if (ofAvro == null) "0" else ofAvro.toString
      if (ofConnect != null && !scale.equals(ofConnect.toString))
        throw new RefusedException(
          "schema_ambiguous: a decimal: it has the scale " + scale + " by Avro's scale, and another one " +
            "by connect.parameters")
    }
  }

  /** Likewise: a table's column would have another default than Avro's readers see. */
  private def requireOneDefault(field: AvroSchema.Field): Unit =
    if (field.hasDefaultValue) {
      val schema = field.schema
      if (!AvroSchema.Type.UNION.equals(schema.getType)) requireOneDefault(field, schema)
      else {
        val branches = schema.getTypes.iterator
        while (branches.hasNext) requireOneDefault(field, branches.next())
      }
    }

  private def requireOneDefault(field: AvroSchema.Field, schema: AvroSchema): Unit = {
    val ofConnect = schema.getObjectProp("connect.default")
    if (ofConnect != null && !isSame(field.defaultVal, ofConnect))
      throw new RefusedException(
        "schema_ambiguous: a default: " + field.name + " has one by Avro, and another one by connect.default")
  }

  /** Whether a default of Avro's is what a property of the schema says; both were JSON. */
  private def isSame(ofAvro: Any, ofConnect: Any): Boolean = ofAvro match {
    case bytes: Array[Byte] =>
      new String(bytes, StandardCharsets.ISO_8859_1).equals(ofConnect)
    case float: java.lang.Float =>
      ofConnect match {
        case number: Number => float.equals(java.lang.Float.valueOf(number.floatValue))
        case _ => float.toString.equals(ofConnect)
      }
    case double: java.lang.Double =>
      ofConnect match {
        case number: Number => double.equals(java.lang.Double.valueOf(number.doubleValue))
        case _ => double.toString.equals(ofConnect)
      }
    case whole: Number =>
      ofConnect match {
        case number: Number =>
          whole.longValue == number.longValue && whole.doubleValue == number.doubleValue
        case _ => false
      }
    case items: util.List[_] =>
      ofConnect match {
        case others: util.List[_] =>
          var same = items.size == others.size
          var index = 0
          while (same && index < items.size) {
            same = isSame(items.get(index), others.get(index))
            index += 1
          }
          same
        case _ => false
      }
    case members: util.Map[_, _] =>
      ofConnect match {
        case others: util.Map[_, _] =>
          var same = members.size == others.size
          val names = members.keySet.iterator
          while (same && names.hasNext) {
            val name = names.next()
            same = others.containsKey(name) && isSame(members.get(name), others.get(name))
          }
          same
        case _ => false
      }
    case _ =>
      val nothing = JsonProperties.NULL_VALUE
      if (ofAvro == null || nothing.equals(ofAvro)) ofConnect == null || nothing.equals(ofConnect)
      else ofAvro.equals(ofConnect)
  }

  /** Types that a schema of Connect's holds. */
  private def typesOf(root: AnyRef): Int = {
    val seen = new util.IdentityHashMap[Schema, Schema]()
    val open = new util.ArrayDeque[Schema]()
    if (root.isInstanceOf[Schema]) open.push(root.asInstanceOf[Schema])
    while (!open.isEmpty) {
      val schema = open.pop()
      if (schema != null && seen.put(schema, schema) == null) {
        val kind = schema.`type`
        if (Schema.Type.STRUCT.equals(kind)) {
          val fields = schema.fields
          var index = 0
          while (index < fields.size) {
            open.push(fields.get(index).schema)
            index += 1
          }
        } else if (Schema.Type.ARRAY.equals(kind)) open.push(schema.valueSchema)
        else if (Schema.Type.MAP.equals(kind)) {
          open.push(schema.keySchema)
          open.push(schema.valueSchema)
        }
      }
    }
    Math.max(1, seen.size)
  }
}
