package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{Label, MethodVisitor, Opcodes}

/**
 * Writes three classes of Kafka's consumer below a folder. Two ask [[BoundedPolls]]: one that goes
 * from one partition's fetched batches to the next within a poll, one that unpacks the records of
 * these. The first one and the one that has the positions ask [[SkippedRecords]]. See [[PatchConnect]].
 */
object PatchConsumer {
  private val of = "org/apache/kafka/clients/consumer/internals"
  private val record = "org/apache/kafka/common/record/internal/Record"

  private val positions = s"$of/SubscriptionState"
  private val place = s"$positions$$FetchPosition"
  private val toPlace = "(Ljava/lang/Object;Lorg/apache/kafka/common/TopicPartition;J)V"

  def write(folder: Path): Unit = {
    PatchedClass.write(folder, s"$of/FetchCollector", 4)(
      new PatchedMethods(_, Map(
        "collectFetch" -> (new Asking(_, _, Opcodes.IFLE) {
          override def visitCode(): Unit = {
            super.visitCode()
            ask("begin", "()V")
            askOfConsumer()
          }
        }),
        "handleInitializeErrors" -> (new Missing(_, _)))))
    PatchedClass.write(folder, positions, 1)(
      new PatchedMethods(_, Map("maybeSeekUnvalidated" -> (new Finding(_, _)))))
    PatchedClass.write(folder, s"$of/CompletedFetch", 2)(
      new PatchedMethods(_, Map("fetchRecords" -> (new Asking(_, _, Opcodes.IF_ICMPGE) {
        override def visitMethodInsn(
            code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
          if (owner == record && called == "sizeInBytes") ask("sizeOf", s"(L$record;)I")
          else super.visitMethodInsn(code, owner, called, types, ofInterface)
      }))))
  }

  /** Asks how many records there is room for where the loop compares with their number. */
  private abstract class Asking(inner: MethodVisitor, of: PatchedClass, comparing: Int)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitJumpInsn(code: Int, target: Label): Unit = {
      if (code == comparing) ask("room", "(I)I")
      super.visitJumpInsn(code, target)
    }

    protected def askOfConsumer(): Unit = {
      loadConsumer(inner)
      inner.visitMethodInsn(
        Opcodes.INVOKESTATIC, "mesh/SkippedRecords", "require", "(Ljava/lang/Object;)V", false)
      of.changes += 1
    }

    protected def ask(method: String, types: String): Unit = {
      inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/BoundedPolls", method, types, false)
      of.changes += 1
    }
  }

  private def loadConsumer(inner: MethodVisitor): Unit = {
    inner.visitVarInsn(Opcodes.ALOAD, 0)
    inner.visitFieldInsn(
      Opcodes.GETFIELD, s"$of/FetchCollector", "subscriptions", s"L$positions;")
  }

  /** Says which position the topic does not have, before another one is asked for. */
  private class Missing(inner: MethodVisitor, of: PatchedClass)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    /** Where the method keeps the partition and the position. */
    private val (partition, offset) = (3, 4)

    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
      if (owner == positions && called.startsWith("requestOffsetReset")) {
        loadConsumer(inner)
        inner.visitVarInsn(Opcodes.ALOAD, partition)
        inner.visitVarInsn(Opcodes.LLOAD, offset)
        inner.visitMethodInsn(
          Opcodes.INVOKESTATIC, "mesh/SkippedRecords", "miss", toPlace, false)
        of.changes += 1
      }
      super.visitMethodInsn(code, owner, called, types, ofInterface)
    }
  }

  /** Says which position was found instead. */
  private class Finding(inner: MethodVisitor, of: PatchedClass)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      inner.visitVarInsn(Opcodes.ALOAD, 0)
      inner.visitVarInsn(Opcodes.ALOAD, 1)
      inner.visitVarInsn(Opcodes.ALOAD, 2)
      inner.visitFieldInsn(Opcodes.GETFIELD, place, "offset", "J")
      inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/SkippedRecords", "find", toPlace, false)
      of.changes += 1
    }
  }
}
