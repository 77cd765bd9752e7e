package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, Label, MethodVisitor, Opcodes}

/**
 * Writes the class below a folder that gives a request of the registry to a thread, and asks
 * `WholeBodies` first; see [[PatchedClass]].
 */
object PatchRegistry {
  private val in = "io/quarkus/undertow/runtime"
  private val context = "Lio/vertx/ext/web/RoutingContext;"

  def main(arguments: Array[String]): Unit =
    PatchedClass.write(Path.of(arguments(0)), s"$in/UndertowDeploymentRecorder$$4", 1)(new Patched(_))

  private class Patched(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "handle" && types == s"($context)V") new Asking(inner) else inner
    }

    private class Asking(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitCode(): Unit = {
        super.visitCode()
        val isWhole = new Label()
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitVarInsn(Opcodes.ALOAD, 1)
        val types = s"(Lio/vertx/core/Handler;$context)Z"
        inner.visitMethodInsn(Opcodes.INVOKESTATIC, s"$in/WholeBodies", "waits", types, false)
        inner.visitJumpInsn(Opcodes.IFEQ, isWhole)
        inner.visitInsn(Opcodes.RETURN)
        inner.visitLabel(isWhole)
        inner.visitFrame(Opcodes.F_SAME, 0, null, 0, null)
        changes += 1
      }
    }
  }
}
