package mesh

import java.math.{BigDecimal, BigInteger}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets
import java.util
import java.util.regex.Pattern

import org.apache.kafka.connect.data.{Schema, Struct}

/**
 * A column of a table: what it is made of below its domains, and of an array its items.
 *
 * @param kind the name of a type of `pg_catalog`.
 * @param modifier as PostgreSQL has it, -1 where there is none; of money its places.
 */
final class MadeColumn(val kind: String, val modifier: Int, val isArray: Boolean)

/**
 * Whether a column has a value as it is: the database rounds what is finer than the column, and leaves
 * out what it has no place for. [[ExactColumns]] asks this.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object ColumnValues {
  /** PostgreSQL makes a decimal of so many digits of a double, and of a float. */
  private val digitsOfDouble = 15
  private val digitsOfFloat = 6
  private val mostPlaces = 6
  /** More digits than PostgreSQL has behind the point, and than it has in all. */
  private val mostDigits = 20000
  private val longestNumber = 150000
  private val longestName = 63
  private val uuids = Pattern.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
  private val largestOid = 4294967295L
  /** What a modifier has more than the number that was declared. */
  private val header = 4

  /**
   * Whether some value might be another one there. The database has each value as it is in a column of
   * the types that are told here, or refuses it.
   */
  def isLookedAt(column: MadeColumn): Boolean =
    column.kind match {
      case "bool" | "text" | "bytea" | "json" | "jsonb" | "xml" | "bit" | "varbit" => false
      case "inet" | "cidr" | "macaddr" | "macaddr8" | "tsvector" | "tsquery" => false
      case "int4range" | "int8range" | "numrange" | "daterange" => false
      case "point" | "line" | "lseg" | "box" | "path" | "polygon" | "circle" => false
      case _ => true
    }

  /** Whether the column has a value of this schema as it is. */
  def isExact(column: MadeColumn, schema: Schema, value: Any): Boolean =
    if (value == null) true
    else if (value.isInstanceOf[util.List[_]]) {
      val items = value.asInstanceOf[util.List[_]].iterator
      var exact = column.isArray
      while (exact && items.hasNext) exact = isExact(column, schema.valueSchema, items.next())
      exact
    } else isExactItem(column, if (schema.name == null) "" else schema.name, value)

  private def isExactItem(column: MadeColumn, name: String, value: Any): Boolean =
    column.kind match {
      case "int2" | "int4" | "int8" => isExactDecimal(value, 0)
      case "numeric" => isExactDecimal(value, placesOfNumeric(column.modifier))
      case "money" => !value.isInstanceOf[String] && isExactDecimal(value, column.modifier)
      case "float8" => !value.isInstanceOf[String] && isExactDouble(value)
      case "float4" => !value.isInstanceOf[String] && isExactFloat(value)
      case "uuid" => !value.isInstanceOf[String] || uuids.matcher(value.asInstanceOf[String]).matches
      case "varchar" | "bpchar" => column.modifier < header || hasPlace(value, column.modifier - header)
      case "name" => isText(value, longestName)
      case "char" => isText(value, 1)
      case "oid" => isNumber(value) && number(value) >= 0 && number(value) <= largestOid
      case "date" | "time" | "timetz" | "timestamp" | "timestamptz"
          if name.isEmpty && value.isInstanceOf[String] =>
        false
      case "date" => !isZoned(name) && isWholeDay(name, value)
      case "time" => isInUtc(name, value) && isTimeOfDay(column, name, value)
      case "timetz" => isTimeOfDay(column, name, value)
      case "timestamp" | "timestamptz" => placesOf(name, value) <= placesOfTime(column.modifier)
      case "interval" => column.modifier == -1
      case "tsrange" | "tstzrange" =>
        !value.isInstanceOf[String] || longestFraction(value.asInstanceOf[String]) <= mostPlaces
      case _ => false
    }

  /** The number of places is below zero for one that has whole tens alone. */
  private def placesOfNumeric(modifier: Int): Int =
    if (modifier < header) Integer.MAX_VALUE
    else {
      val scale = (modifier - header) & 0x7ff
      if (scale < 1024) scale else scale - 2048
    }

  private def placesOfTime(modifier: Int): Int = if (modifier < 0) mostPlaces else modifier

  private def isTimeOfDay(column: MadeColumn, name: String, value: Any): Boolean =
    !name.endsWith("Timestamp") && placesOf(name, value) <= placesOfTime(column.modifier)

  /** Whether nothing is lost with the zone of a time of day. */
  private def isInUtc(name: String, value: Any): Boolean =
    !isZoned(name) || !value.isInstanceOf[String] || {
      val text = value.asInstanceOf[String]
      text.endsWith("Z") || text.endsWith("+00:00")
    }

  /** Spaces behind the last character that has a place are left out. */
  private def hasPlace(value: Any, characters: Int): Boolean =
    !value.isInstanceOf[String] || {
      val text = value.asInstanceOf[String]
      text.length <= characters || text.codePointCount(0, text.length) <= characters
    }

  private def isText(value: Any, bytes: Int): Boolean =
    value.isInstanceOf[String] &&
      value.asInstanceOf[String].getBytes(StandardCharsets.UTF_8).length <= bytes

  private def isExactDecimal(value: Any, places: Int): Boolean =
    if (value.isInstanceOf[java.lang.Double]) {
      val number = value.asInstanceOf[java.lang.Double].doubleValue
      !java.lang.Double.isFinite(number) || fits(new BigDecimal(java.lang.Double.toString(number)), digitsOfDouble, places)
    } else if (value.isInstanceOf[java.lang.Float]) {
      val number = value.asInstanceOf[java.lang.Float].doubleValue
      !java.lang.Double.isFinite(number) || fits(new BigDecimal(number), digitsOfFloat, places)
    } else if (value.isInstanceOf[BigDecimal]) hasPlaces(value.asInstanceOf[BigDecimal], places)
    else if (isOfAnyScale(value)) hasPlaces(decimal(value.asInstanceOf[Struct]), places)
    else if (value.isInstanceOf[Number])
      places >= 0 || hasPlaces(new BigDecimal(value.asInstanceOf[Number].longValue), places)
    else if (value.isInstanceOf[String]) isExactText(value.asInstanceOf[String], places)
    else true

  /** The items of an array are texts. What is no number, as NaN, the database has or refuses. */
  private def isExactText(text: String, places: Int): Boolean =
    text.length <= longestNumber && {
      try hasPlaces(new BigDecimal(text), places)
      catch { case _: NumberFormatException => true }
    }

  /** Whether there are zeros alone behind so many places; found without making its digits. */
  private def hasPlaces(number: BigDecimal, places: Int): Boolean = {
    val more = number.scale.toLong - places
    more <= 0 || number.signum == 0 || more <= mostDigits &&
      number.unscaledValue.remainder(BigInteger.TEN.pow(more.toInt)).signum == 0
  }

  private def fits(number: BigDecimal, digits: Int, places: Int): Boolean = {
    val shortest = number.stripTrailingZeros
    shortest.precision <= digits && shortest.scale <= places
  }

  private def isOfAnyScale(value: Any): Boolean =
    value.isInstanceOf[Struct] &&
      "io.debezium.data.VariableScaleDecimal".equals(value.asInstanceOf[Struct].schema.name)

  /** What Debezium has for a decimal without a scale; [[ExactValues]] has looked at its size. */
  private def decimal(value: Struct): BigDecimal =
    new BigDecimal(new BigInteger(value.getBytes("value")), value.getInt32("scale").intValue)

  private def isExactDouble(value: Any): Boolean =
    if (value.isInstanceOf[java.lang.Long]) {
      val number = value.asInstanceOf[java.lang.Long].longValue
      new BigDecimal(number.toDouble).compareTo(new BigDecimal(number)) == 0
    } else if (value.isInstanceOf[BigDecimal]) {
      val number = value.asInstanceOf[BigDecimal].doubleValue
      java.lang.Double.isFinite(number) && isSame(value, java.lang.Double.toString(number))
    } else true

  private def isExactFloat(value: Any): Boolean =
    if (value.isInstanceOf[java.lang.Long] || value.isInstanceOf[java.lang.Integer]) {
      val number = value.asInstanceOf[Number].longValue
      new BigDecimal(number.toFloat.toDouble).compareTo(new BigDecimal(number)) == 0
    } else if (value.isInstanceOf[java.lang.Double]) {
      val number = value.asInstanceOf[java.lang.Double].doubleValue
      !java.lang.Double.isFinite(number) || number.toFloat.toDouble == number
    } else if (value.isInstanceOf[BigDecimal]) {
      val number = value.asInstanceOf[BigDecimal].floatValue
      java.lang.Double.isFinite(number.toDouble) && isSame(value, java.lang.Float.toString(number))
    } else true

  private def isSame(decimal: Any, text: String): Boolean =
    new BigDecimal(text).compareTo(decimal.asInstanceOf[BigDecimal]) == 0

  private def isZoned(name: String): Boolean = name.startsWith("io.debezium.time.Zoned")

  /** How many places behind the second a number of a type counts; -1 of no time. */
  private def digitsOf(kind: String): Int =
    kind match {
      case "io.debezium.time.Time" | "io.debezium.time.Timestamp" => 3
      case "org.apache.kafka.connect.data.Time" | "org.apache.kafka.connect.data.Timestamp" => 3
      case "io.debezium.time.MicroTime" | "io.debezium.time.MicroTimestamp" => 6
      case "io.debezium.time.NanoTime" | "io.debezium.time.NanoTimestamp" => 9
      case _ => -1
    }

  /** What counts days is one. */
  private def isWholeDay(name: String, value: Any): Boolean =
    !isNumber(value) || digitsOf(name) < 0 || {
      var units = 86400L
      var left = digitsOf(name)
      while (left > 0) {
        units *= 10
        left -= 1
      }
      number(value) % units == 0
    }

  /** Places behind the second that a value needs; 0 of what is no time. */
  private def placesOf(name: String, value: Any): Int =
    if (value.isInstanceOf[String]) longestFraction(value.asInstanceOf[String])
    else if (!isNumber(value)) 0
    else {
      var places = Math.max(0, digitsOf(name))
      var left = number(value)
      while (places > 0 && left % 10 == 0) {
        left /= 10
        places -= 1
      }
      places
    }

  /** The most digits behind a point, without zeros at their end. */
  private def longestFraction(text: String): Int = {
    var longest = 0
    var point = -1
    var index = 0
    while (index < text.length) {
      val one = text.charAt(index)
      if (one == '.') point = index
      else if (!Character.isDigit(one)) point = -1
      else if (point >= 0 && one != '0') longest = Math.max(longest, index - point)
      index += 1
    }
    longest
  }

  private def isNumber(value: Any): Boolean =
    value.isInstanceOf[Number] || value.isInstanceOf[util.Date]

  private def number(value: Any): Long =
    if (value.isInstanceOf[util.Date]) value.asInstanceOf[util.Date].getTime
    else value.asInstanceOf[Number].longValue
}
