package mesh

import java.nio.file.{Files, Path}

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, MethodVisitor, Opcodes}

/**
 * Writes classes of Connect's below a folder: records that ask [[NullFields]], and a herder that asks
 * [[Traces]]. They take the place of Kafka's where their jar comes first on the class path of the worker.
 *
 * Ends with IllegalStateException where a method is not as it is expected, so that no version of
 * Kafka runs without it unnoticed.
 */
object PatchConnect {
  private val schema = "org/apache/kafka/connect/data/Schema"

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    patch(
      folder, "org/apache/kafka/connect/data/Struct",
      "get", "(Lorg/apache/kafka/connect/data/Field;)Ljava/lang/Object;",
      Call(schema, "defaultValue", "()Ljava/lang/Object;", times = 2),
      Call("mesh/NullFields", "defaultOf", s"(L$schema;)Ljava/lang/Object;"))
    patch(
      folder, "org/apache/kafka/connect/runtime/AbstractHerder",
      "trace", "(Ljava/lang/Throwable;)Ljava/lang/String;",
      Call("java/lang/Throwable", "printStackTrace", "(Ljava/io/PrintStream;)V", times = 1),
      Call("mesh/Traces", "print", "(Ljava/lang/Throwable;Ljava/io/PrintStream;)V"))
  }

  /** A method that is called, so many times. */
  private case class Call(owner: String, method: String, types: String, times: Int = 0)

  /** Write the class, whose method calls our static one in the place of another. */
  private def patch(
      folder: Path, name: String, method: String, types: String, before: Call, ours: Call): Unit = {
    val source = getClass.getClassLoader.getResourceAsStream(s"$name.class")
    val reader = try new ClassReader(source) finally source.close()
    val writer = new ClassWriter(reader, 0)
    val patched = new Patched(writer, method, types, before, ours)
    reader.accept(patched, 0)
    if (patched.changes != before.times)
      throw new IllegalStateException(
        s"$name.$method of this Kafka has ${patched.changes} calls of ${before.method}, not ${before.times}")
    val target = folder.resolve(s"$name.class")
    Files.createDirectories(target.getParent)
    Files.write(target, writer.toByteArray)
  }

  private class Patched(
      writer: ClassVisitor, in: String, inTypes: String, before: Call, ours: Call)
      extends ClassVisitor(Opcodes.ASM9, writer) {
    var changes = 0

    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == in && types == inTypes) new Calling(inner) else inner
    }

    private class Calling(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
        if (owner == before.owner && called == before.method && types == before.types) {
          super.visitMethodInsn(Opcodes.INVOKESTATIC, ours.owner, ours.method, ours.types, false)
          changes += 1
        } else super.visitMethodInsn(code, owner, called, types, ofInterface)
    }
  }
}
