package mesh

import java.nio.file.{Files, Path}

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, MethodVisitor, Opcodes}

/**
 * Writes two classes of Debezium's JDBC sink below a folder, which ask [[ExactColumns]]: one where
 * the sink compares a record with its table, one where it names the type of a column. They take the
 * place of the sink's where their jar comes first among the jars of a plugin.
 *
 * Ends with IllegalStateException where a method is not as it is expected, so that no version of the
 * sink runs without it unnoticed.
 */
object PatchSink {
  private val of = "io/debezium/connector/jdbc"
  private val dialect = s"$of/dialect/DatabaseDialect"
  private val pair = s"(L$of/JdbcSinkRecord;L$of/relational/TableDescriptor;)"

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    write(
      folder, s"$of/dialect/GeneralDatabaseDialect",
      "resolveMissingFields", s"${pair}Ljava/util/Set;", new Comparing(_, _))
    write(
      folder, s"$of/type/debezium/VariableScaleDecimalType",
      "getTypeName", "(Lorg/apache/kafka/connect/data/Schema;Z)Ljava/lang/String;",
      new Naming(_, _))
  }

  private def write(
      folder: Path, name: String, method: String, types: String,
      patch: (MethodVisitor, Patched) => MethodVisitor): Unit = {
    val source = getClass.getClassLoader.getResourceAsStream(s"$name.class")
    val reader = try new ClassReader(source) finally source.close()
    val writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS)
    val patched = new Patched(writer, method, types, patch)
    reader.accept(patched, 0)
    if (patched.changes != 1)
      throw new IllegalStateException(
        s"$name.$method of this sink has ${patched.changes} places to ask, not 1")
    val target = folder.resolve(s"$name.class")
    Files.createDirectories(target.getParent)
    Files.write(target, writer.toByteArray)
  }

  private class Patched(
      writer: ClassVisitor, in: String, inTypes: String,
      patch: (MethodVisitor, Patched) => MethodVisitor)
      extends ClassVisitor(Opcodes.ASM9, writer) {
    var changes = 0

    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == in && types == inTypes) patch(inner, this) else inner
    }
  }

  private class Comparing(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      inner.visitVarInsn(Opcodes.ALOAD, 1)
      inner.visitVarInsn(Opcodes.ALOAD, 2)
      ask(inner, "require", s"${pair}V")
      of.changes += 1
    }
  }

  private class Naming(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      if (owner == dialect && called == "getJdbcTypeName" && types == "(I)Ljava/lang/String;") {
        ask(inner, "typeName", s"(L$dialect;I)Ljava/lang/String;")
        of.changes += 1
      } else super.visitMethodInsn(code, owner, called, types, ofInterface)
  }

  private def ask(visitor: MethodVisitor, method: String, types: String): Unit =
    visitor.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/ExactColumns", method, types, false)
}
