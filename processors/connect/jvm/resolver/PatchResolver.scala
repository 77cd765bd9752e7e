package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes Apicurio's resolver of schemas and its cache below a folder: where a lookup fails, the cache asks
 * [[RegistryAnswers]] why; before the resolver registers a schema, it asks [[KeptKeys]]. Their jar comes first
 * among those of the plugin; see [[PatchedClass]].
 */
object PatchResolver {
  private val error = "java/lang/RuntimeException"
  private val of = "io/apicurio/registry/resolver"
  private val resolver = s"$of/DefaultSchemaResolver"
  private val client = "Lio/apicurio/registry/rest/client/RegistryClient;"
  private val subject = s"L$of/strategy/ArtifactReference;"
  private val schema = s"L$of/ParsedSchema;"
  /** What makes a schema that the cache has not. */
  private val toRegister = "lambda$handleAutoCreateArtifact$"

  def main(arguments: Array[String]): Unit = {
    PatchedClass.write(Path.of(arguments(0)), s"$of/ERCache", 1)(new Patched(_))
    PatchedClass.write(Path.of(arguments(0)), resolver, 2)(new Registering(_))
  }

  private class Registering(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method.startsWith(toRegister) && types.startsWith(s"($subject$schema")) new Asking(inner)
      else inner
    }

    private class Asking(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitCode(): Unit = {
        super.visitCode()
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitFieldInsn(Opcodes.GETFIELD, resolver, "client", client)
        inner.visitVarInsn(Opcodes.ALOAD, 1)
        inner.visitVarInsn(Opcodes.ALOAD, 2)
        val types = s"($client$subject$schema)V"
        inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/KeptKeys", "require", types, false)
        changes += 1
      }
    }
  }

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
