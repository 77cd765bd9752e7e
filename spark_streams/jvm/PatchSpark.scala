package mesh

import java.nio.file.{Files, Path}

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, MethodVisitor, Opcodes}

/** Times of records as Spark can have them. */
object RecordTimes {
  /** The years 1 to 9999, which is what SQL has. */
  private val first = -62135596800000L
  private val last = 253402300799999L

  /** Milliseconds as a producer wrote them; Kafka takes any, and Spark ends the query on some. */
  def bounded(ms: Long): Long = math.min(last, math.max(first, ms))
}

/**
 * Writes a class of Spark's Kafka source below a folder, which asks [[RecordTimes]]: one record with
 * a time that no microseconds hold ends a query, again at each start. It takes the place of Spark's
 * where its jar comes first on the class path of a server.
 *
 * Ends with IllegalStateException where a method is not as it is expected, so that no version of
 * Spark runs without it unnoticed.
 */
object PatchSpark {
  private val converter = "org/apache/spark/sql/kafka010/KafkaRecordToRowConverter$"
  /** One for the time itself, and one for the error that tells it. */
  private val expected = 2

  def main(arguments: Array[String]): Unit = {
    val source = getClass.getClassLoader.getResourceAsStream(s"$converter.class")
    val reader = try new ClassReader(source) finally source.close()
    val writer = new ClassWriter(reader, 0)
    val patched = new Patched(writer)
    reader.accept(patched, 0)
    if (patched.changes != expected)
      throw new IllegalStateException(
        s"$converter of this Spark asks ${patched.changes} times for a record's time, not $expected")
    val target = Path.of(arguments(0)).resolve(s"$converter.class")
    Files.createDirectories(target.getParent)
    Files.write(target, writer.toByteArray)
  }

  private class Patched(writer: ClassVisitor) extends ClassVisitor(Opcodes.ASM9, writer) {
    var changes = 0

    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String])
        : MethodVisitor =
      new Times(super.visitMethod(access, method, types, generic, raised))

    private class Times(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
        super.visitMethodInsn(code, owner, called, types, ofInterface)
        if (owner == "org/apache/kafka/clients/consumer/ConsumerRecord" && called == "timestamp") {
          super.visitMethodInsn(
            Opcodes.INVOKESTATIC, "mesh/RecordTimes", "bounded", "(J)J", false)
          changes += 1
        }
      }
    }
  }
}
