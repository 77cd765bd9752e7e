package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/** Writes Avro's decoder below a folder: what it reads of an int or a boolean asks [[StrictNumbers]]. */
object PatchDecoder {
  private val decoder = "org/apache/avro/io/BinaryDecoder"
  private val strict = "mesh/StrictNumbers"

  def write(folder: Path): Unit = PatchedClass.write(folder, decoder, 2)(new Patched(_))

  private class Patched(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      (method, types) match {
        case ("readInt", "()I") =>
          readLong(inner)
          changes += 1
          null
        case ("readBoolean", "()Z") => new Asking(inner, this)
        case _ => inner
      }
    }

    /** In the place of what it does: an int is written as a long. */
    private def readLong(inner: MethodVisitor): Unit = {
      inner.visitCode()
      inner.visitVarInsn(Opcodes.ALOAD, 0)
      inner.visitMethodInsn(Opcodes.INVOKEVIRTUAL, decoder, "readLong", "()J", false)
      inner.visitMethodInsn(Opcodes.INVOKESTATIC, strict, "ofInt", "(J)I", false)
      inner.visitInsn(Opcodes.IRETURN)
      inner.visitMaxs(0, 0)
      inner.visitEnd()
    }
  }

  private class Asking(inner: MethodVisitor, of: Patched) extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitInsn(code: Int): Unit = {
      super.visitInsn(code)
      // the byte is a number without a sign then
      if (code == Opcodes.IAND) {
        inner.visitMethodInsn(Opcodes.INVOKESTATIC, strict, "ofBoolean", "(I)I", false)
        of.changes += 1
      }
    }
  }
}
