package mesh

import java.io.IOException

import com.fasterxml.jackson.core.{JsonFactory, JsonToken, StreamReadConstraints}

/**
 * Which texts PostgreSQL takes for JSON. Nothing of Scala's own library is used, so that Connect needs no
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
          found = !isText(token) || !ExactValues.hasNoText(parser.getText)
          token = parser.nextToken()
          found = found && (level > 0 || token == null)
        }
        found
      } finally parser.close()
    } catch {
      case _: IOException => false
    }

  private def isText(token: JsonToken): Boolean =
    JsonToken.VALUE_STRING.equals(token) || JsonToken.FIELD_NAME.equals(token)
}
