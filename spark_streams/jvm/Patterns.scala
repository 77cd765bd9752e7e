package mesh

import java.nio.ByteBuffer
import java.nio.charset.{CharacterCodingException, StandardCharsets}
import java.util.HashMap

import scala.collection.mutable.ArrayBuffer

import com.google.re2j.{Matcher, Pattern}
import org.apache.spark.sql.api.java.{UDF2, UDF3}

/**
 * SQL functions that match regular expressions by RE2, in time that is linear in the string. The
 * patterns are checked and written for RE2 before they get here: `spark_streams/sql/regex`, and
 * `mesh_events/schema/linear_patterns.py` for those of schemas; decision 0024. An argument that is null
 * gives null. What has no value for another reason is a `NoValue`, which `Attempt` catches.
 */
trait Patterns extends Serializable {
  // a task has an instance of its own; patterns are literals, so there are few
  @transient private lazy val known = new HashMap[String, Pattern]()

  protected def compiled(pattern: String): Pattern = known.computeIfAbsent(pattern, Pattern.compile(_))

  /** What `read` finds in a text, null without one; throws NoValue, see there. */
  protected def searched[A](text: String, pattern: String)(read: Matcher => A): A =
    if (text == null || pattern == null) null.asInstanceOf[A]
    else {
      val found = compiled(pattern)
      try read(found.matcher(new Counted(text, Counted.steps / found.programSize)))
      catch {
        case _: IndexOutOfBoundsException => throw new NoValue("NO_SUCH_GROUP")
        case _: IllegalArgumentException => throw new NoValue("INVALID_REPLACEMENT")
      }
    }
}

/** (text in UTF-8, pattern) -> whether the whole of it matches; not if it is too long, or no UTF-8. */
class MatchesPattern extends UDF2[Array[Byte], String, java.lang.Boolean] with Patterns {
  override def call(text: Array[Byte], pattern: String): java.lang.Boolean =
    if (text == null) null
    else if (text.length > MatchesPattern.longest) false
    else
      try compiled(pattern).matches(StandardCharsets.UTF_8.newDecoder.decode(ByteBuffer.wrap(text)).toString)
      catch { case _: CharacterCodingException => false }
}

object MatchesPattern {
  /** `LONGEST_TEXT` of `mesh_events/schema/linear_patterns.py`. */
  val longest = 65536
}

/** As Spark's `regexp_like`. */
class HasPattern extends UDF2[String, String, java.lang.Boolean] with Patterns {
  override def call(text: String, pattern: String): java.lang.Boolean =
    searched(text, pattern)(found => Boolean.box(found.find()))
}

/** As Spark's `regexp_count`. */
class CountPattern extends UDF2[String, String, Integer] with Patterns {
  override def call(text: String, pattern: String): Integer = searched(text, pattern) { found =>
    var count = 0
    while (found.find()) count += 1
    Int.box(count)
  }
}

/** As Spark's `regexp_instr`: the place of the first match from 1 on, 0 without one. */
class LocatePattern extends UDF2[String, String, Integer] with Patterns {
  override def call(text: String, pattern: String): Integer =
    searched(text, pattern)(found => Int.box(if (found.find()) found.start() + 1 else 0))
}

/** As Spark's `regexp_extract`: a group of the first match, "" without one. */
class FindPattern extends UDF3[String, String, Integer, String] with Patterns {
  override def call(text: String, pattern: String, group: Integer): String =
    if (group == null) null
    else searched(text, pattern)(found => if (found.find()) Option(found.group(group)).getOrElse("") else "")
}

/** As Spark's `regexp_extract_all`. */
class FindAllPattern extends UDF3[String, String, Integer, Array[String]] with Patterns {
  override def call(text: String, pattern: String, group: Integer): Array[String] =
    if (group == null) null
    else searched(text, pattern) { found =>
      val all = ArrayBuffer[String]()
      while (found.find()) all += Option(found.group(group)).getOrElse("")
      all.toArray
    }
}

/** As Spark's `regexp_replace`; NoValue for a replacement that Java refuses, as `$` or `$9`. */
class ReplacePattern extends UDF3[String, String, String, String] with Patterns {
  override def call(text: String, pattern: String, by: String): String =
    if (by == null) null
    else searched(text, pattern) { found =>
      val out = new java.lang.StringBuilder
      while (found.find()) {
        ReplacePattern.require(by)
        found.appendReplacement(out, by)
      }
      found.appendTail(out).toString
    }
}

object ReplacePattern {
  /** Throws IllegalArgumentException for a sign that names no group, or a backslash before nothing. */
  def require(by: String): Unit = {
    var index = 0
    while (index < by.length) {
      val after = if (index + 1 < by.length) by.charAt(index + 1) else ' '
      by.charAt(index) match {
        case '\\' if index + 1 < by.length => index += 1
        case '\\' => throw new IllegalArgumentException("a backslash at the end")
        case '$' if after < '0' || after > '9' => throw new IllegalArgumentException("no group")
        case _ =>
      }
      index += 1
    }
  }
}

/** As Spark's `split`, for a pattern that is not empty. */
class SplitPattern extends UDF3[String, String, Integer, Array[String]] with Patterns {
  override def call(text: String, pattern: String, limit: Integer): Array[String] =
    if (limit == null) null
    else searched(text, pattern) { found =>
      val parts = ArrayBuffer[String]()
      var from = 0
      while ((limit <= 0 || parts.size < limit - 1) && found.find()) {
        // an empty match at the beginning makes no part
        if (found.end > 0) { parts += text.substring(from, found.start); from = found.end }
      }
      parts += text.substring(from)
      parts.toArray
    }
}

/** A text that is read `most` times at most: what reads it more often has no value. */
final class Counted(text: String, most: Long) extends CharSequence {
  private var read = 0L

  override def charAt(index: Int): Char = {
    read += 1
    if (read > most) throw new NoValue("PATTERN_TAKES_TOO_MANY_STEPS")
    text.charAt(index)
  }
  override def length: Int = text.length
  override def subSequence(start: Int, end: Int): CharSequence = text.substring(start, end)
  override def toString: String = text
}

object Counted {
  /** Characters read, times the instructions of the pattern: of a string and a pattern always the same. */
  val steps = 200L * 1000 * 1000
}

/**
 * A function of the mesh has no value for its arguments, which the writer of a record has chosen: null
 * instead would be another answer, as in `WHERE NOT s RLIKE ...`.
 *
 * @param condition why, in the form of Spark's error conditions, without anything of the record.
 */
final class NoValue(val condition: String) extends RuntimeException(condition, null, false, false)
