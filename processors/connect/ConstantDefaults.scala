package mesh

/**
 * Which defaults of columns are values: PostgreSQL tells a default as an expression, and Debezium takes
 * a value out of it without computing it. Of `now()` it makes 1970, of `current_user` a text, of
 * `'a' || 'c'` a. Such a value becomes the default of the topic's field, and all that reads earlier
 * records by the newer schema has it.
 *
 * [[PatchDebezium]] has the connector ask this. Nothing of Scala's own library is used, so that Connect
 * needs no more jars for it.
 */
object ConstantDefaults {

  /** The text of a default that is a constant, with or without a type; null of any other. */
  def constant(text: String): String =
    if (text == null || isConstant(text.trim)) text else null

  private def isConstant(text: String): Boolean = {
    val begin = if (text.startsWith("B'") || text.startsWith("E'")) 1 else 0
    if (text.startsWith("'", begin)) {
      val end = endOfText(text, begin + 1, begin == 1 && text.charAt(0) == 'E')
      end > 0 && isType(text.substring(end))
    } else {
      // a number or word with a type is a cast: of `(5)::text` Debezium would make that text
      text.startsWith("NULL::") && isType(text.substring(4)) || isWord(text)
    }
  }

  /** Behind the quote that ends a text; -1 without one. */
  private def endOfText(text: String, from: Int, escapes: Boolean): Int = {
    var at = from
    var end = -1
    while (end < 0 && at < text.length) {
      val letter = text.charAt(at)
      if (escapes && letter == '\\') at += 2
      else if (letter != '\'') at += 1
      else if (at + 1 < text.length && text.charAt(at + 1) == '\'') at += 2
      else end = at + 1
    }
    end
  }

  /** A number, or a word that is a value. */
  private def isWord(head: String): Boolean = {
    if (head.equals("true") || head.equals("false") || head.equals("NULL")) true
    else {
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
  }

  /** Nothing, or `::` and the name of a type. */
  private def isType(rest: String): Boolean =
    rest.isEmpty || rest.startsWith("::") && {
      var at = 2
      var plain = rest.length > 2
      while (plain && at < rest.length) {
        val letter = rest.charAt(at)
        plain = Character.isLetterOrDigit(letter) || " _.\"(),[]".indexOf(letter.toInt) >= 0
        at += 1
      }
      plain
    }
}
