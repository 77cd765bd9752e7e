package mesh

import java.nio.file.{Files, Path}
import java.time.{DateTimeException, LocalDate}

import com.fasterxml.jackson.core.{JsonGenerationException, JsonGenerator, JsonParser, JsonToken}
import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, MethodVisitor, Opcodes}

/** Times of records as Spark can have them. */
object RecordTimes {
  /** The years 1 to 9999, which is what SQL has. */
  private val first = -62135596800000L
  private val last = 253402300799999L

  /** Milliseconds as a producer wrote them; Kafka takes any, and Spark ends the query on some. */
  def bounded(ms: Long): Long = math.min(last, math.max(first, ms))

  /** The day of a text that tells a time alone, as `12:30`: Spark takes the one on which it reads it. */
  def noDay(today: LocalDate): LocalDate = throw new DateTimeException("a time without a day")
}

/** Numbers of JSON as they are written. Spark copies those with a point or an exponent as doubles. */
object JsonNumbers {
  /**
   * Writes the value that the parser stands at, and leaves it at its last token. Throws
   * JsonGenerationException where there is none, as in an empty text.
   */
  def copy(generator: JsonGenerator, parser: JsonParser): Unit = {
    var depth = 0
    def one(): Unit = parser.currentToken match {
      case null => throw new JsonGenerationException("no value to copy", generator)
      case JsonToken.VALUE_NUMBER_FLOAT => generator.writeNumber(parser.getText)
      case token =>
        if (token.isStructStart) depth += 1
        if (token.isStructEnd) depth -= 1
        generator.copyCurrentEvent(parser)
    }
    one()
    while (depth > 0 && parser.nextToken() != null) one()
  }
}

/**
 * Texts of decimals, made so short that Java reads and rounds them at once. Its time grows with the
 * square of the digits, and with the exponent: `1e-300000000` takes hours.
 */
object ShortDecimals {
  /** Characters of a text that is as it is, unless it has an exponent. */
  private val plain = 40
  /** Significant digits that are kept: a decimal has 38 before the point and 38 behind it. */
  private val kept = 100

  /**
   * The text of a number that is the same in each decimal of Spark's, or null in none of them.
   *
   * What is no number gives an empty text, which Java refuses as it does the text itself.
   */
  def shortened(text: String): String =
    if (text.length <= plain && text.indexOf('e') < 0 && text.indexOf('E') < 0) text
    else new Reading(text).shortened

  private class Reading(text: String) {
    private var at = 0
    private val digits = new java.lang.StringBuilder()
    /** Digits that were left out, and digits behind the point. */
    private var dropped, behind = 0L

    def shortened: String = {
      val negative = sign()
      if (!mantissa()) ""
      else {
        val exponent = if (at == text.length) Some(0L) else power()
        exponent.filter(power => isScale(behind - power)).fold("")(written(negative, _))
      }
    }

    private def written(negative: Boolean, power: Long): String = {
      val exponent = power + dropped - behind
      // the place of the first digit: below it all decimals are 0, and so are those of no digits
      if (digits.length == 0 || exponent + digits.length < -kept) "0"
      else s"${if (negative) "-" else ""}${digits}E$exponent"
    }

    /** Whether Java takes it: the exponent of a number is the negative of an int. */
    private def isScale(scale: Long): Boolean = scale.toInt == scale

    private def sign(): Boolean = {
      val found = if (at < text.length) text.charAt(at) else ' '
      if (found == '-' || found == '+') at += 1
      found == '-'
    }

    /** Reads the digits and a point; whether there is a digit, and an exponent or the end behind it. */
    private def mantissa(): Boolean = {
      var any, point = false
      var going = true
      while (going && at < text.length) {
        val one = text.charAt(at)
        if (Character.isDigit(one)) {
          any = true
          if (point) behind += 1
          val digit = Character.digit(one, 10)
          if (digits.length >= kept) dropped += 1
          else if (digits.length > 0 || digit != 0) digits.append(digit)
        } else if (one == '.' && !point) point = true
        else going = false
        if (going) at += 1
      }
      any && (at == text.length || text.charAt(at) == 'e' || text.charAt(at) == 'E')
    }

    /** The number behind the `e`, of ten digits at most, zeros before it not counted. */
    private def power(): Option[Long] = {
      at += 1
      val negative = sign()
      val first = at
      var (found, counted) = (0L, 0)
      while (at < text.length && Character.isDigit(text.charAt(at)) && counted <= 10) {
        val digit = Character.digit(text.charAt(at), 10)
        if (found > 0 || digit != 0) counted += 1
        found = found * 10 + digit
        at += 1
      }
      if (at == first || at < text.length || counted > 10) None else Some(if (negative) -found else found)
    }
  }
}

