package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes two classes of Avro's below a folder: what makes a text of its bytes asks [[StrictTexts]], and
 * its decoder is that of [[PatchDecoder]]. Their jar comes first among those of the converter's plugin;
 * see [[PatchedClass]].
 */
object PatchAvro {
  private val text = "org/apache/avro/util/Utf8"
  private val toText = "()Ljava/lang/String;"

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    PatchedClass.write(folder, text, 1)(new Patched(_))
    PatchDecoder.write(folder)
  }

  private class Patched(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "toString" && types == toText) new Asking(inner, this) else inner
    }
  }

  private class Asking(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      push("bytes", "[B")
      push("length", "I")
      inner.visitMethodInsn(
        Opcodes.INVOKESTATIC, "mesh/StrictTexts", "require", "([BI)V", false)
      of.changes += 1
    }

    private def push(field: String, kind: String): Unit = {
      inner.visitVarInsn(Opcodes.ALOAD, 0)
      inner.visitFieldInsn(Opcodes.GETFIELD, text, field, kind)
    }
  }
}
