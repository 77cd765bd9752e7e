package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, Label, MethodVisitor, Opcodes}

/**
 * Writes two classes of the registry below a folder: the one that gives a request to a thread, which asks
 * `WholeBodies` first, and has it do that, and the one that accepts a connection, which tells
 * `CrowdedConnections`; see [[PatchedClass]].
 */
object PatchRegistry {
  private val in = "io/quarkus/undertow/runtime"
  private val threads = "java/util/concurrent/ExecutorService"
  private val context = "Lio/vertx/ext/web/RoutingContext;"

  private val http = "io/quarkus/vertx/http/runtime"
  private val connection = "io/vertx/core/http/HttpConnection"

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    PatchedClass.write(folder, s"$in/UndertowDeploymentRecorder$$4", 2)(new Patched(_))
    PatchedClass.write(folder, s"$http/VertxHttpRecorder$$WebDeploymentVerticle$$2", 1)(new Accepting(_))
  }

  private class Accepting(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String])
        : MethodVisitor =
      new Calls(super.visitMethod(access, method, types, generic, raised))

    private class Calls(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, name: String, types: String, isInterface: Boolean) =
        if (owner == connection && name == "closeHandler") {
          val given = types.replace("(", s"(L$connection;")
          inner.visitMethodInsn(Opcodes.INVOKESTATIC, s"$http/CrowdedConnections", "accepted", given, false)
          changes += 1
        } else super.visitMethodInsn(code, owner, name, types, isInterface)
    }
  }

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

      override def visitMethodInsn(
          code: Int, owner: String, name: String, types: String, isInterface: Boolean) =
        if (owner == threads && name == "submit") {
          val asked = types.replace("(", s"(L$threads;")
          inner.visitMethodInsn(Opcodes.INVOKESTATIC, s"$in/WholeBodies", name, asked, false)
          changes += 1
        } else super.visitMethodInsn(code, owner, name, types, isInterface)
    }
  }
}