/**
 * Writes classes of Spark's below a folder: its Kafka source, which asks [[RecordTimes]], since one
 * record with a time that no microseconds hold ends a query, again at each start; that by which texts
 * become timestamps, since `12:30` would be another value each day; that by which they become
 * decimals, which asks [[ShortDecimals]]; `get_json_object`, which copies by [[JsonNumbers]]; those of Spark Connect that
 * accept connections and ask for the token, which tell [[BoundedCallers]]; and those of
 * [[PatchMetadata]], [[PatchSender]] and [[PatchDecoder]].
 * They take the place of Spark's and Kafka's where their jar comes first on the class path of a server.
 *
 * Ends with IllegalStateException where a method is not as it is expected, so that no version of
 * Spark runs without them unnoticed.
 */
object PatchSpark {
  /**
   * Calls in a class of Spark's: ours is called with what they gave, or in their place.
   *
   * @param count how many of them there are.
   */
  private case class Change(
      in: String, owner: String, called: String, behind: Boolean, ours: String, name: String, types: String, count: Int)

  private val grpc = "org/sparkproject/connect/grpc"
  private val changes = Seq(
    // one for the time itself, and one for the error that tells it
    Change(
      "org/apache/spark/sql/kafka010/KafkaRecordToRowConverter$", "org/apache/kafka/clients/consumer/ConsumerRecord",
      "timestamp", behind = true, "mesh/RecordTimes", "bounded", "(J)J", 2),
    Change(
      "org/apache/spark/sql/catalyst/util/SparkDateTimeUtils", "java/time/LocalDate",
      "now", behind = true, "mesh/RecordTimes", "noDay", "(Ljava/time/LocalDate;)Ljava/time/LocalDate;", 1),
    Change(
      "org/apache/spark/sql/types/Decimal$", "java/lang/String",
      "trim", behind = true, "mesh/ShortDecimals", "shortened", "(Ljava/lang/String;)Ljava/lang/String;", 1),
    Change(
      "org/apache/spark/sql/catalyst/expressions/json/GetJsonObjectEvaluator", "com/fasterxml/jackson/core/JsonGenerator",
      "copyCurrentStructure", behind = false, "mesh/JsonNumbers", "copy",
      "(Lcom/fasterxml/jackson/core/JsonGenerator;Lcom/fasterxml/jackson/core/JsonParser;)V", 1),
    Change(
      s"$grpc/netty/NettyServer$$1", "io/netty/channel/Channel",
      "newPromise", behind = true, "mesh/BoundedCallers", "accepted",
      "(Lio/netty/channel/ChannelPromise;)Lio/netty/channel/ChannelPromise;", 1),
    // it asks for the token
    Change(
      "org/apache/spark/sql/connect/service/PreSharedKeyAuthenticationInterceptor", s"$grpc/ServerCallHandler",
      "startCall", behind = false, "mesh/BoundedCallers", "begins",
      s"(L$grpc/ServerCallHandler;L$grpc/ServerCall;L$grpc/Metadata;)L$grpc/ServerCall$$Listener;", 1))

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    changes.foreach(write(_, folder))
    PatchMetadata.write(folder)
    PatchSender.write(folder)
    PatchDecoder.write(folder)
  }

  private def write(change: Change, folder: Path): Unit = {
    val source = getClass.getClassLoader.getResourceAsStream(s"${change.in}.class")
    val reader = try new ClassReader(source) finally source.close()
    val writer = new ClassWriter(reader, 0)
    val patched = new Patched(writer, change)
    reader.accept(patched, 0)
    if (patched.found != change.count)
      throw new IllegalStateException(
        s"${change.in} of this Spark calls ${change.called} ${patched.found} times, not ${change.count}")
    val target = folder.resolve(s"${change.in}.class")
    Files.createDirectories(target.getParent)
    Files.write(target, writer.toByteArray)
  }

  private class Patched(writer: ClassVisitor, change: Change) extends ClassVisitor(Opcodes.ASM9, writer) {
    var found = 0

    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String])
        : MethodVisitor =
      new Calls(super.visitMethod(access, method, types, generic, raised))

    private class Calls(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
        val isOne = owner == change.owner && called == change.called
        if (!isOne || change.behind) super.visitMethodInsn(code, owner, called, types, ofInterface)
        if (isOne) {
          super.visitMethodInsn(Opcodes.INVOKESTATIC, change.ours, change.name, change.types, false)
          found += 1
        }
      }
    }
  }
}
