package mesh

import java.nio.file.{Files, Path}

import org.apache.kafka.connect.data.Schema
import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, MethodVisitor, Opcodes}

/**
 * Lets null be the value of a field that may be null. Kafka Connect gives the default of such a field
 * instead to converters, transforms and sinks: NULL in a column with a DEFAULT came as that default.
 * [[PatchConnect]] has Connect ask this where it asked the schema.
 */
object NullFields {
  /** What stands for a value that is not there; null where the field may be null. */
  def defaultOf(schema: Schema): Object = if (schema.isOptional) null else schema.defaultValue
}

/**
 * Writes Connect's class of records, which asks [[NullFields]], below a folder. It takes the place of
 * Kafka's where its jar comes first on the class path of the worker.
 *
 * Ends with IllegalStateException where its method is not as it is expected, so that no version of
 * Kafka runs without it unnoticed.
 */
object PatchConnect {
  private val name = "org/apache/kafka/connect/data/Struct"
  private val schema = "org/apache/kafka/connect/data/Schema"
  private val get = "(Lorg/apache/kafka/connect/data/Field;)Ljava/lang/Object;"
  private val expected = 2
  private var changes = 0

  def main(arguments: Array[String]): Unit = {
    val source = getClass.getClassLoader.getResourceAsStream(s"$name.class")
    val reader = try new ClassReader(source) finally source.close()
    val writer = new ClassWriter(reader, 0)
    reader.accept(new Patched(writer), 0)
    if (changes != expected) {
      throw new IllegalStateException(s"$name of this Kafka is not as expected: null would be a default")
    }
    val target = Path.of(arguments(0)).resolve(s"$name.class")
    Files.createDirectories(target.getParent)
    Files.write(target, writer.toByteArray)
  }

  private class Patched(writer: ClassVisitor) extends ClassVisitor(Opcodes.ASM9, writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "get" && types == get) new Asking(inner) else inner
    }
  }

  /** Its calls of `Schema.defaultValue` become calls of `NullFields.defaultOf`. */
  private class Asking(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      if (owner == schema && called == "defaultValue") {
        val given = s"(L$schema;)Ljava/lang/Object;"
        super.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/NullFields", "defaultOf", given, false)
        changes += 1
      } else super.visitMethodInsn(code, owner, called, types, ofInterface)
  }
}
