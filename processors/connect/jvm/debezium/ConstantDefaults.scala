package mesh

import java.util

import io.debezium.relational.Column

/**
 * Which defaults of columns are values: PostgreSQL tells a default as an expression, and Debezium takes
 * a value out of it without computing it. Of `now()` it makes 1970, of `current_user` a text, of
 * `'a' || 'c'` a. Such a value becomes the default of the topic's field, and all that reads earlier
 * records by the newer schema has it.
 *
 * PostgreSQL leaves casts to the column's type out of the text: `1.565` is 1.57 in a `numeric(5,2)`, and
 * `'0.1'::real` another number in a `double precision`. A default is a value where the text is written
 * as the column's type stores it.
 *
 * [[PatchDebezium]] has the connector ask this. Nothing of Scala's own library is used, so that Connect
 * needs no more jars for it.
 */
object ConstantDefaults {
  /** PostgreSQL has no more digits; a numeric without a precision says that it has more. */
  private val mostDigits = 1000
  /** What a type is called in an expression -> in the catalog, where these differ. */
  private val names = util.Map.ofEntries(
    util.Map.entry("smallint", "int2"),
    util.Map.entry("integer", "int4"),
    util.Map.entry("bigint", "int8"),
    util.Map.entry("real", "float4"),
    util.Map.entry("double precision", "float8"),
    util.Map.entry("boolean", "bool"),
    util.Map.entry("character", "bpchar"),
    util.Map.entry("character varying", "varchar"),
    util.Map.entry("bit varying", "varbit"),
    util.Map.entry("time without time zone", "time"),
    util.Map.entry("time with time zone", "timetz"),
    util.Map.entry("timestamp without time zone", "timestamp"),
    util.Map.entry("timestamp with time zone", "timestamptz"),
    util.Map.entry("smallserial", "int2"),
    util.Map.entry("serial", "int4"),
    util.Map.entry("bigserial", "int8"))
  private val whole = util.Set.of("int2", "int4", "int8")
  private val numbers = util.Set.of("", "int2", "int4", "int8", "numeric")
  private val texts = util.Set.of("", "text", "varchar")
  private val moments = util.Set.of("date", "time", "timetz", "timestamp", "timestamptz")
  private val words = util.Set.of("", "bool", "true", "false")

  /** The text of a default that is a value of its column; null of any other. */
  def constant(column: Column, text: String): String = {
    val value = if (text == null) null else text.trim
    if (value != null && (isNull(value) || isStored(column, value))) text else null
  }

  private def isNull(text: String): Boolean = text.equals("NULL") || text.startsWith("NULL::")

  private def isStored(column: Column, text: String): Boolean = {
    val begin = if (text.startsWith("B'")) 1 else 0
    if (!text.startsWith("'", begin)) isWord(text) && isOf(column, "", text, false)
    else {
      val end = endOfText(text, begin + 1)
      if (end < 0) false
      else {
        val rest = text.substring(end)
        val inner = text.substring(begin + 1, end - 1).replace("''", "'")
        if (rest.isEmpty) isOf(column, if (begin == 1) "bit" else "", inner, true)
        else rest.startsWith("::") && isType(rest.substring(2)) &&
          isOf(column, catalogName(rest.substring(2)), inner, true)
      }
    }
  }

  /** Whether a value that is told with a type, or none, is what the column has. */
  private def isOf(column: Column, told: String, value: String, quoted: Boolean): Boolean = {
    val kind = catalogName(column.typeName)
    if (whole.contains(kind)) numbers.contains(told) && isNumber(value) && isPlain(value, 0)
    else if (kind.equals("numeric")) numbers.contains(told) && isNumber(value) && isPlain(value, placesOf(column))
    else if (kind.equals("float4") || kind.equals("float8"))
      (numbers.contains(told) || told.equals(kind)) && isNumber(value)
    else if (kind.equals("bool")) words.contains(told) && words.contains(value)
    else if (kind.equals("text")) texts.contains(told)
    // PostgreSQL cuts blanks off, or fills it up with them
    else if (kind.equals("varchar")) texts.contains(told) && (column.length < 0 || lengthOf(value) <= column.length)
    else if (kind.equals("bpchar"))
      (texts.contains(told) || told.equals(kind)) && lengthOf(value) == column.length
    else if (kind.equals("varbit")) told.equals("bit") || told.equals(kind)
    else if (moments.contains(kind)) told.equals(kind) && isMoment(value)
    // it may have fields, which are not told: nothing is left of none
    else if (kind.equals("interval")) value.equals("00:00:00")
    else quoted && told.equals(kind)
  }

  /** The last part of a type's name, without quotes. */
  private def catalogName(told: String): String = {
    val bare = told.replace("\"", "")
    val plain = bare.substring(bare.lastIndexOf('.'.toInt) + 1).trim
    names.getOrDefault(plain, plain)
  }

  private def lengthOf(text: String): Int = text.codePointCount(0, text.length)

  /** How many places behind the point a numeric keeps. */
  private def placesOf(column: Column): Int = {
    val scale = column.scale
    if (column.length <= 0 || column.length > mostDigits || !scale.isPresent) Integer.MAX_VALUE
    // one below 0 is told as a very large one
    else if (scale.get.intValue > mostDigits) -1
    else scale.get.intValue
  }

  /** Whether a number has no exponent, and at most so many places behind the point. */
  private def isPlain(number: String, places: Int): Boolean = {
    val point = number.indexOf('.')
    val behind = if (point < 0) 0 else number.length - point - 1
    number.indexOf('e') < 0 && number.indexOf('E') < 0 && behind <= places
  }

  /** Behind the quote that ends a text; -1 without one. */
  private def endOfText(text: String, from: Int): Int = {
    var at = from
    var end = -1
    while (end < 0 && at < text.length) {
      if (text.charAt(at) != '\'') at += 1
      else if (at + 1 < text.length && text.charAt(at + 1) == '\'') at += 2
      else end = at + 1
    }
    end
  }

  /** A number, or a word that is a value. */
  private def isWord(head: String): Boolean =
    head.equals("true") || head.equals("false") || isNumber(head)

  private def isNumber(head: String): Boolean = {
    var digits = 0
    var others = 0
    var at = if (head.startsWith("-")) 1 else 0
    while (at < head.length) {
      val letter = head.charAt(at)
      val exponent = (letter == 'e' || letter == 'E') && digits > 0
      if (letter >= '0' && letter <= '9') digits += 1
      else if (exponent && at + 1 < head.length && "+-".indexOf(head.charAt(at + 1).toInt) >= 0) at += 1
      else if (!exponent && letter != '.') others += 1
      at += 1
    }
    digits > 0 && others == 0
  }

  /** Whether it is a time of whole seconds: fewer places than a text has may be kept. */
  private def isMoment(value: String): Boolean = {
    var at = 0
    while (at < value.length && "0123456789-:+ ".indexOf(value.charAt(at).toInt) >= 0) at += 1
    at == value.length && at > 0
  }

  /** Whether it is the name of a type, without a length, to which the text would still be cut or filled. */
  private def isType(name: String): Boolean = {
    var at = 0
    while (at < name.length &&
      (Character.isLetterOrDigit(name.charAt(at)) || " _.\"".indexOf(name.charAt(at).toInt) >= 0)) at += 1
    at == name.length && at > 0
  }
}
