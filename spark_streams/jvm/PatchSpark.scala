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
 * Writes classes of Spark's below a folder: its Kafka source, which asks [[RecordTimes]], since one
 * record with a time that no microseconds hold ends a query, again at each start; that by which texts
 * become timestamps, since `12:30` would be another value each day; and `get_json_object`, which
 * copies by [[JsonNumbers]]. They take the place of Spark's where their jar comes first on the class
 * path of a server.
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

  private val changes = Seq(
    // one for the time itself, and one for the error that tells it
    Change(
      "org/apache/spark/sql/kafka010/KafkaRecordToRowConverter$", "org/apache/kafka/clients/consumer/ConsumerRecord",
      "timestamp", behind = true, "mesh/RecordTimes", "bounded", "(J)J", 2),
    Change(
      "org/apache/spark/sql/catalyst/util/SparkDateTimeUtils", "java/time/LocalDate",
      "now", behind = true, "mesh/RecordTimes", "noDay", "(Ljava/time/LocalDate;)Ljava/time/LocalDate;", 1),
    Change(
      "org/apache/spark/sql/catalyst/expressions/json/GetJsonObjectEvaluator", "com/fasterxml/jackson/core/JsonGenerator",
      "copyCurrentStructure", behind = false, "mesh/JsonNumbers", "copy",
      "(Lcom/fasterxml/jackson/core/JsonGenerator;Lcom/fasterxml/jackson/core/JsonParser;)V", 1))

  def main(arguments: Array[String]): Unit = changes.foreach(write(_, Path.of(arguments(0))))

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
