package mesh

import java.util

import org.apache.avro.{Schema => AvroSchema}
import org.apache.kafka.common.cache.Cache
import org.apache.kafka.connect.data.Schema
import org.apache.kafka.connect.errors.DataException

/**
 * Bounds what the converters of all connectors keep of schemas. Connect's copy of one holds each
 * record as often as it is named, and a converter kept a thousand copies: a hundred schemas of some
 * kilobytes each filled the heap that all domains share. [[PatchConverter]] has the converter ask
 * this where it asked its caches. It also refuses a decimal that Avro and Connect read differently.
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
          while (fields.hasNext && sum <= mostTypes) sum += expanded(fields.next().schema, known)
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
