package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes classes of Connect's below a folder: records that ask [[NullFields]], a herder that asks
 * [[Traces]] and says of a task that it starts, answers of Kafka's that ask [[BoundedReceives]], a
 * transform that asks [[Milliseconds]], a consumer of Kafka's, by [[PatchConsumer]] and [[PatchMetadata]],
 * and a reporter of dead letters, by [[PatchLetters]]. Their jar comes first on the class path of the
 * worker; see [[PatchedClass]].
 */
object PatchConnect {
  private val schema = "org/apache/kafka/connect/data/Schema"
  private val herder = "org/apache/kafka/connect/runtime/distributed/DistributedHerder"
  private val taskId = "Lorg/apache/kafka/connect/util/ConnectorTaskId;"
  private val receive = "org/apache/kafka/common/network/NetworkReceive"

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
    patch(
      folder, "org/apache/kafka/connect/transforms/TimestampConverter",
      "timestampTypeFromSchema", s"(L$schema;)Ljava/lang/String;",
      Call(schema, "name", "()Ljava/lang/String;", times = 3),
      Call("mesh/Milliseconds", "nameOf", s"(L$schema;)Ljava/lang/String;"))
    PatchedClass.write(folder, herder, 1)(
      new PatchedMethods(_, Map("startTask" -> (new Starting(_, _)))))
    PatchedClass.write(folder, receive, 3)(
      new PatchedMethods(_, Map("readFrom" -> (new Bounded(_, _)))))
    PatchConsumer.write(folder)
    PatchLetters.write(folder)
    PatchMetadata.write(folder)
  }

  /** A method that is called, so many times. */
  private case class Call(owner: String, method: String, types: String, times: Int = 0)

  /** Write the class, whose method calls our static one in the place of another. */
  private def patch(
      folder: Path, name: String, method: String, types: String, before: Call, ours: Call): Unit =
    PatchedClass.write(folder, name, before.times)(new Patched(_, method, types, before, ours))

  private class Patched(
      writer: ClassVisitor, in: String, inTypes: String, before: Call, ours: Call)
      extends PatchedClass(writer) {
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

  /**
   * Says RESTARTING of each task that a herder begins to start.
   *
   * A worker that was killed has left RUNNING, and Connect said that of a task until its `start` had
   * ended: for as long as a database lets it wait.
   */
  private class Starting(inner: MethodVisitor, of: PatchedClass)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      super.visitVarInsn(Opcodes.ALOAD, 0)
      super.visitVarInsn(Opcodes.ALOAD, 1)
      super.visitMethodInsn(Opcodes.INVOKEVIRTUAL, herder, "onRestart", s"($taskId)V", false)
      of.changes += 1
    }
  }

  /** Bounds the length of an answer also where the client gives none. */
  private class Bounded(inner: MethodVisitor, of: PatchedClass)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitFieldInsn(code: Int, owner: String, field: String, types: String): Unit = {
      super.visitFieldInsn(code, owner, field, types)
      if (code == Opcodes.GETFIELD && owner == receive && field == "maxSize") {
        super.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/BoundedReceives", "most", "(I)I", false)
        of.changes += 1
      }
    }
  }
}
