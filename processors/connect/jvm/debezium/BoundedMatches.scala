package mesh

import java.util.regex.{Matcher, Pattern}

import io.debezium.relational.Column
import org.apache.kafka.connect.errors.DataException
import org.slf4j.Logger

/** The same as that of our transformations, which the connector's plugin is not compiled with. */
class RefusedException(message: String) extends DataException(message)

/**
 * Bounds how long Debezium compares a text of a database with a pattern: some of its patterns take a
 * time that is exponential in the length of a column's default. A step is a letter
 * that the pattern looks at. [[PatchDebezium]] has the connector ask this.
 *
 * The error begins with a code, and names the column where its name is plain. Nothing of
 * the text is in it. Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object BoundedMatches {
  /** Steps for each text, and for each of its letters beside; they take some milliseconds. */
  private val most = 1000000L
  private val perLetter = 16L
  private val plain = Pattern.compile("[\\w$-]{1,63}")
  private val unnamed = "a text"

  def matcher(pattern: Pattern, text: CharSequence): Matcher =
    pattern.matcher(new Counted(text, unnamed))

  def matches(text: String, pattern: String): Boolean =
    matcher(Pattern.compile(pattern), text).matches()

  def split(pattern: Pattern, text: CharSequence): Array[String] =
    pattern.split(new Counted(text, unnamed))

  /** Called where the connector goes on without a default that it cannot read. */
  def passOver(logger: Logger, message: String, error: Throwable, column: Column): Unit = {
    // of an error the caller tells its cause alone
    if (error.isInstanceOf[RefusedException])
      throw new DataException(message, refusal(named(column.name)))
    logger.debug(message, error)
  }

  private def named(name: String): String =
    if (name != null && plain.matcher(name).matches()) "column " + name else unnamed

  private def refusal(what: String): RefusedException =
    new RefusedException(
      "pattern_too_slow: " + what + ": the connector takes more than " + most +
        " steps to compare a text of the database, such as a default, with a pattern")

  /** A text that refuses to be read any more after so many letters. */
  private class Counted(text: CharSequence, what: String) extends CharSequence {
    private var left = most + perLetter * text.length

    override def charAt(place: Int): Char = {
      left -= 1
      if (left < 0) throw refusal(what)
      text.charAt(place)
    }

    override def length: Int = text.length
    override def subSequence(begin: Int, end: Int): CharSequence = text.subSequence(begin, end)
    override def toString: String = text.toString
  }
}
