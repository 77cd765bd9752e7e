package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, Label, MethodVisitor, Opcodes}

/**
 * Writes two classes of Kafka's clients below a folder, which ask [[TopicIds]]: what a consumer knows
 * of brokers, as it is made, and what takes their answers and gives topics' ids. See [[PatchedClass]].
 */
object PatchMetadata {
  private val metadata = "org/apache/kafka/clients/Metadata"
  private val answer = "org/apache/kafka/common/requests/MetadataResponse"
  private val map = "java/util/Map"
  private val config = "org/apache/kafka/clients/consumer/ConsumerConfig"

  def write(folder: Path): Unit = {
    PatchedClass.write(folder, "org/apache/kafka/clients/consumer/internals/ConsumerMetadata", 1)(
      new Patched(_, Map(("<init>", s"(L$config;") -> (new Expecting(_, _)))))
    PatchedClass.write(folder, metadata, 2)(
      new Patched(
        _,
        Map(
          ("update", s"(IL$answer;ZJ)V") -> (new Refusing(_, _)),
          ("topicIds", s"()L$map;") -> (new Keeping(_, _)))))
  }

  private type Patches = Map[(String, String), (MethodVisitor, PatchedClass) => MethodVisitor]

  /** Methods are known by their name and what their types begin with. */
  private class Patched(writer: ClassVisitor, patches: Patches) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      patches
        .collectFirst { case ((name, begin), patch) if method == name && types.startsWith(begin) => patch }
        .fold(inner)(patch => patch(inner, this))
    }
  }

  private class Expecting(inner: MethodVisitor, of: PatchedClass) extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.RETURN) {
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitVarInsn(Opcodes.ALOAD, 1)
        inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/TopicIds", "expect", s"(L$metadata;L$config;)V", false)
        of.changes += 1
      }
      super.visitInsn(code)
    }
  }

  private class Refusing(inner: MethodVisitor, of: PatchedClass) extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      val isTaken = new Label()
      inner.visitVarInsn(Opcodes.ALOAD, 0)
      inner.visitVarInsn(Opcodes.ALOAD, 2)
      inner.visitVarInsn(Opcodes.LLOAD, 4)
      inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/TopicIds", "refuses", s"(L$metadata;L$answer;J)Z", false)
      inner.visitJumpInsn(Opcodes.IFEQ, isTaken)
      inner.visitInsn(Opcodes.RETURN)
      inner.visitLabel(isTaken)
      inner.visitFrame(Opcodes.F_SAME, 0, null, 0, null)
      of.changes += 1
    }
  }

  private class Keeping(inner: MethodVisitor, of: PatchedClass) extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.ARETURN) {
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/TopicIds", "kept", s"(L$map;L$metadata;)L$map;", false)
        of.changes += 1
      }
      super.visitInsn(code)
    }
  }
}
