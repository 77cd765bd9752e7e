package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes the cache of Apicurio's resolver of schemas below a folder: where a lookup fails, it asks
 * [[RegistryAnswers]] why. Its jar comes first among those of the plugin; see [[PatchedClass]].
 */
object PatchResolver {
  private val error = "java/lang/RuntimeException"

  def main(arguments: Array[String]): Unit =
    PatchedClass.write(Path.of(arguments(0)), "io/apicurio/registry/resolver/ERCache", 1)(
      new Patched(_))

  private class Patched(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "getValue") new Failing(inner) else inner
    }

    private class Failing(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitInsn(code: Int): Unit = {
        if (code == Opcodes.ATHROW) {
          super.visitMethodInsn(
            Opcodes.INVOKESTATIC, "mesh/RegistryAnswers", "require", s"(L$error;)L$error;", false)
          changes += 1
        }
        super.visitInsn(code)
      }
    }
  }
}
