package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes Connect's reporter of dead letters below a folder, which asks [[DeadLetters]] for the
 * settings of its producer and of the topic that it makes, and has it send. See [[PatchConnect]].
 */
object PatchLetters {
  private val producer = "org/apache/kafka/clients/producer/KafkaProducer"
  private val record = "org/apache/kafka/clients/producer/ProducerRecord"
  private val told = "org/apache/kafka/clients/producer/Callback"
  private val future = "java/util/concurrent/Future"
  private val set = "java/util/Set"
  private val any = "Ljava/lang/Object;"

  def write(folder: Path): Unit =
    PatchedClass.write(folder, "org/apache/kafka/connect/runtime/errors/DeadLetterQueueReporter", 3)(
      new Patched(_))

  private class Patched(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) =
      new Asking(super.visitMethod(access, method, types, generic, raised), this)
  }

  private class Asking(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      (owner, called) match {
        case (`producer`, "<init>") =>
          ask("settings", "(Ljava/util/Map;)Ljava/util/Map;")
          super.visitMethodInsn(code, owner, called, types, ofInterface)
        case (`producer`, "send") => ask("send", s"(L$producer;L$record;L$told;)L$future;")
        case (`set`, "of") => ask("topics", s"($any)L$set;")
        case _ => super.visitMethodInsn(code, owner, called, types, ofInterface)
      }

    private def ask(method: String, types: String): Unit = {
      inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/DeadLetters", method, types, false)
      of.changes += 1
    }
  }
}
