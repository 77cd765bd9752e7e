package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, Label, MethodVisitor, Opcodes}

/**
 * Writes two classes of Kafka's consumer below a folder, which ask [[BoundedPolls]]: one that goes
 * from one partition's fetched batches to the next within a poll, one that unpacks the records of
 * these. See [[PatchConnect]].
 */
object PatchConsumer {
  private val of = "org/apache/kafka/clients/consumer/internals"
  private val record = "org/apache/kafka/common/record/internal/Record"

  def write(folder: Path): Unit = {
    PatchedClass.write(folder, s"$of/FetchCollector", 2)(
      new Patched(_, "collectFetch", new Asking(_, _, Opcodes.IFLE) {
        override def visitCode(): Unit = {
          super.visitCode()
          ask("begin", "()V")
        }
      }))
    PatchedClass.write(folder, s"$of/CompletedFetch", 2)(
      new Patched(_, "fetchRecords", new Asking(_, _, Opcodes.IF_ICMPGE) {
        override def visitMethodInsn(
            code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
          if (owner == record && called == "sizeInBytes") ask("sizeOf", s"(L$record;)I")
          else super.visitMethodInsn(code, owner, called, types, ofInterface)
      }))
  }

  private class Patched(
      writer: ClassVisitor, in: String, patch: (MethodVisitor, PatchedClass) => MethodVisitor)
      extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == in) patch(inner, this) else inner
    }
  }

  /** Asks how many records there is room for where the loop compares with their number. */
  private abstract class Asking(inner: MethodVisitor, of: PatchedClass, comparing: Int)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitJumpInsn(code: Int, target: Label): Unit = {
      if (code == comparing) ask("room", "(I)I")
      super.visitJumpInsn(code, target)
    }

    protected def ask(method: String, types: String): Unit = {
      inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/BoundedPolls", method, types, false)
      of.changes += 1
    }
  }
}
