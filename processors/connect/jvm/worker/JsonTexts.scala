package mesh

import java.io.IOException

import com.fasterxml.jackson.core.{JsonFactory, JsonToken, StreamReadConstraints}

/**
 * Which texts PostgreSQL takes for JSON, in a column of `jsonb` as well. Nothing of Scala's own library is used, so that Connect needs no
 * more jars for it.
 */
object JsonTexts {
  /** As long, and nearly as deep, as PostgreSQL takes. */
  private val bounds = StreamReadConstraints.builder
    .maxNumberLength(Int.MaxValue).maxNameLength(Int.MaxValue).maxStringLength(Int.MaxValue)
    .maxNestingDepth(5000).build
  private val factory = new JsonFactory().setStreamReadConstraints(bounds)

  /** Whether it is one value, in which no text has a character that PostgreSQL has not. */
  def isOne(text: String): Boolean =
    try {
      val parser = factory.createParser(text)
      try {
        var token = parser.nextToken()
        var found = token != null
        var level = 0
        while (found && token != null) {
          if (token.isStructStart) level += 1
          else if (token.isStructEnd) level -= 1
          found =
            if (token.isNumeric) isNumber(parser.getText)
            else !isText(token) || isOfPostgres(parser.getText)
          token = parser.nextToken()
          found = found && (level > 0 || token == null)
        }
        found
      } finally parser.close()
    } catch {
      case _: IOException => false
    }

  /** Whether it has no more places than a decimal of PostgreSQL's: `jsonb` has numbers as these. */
  private def isNumber(text: String): Boolean = {
    val mark = Math.max(text.indexOf('e'), text.indexOf('E'))
    val end = if (mark < 0) text.length else mark
    val point = text.indexOf('.')
    val behind = if (point < 0) 0 else end - point - 1
    val before = (if (point < 0) end else point) - (if (text.startsWith("-")) 1 else 0)
    try {
      val exponent = if (mark < 0) 0L else Integer.parseInt(text.substring(mark + 1)).toLong
      behind - exponent <= ExactValues.mostBehind && before + exponent <= ExactValues.mostBefore
    } catch { case _: NumberFormatException => false }
  }

  /** Without U+0000, and without one half of a character: `json` has both, and `jsonb` neither. */
  private def isOfPostgres(text: String): Boolean = {
    var index = 0
    var whole = true
    while (whole && index < text.length) {
      val one = text.codePointAt(index)
      whole = one != 0 && (one < Character.MIN_SURROGATE || one > Character.MAX_SURROGATE)
      index += Character.charCount(one)
    }
    whole
  }

  private def isText(token: JsonToken): Boolean =
    JsonToken.VALUE_STRING.equals(token) || JsonToken.FIELD_NAME.equals(token)
}
