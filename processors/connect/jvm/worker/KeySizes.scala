package mesh

import java.math.BigDecimal
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets
import java.util

import org.apache.kafka.connect.data.Struct

/**
 * How large a record's key is in an index of PostgreSQL, at most: one that is too large for it would
 * end the sink. PostgreSQL may press a text together first, of which nobody knows before how small it
 * becomes.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object KeySizes {
  /** A B-tree has 2704 bytes for an entry, with 8 of its own. */
  val most = 2600
  /** A value that is no text, or the length of one, and the space before the next one. */
  private val ofOne = 24
  private val ofText = 8

  def of(key: Struct): Long = {
    val fields = key.schema.fields.iterator
    var size = 0L
    while (fields.hasNext) size += ofValue(key.getWithoutDefault(fields.next().name))
    size
  }

  private def ofValue(value: Any): Long =
    if (value.isInstanceOf[String])
      ofText + value.asInstanceOf[String].getBytes(StandardCharsets.UTF_8).length
    else if (value.isInstanceOf[Array[Byte]]) ofText + value.asInstanceOf[Array[Byte]].length
    else if (value.isInstanceOf[ByteBuffer]) ofText + value.asInstanceOf[ByteBuffer].remaining
    else if (value.isInstanceOf[BigDecimal])
      // two digits are a byte
      ofOne + value.asInstanceOf[BigDecimal].unscaledValue.bitLength / 6
    else if (value.isInstanceOf[Struct])
      // one of any scale, whose bytes PostgreSQL has as decimal digits
      ofOne + of(value.asInstanceOf[Struct]) * 5 / 4
    else if (value.isInstanceOf[util.List[_]]) {
      val items = value.asInstanceOf[util.List[_]].iterator
      var size = ofOne.toLong
      while (items.hasNext) size += ofValue(items.next())
      size
    } else ofOne
}
