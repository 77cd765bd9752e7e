package mesh

import java.math.{BigDecimal, BigInteger}
import java.sql.Types
import java.util

import io.debezium.sink.column.ColumnDescriptor
import org.apache.kafka.connect.data.Struct

/**
 * Whether a column of PostgreSQL has a value as it is: the database rounds what is finer than the
 * column, and leaves out what it has no place for. [[ExactColumns]] asks this.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object ColumnValues {
  /** PostgreSQL makes a decimal of so many digits of a double, and of a float. */
  private val digitsOfDouble = 15
  private val digitsOfFloat = 6
  private val mostDigits = 1000
  private val mostPlaces = 6
  private val anyScale = "io.debezium.data.VariableScaleDecimal"
  private val debezium = "io.debezium.time."
  private val connect = "org.apache.kafka.connect.data."

  /** Whether some value of a type might be another one there; `kind` is the schema's name. */
  def isLookedAt(column: ColumnDescriptor, kind: String): Boolean =
    column.getJdbcType match {
      case Types.NUMERIC | Types.DECIMAL | Types.DOUBLE | Types.FLOAT | Types.REAL => true
      case Types.BIGINT | Types.INTEGER | Types.SMALLINT => anyScale.equals(kind)
      case Types.DATE | Types.TIME | Types.TIME_WITH_TIMEZONE => isTime(kind)
      case Types.TIMESTAMP | Types.TIMESTAMP_WITH_TIMEZONE =>
        isTime(kind) && column.getScale < mostPlaces
      case _ => false
    }

  /** Whether the column has the value as it is. */
  def isExact(column: ColumnDescriptor, kind: String, value: Any): Boolean =
    column.getJdbcType match {
      case Types.NUMERIC | Types.DECIMAL => isExactDecimal(column, value)
      case Types.BIGINT | Types.INTEGER | Types.SMALLINT =>
        !value.isInstanceOf[Struct] || decimal(value).scale <= 0
      case Types.DOUBLE | Types.FLOAT => isExactDouble(value)
      case Types.REAL => isExactFloat(value)
      case Types.DATE => !isText(kind) && (!isNumber(value) || number(value) % unitsOfDay(kind) == 0)
      case Types.TIME | Types.TIME_WITH_TIMEZONE =>
        !kind.endsWith("Timestamp") && placesOf(kind, value) <= column.getScale
      case _ => placesOf(kind, value) <= column.getScale
    }

  private def isExactDecimal(column: ColumnDescriptor, value: Any): Boolean = {
    // one without a precision says that it has more digits than any can have
    val places =
      if (column.getPrecision > 0 && column.getPrecision <= mostDigits) column.getScale
      else Integer.MAX_VALUE
    if (value.isInstanceOf[java.lang.Double]) {
      val number = value.asInstanceOf[java.lang.Double].doubleValue
      !isFinite(number) || fits(new BigDecimal(java.lang.Double.toString(number)), digitsOfDouble, places)
    } else if (value.isInstanceOf[java.lang.Float]) {
      val number = value.asInstanceOf[java.lang.Float].doubleValue
      !isFinite(number) || fits(new BigDecimal(number), digitsOfFloat, places)
    } else if (value.isInstanceOf[Struct]) decimal(value).scale <= places
    else true
  }

  private def isFinite(number: Double): Boolean =
    !java.lang.Double.isNaN(number) && !java.lang.Double.isInfinite(number)

  private def fits(number: BigDecimal, digits: Int, places: Int): Boolean = {
    val shortest = number.stripTrailingZeros
    shortest.precision <= digits && shortest.scale <= places
  }

  /** What Debezium has for a decimal without a scale; [[ExactValues]] has looked at its size. */
  private def decimal(value: Any): BigDecimal = {
    val found = value.asInstanceOf[Struct]
    new BigDecimal(new BigInteger(found.getBytes("value")), found.getInt32("scale").intValue)
      .stripTrailingZeros
  }

  private def isExactDouble(value: Any): Boolean =
    if (value.isInstanceOf[java.lang.Long]) {
      val number = value.asInstanceOf[java.lang.Long].longValue
      new BigDecimal(number.toDouble).compareTo(new BigDecimal(number)) == 0
    } else if (value.isInstanceOf[BigDecimal]) {
      val number = value.asInstanceOf[BigDecimal].doubleValue
      isFinite(number) && isSame(value, java.lang.Double.toString(number))
    } else true

  private def isExactFloat(value: Any): Boolean =
    if (value.isInstanceOf[java.lang.Long] || value.isInstanceOf[java.lang.Integer]) {
      val number = value.asInstanceOf[Number].longValue
      new BigDecimal(number.toFloat.toDouble).compareTo(new BigDecimal(number)) == 0
    } else if (value.isInstanceOf[BigDecimal]) {
      val number = value.asInstanceOf[BigDecimal].floatValue
      isFinite(number.toDouble) && isSame(value, java.lang.Float.toString(number))
    } else true

  private def isSame(decimal: Any, text: String): Boolean =
    new BigDecimal(text).compareTo(decimal.asInstanceOf[BigDecimal]) == 0

  private def isTime(kind: String): Boolean =
    kind != null && (kind.startsWith(debezium) && (isText(kind) || digitsOf(kind) >= 0) ||
      kind.startsWith(connect) && digitsOf(kind) >= 0)

  private def isText(kind: String): Boolean = kind.startsWith("io.debezium.time.Zoned")

  /** How many places behind the second a number of a type counts; -1 of no time. */
  private def digitsOf(kind: String): Int =
    kind match {
      case "io.debezium.time.Time" | "io.debezium.time.Timestamp" => 3
      case "org.apache.kafka.connect.data.Time" | "org.apache.kafka.connect.data.Timestamp" => 3
      case "io.debezium.time.MicroTime" | "io.debezium.time.MicroTimestamp" => 6
      case "io.debezium.time.NanoTime" | "io.debezium.time.NanoTimestamp" => 9
      case _ => -1
    }

  private def unitsOfDay(kind: String): Long = {
    var units = 86400L
    var left = digitsOf(kind)
    while (left > 0) {
      units *= 10
      left -= 1
    }
    units
  }

  /** Places behind the second that a value needs. */
  private def placesOf(kind: String, value: Any): Int =
    if (value.isInstanceOf[String]) placesOf(value.asInstanceOf[String])
    else if (!isNumber(value)) 0
    else {
      var places = digitsOf(kind)
      var left = number(value)
      while (places > 0 && left % 10 == 0) {
        left /= 10
        places -= 1
      }
      places
    }

  private def placesOf(text: String): Int = {
    val point = text.indexOf('.')
    var places = 0
    var index = point + 1
    while (point >= 0 && index < text.length && Character.isDigit(text.charAt(index))) {
      if (text.charAt(index) != '0') places = index - point
      index += 1
    }
    places
  }

  private def isNumber(value: Any): Boolean =
    value.isInstanceOf[Number] || value.isInstanceOf[util.Date]

  private def number(value: Any): Long =
    if (value.isInstanceOf[util.Date]) value.asInstanceOf[util.Date].getTime
    else value.asInstanceOf[Number].longValue
}
