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
    PatchedClass.write(folder, Starting.herder, 1)(new Starting(_))
    PatchedClass.write(folder, Bounded.receive, 3)(new Bounded(_))
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
   * A herder that says RESTARTING of each task that it begins to start.
   *
   * A worker that was killed has left RUNNING, and Connect said that of a task until its `start` had
   * ended: for as long as a database lets it wait.
   */
  private class Starting(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "startTask" && types == s"(${Starting.id})Z") new Reporting(inner) else inner
    }

    private class Reporting(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitCode(): Unit = {
        super.visitCode()
        super.visitVarInsn(Opcodes.ALOAD, 0)
        super.visitVarInsn(Opcodes.ALOAD, 1)
        super.visitMethodInsn(
          Opcodes.INVOKEVIRTUAL, Starting.herder, "onRestart", s"(${Starting.id})V", false)
        changes += 1
      }
    }
  }

  private object Starting {
    val herder = "org/apache/kafka/connect/runtime/distributed/DistributedHerder"
    val id = "Lorg/apache/kafka/connect/util/ConnectorTaskId;"
  }

  /** An answer whose length has a bound also where the client gives none. */
  private class Bounded(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "readFrom") new Reading(inner) else inner
    }

    private class Reading(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitFieldInsn(code: Int, owner: String, field: String, types: String): Unit = {
        super.visitFieldInsn(code, owner, field, types)
        if (code == Opcodes.GETFIELD && owner == Bounded.receive && field == "maxSize") {
          super.visitMethodInsn(
            Opcodes.INVOKESTATIC, "mesh/BoundedReceives", "most", "(I)I", false)
          changes += 1
        }
      }
    }
  }

  private object Bounded {
    val receive = "org/apache/kafka/common/network/NetworkReceive"
  }
}
