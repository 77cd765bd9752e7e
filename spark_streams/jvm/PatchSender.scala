package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes the class of Kafka's that sends for a producer: one that has given a batch up sends nothing more,
 * and fails what it has. Kafka's goes on with the next batches, and of a producer that a partition does
 * not know a broker takes any of them first, so that a copy would have what stands behind a record that it
 * lacks. For this a producer has one request in flight, see `spark_streams.spark`.
 */
object PatchSender {
  private val sender = "org/apache/kafka/clients/producer/internals/Sender"
  /** The one that all others of its name call. */
  private val failing = ("failBatch", "Ljava/lang/RuntimeException;Ljava/util/function/Function;ZZ)V")

  def write(folder: Path): Unit = PatchedClass.write(folder, sender, 1)(new Patched(_))

  private class Patched(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      val (name, end) = failing
      if (method == name && types.endsWith(end)) new Ending(inner, this) else inner
    }
  }

  private class Ending(inner: MethodVisitor, of: PatchedClass) extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      inner.visitVarInsn(Opcodes.ALOAD, 0)
      inner.visitMethodInsn(Opcodes.INVOKEVIRTUAL, sender, "forceClose", "()V", false)
      of.changes += 1
    }
  }
}
