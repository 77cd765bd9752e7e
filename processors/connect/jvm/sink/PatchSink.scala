package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes six classes of Debezium's JDBC sink below a folder. Its task asks [[OneWriter]], and four
 * ask [[ExactColumns]]: one where
 * the sink finds and reads a table, compares a record with it and looks for a row, one where it writes
 * records, one where it adds columns, and one where it names the type of a column. It makes columns
 * that take null, but for those of a key, and the default of a time of day is one.
 * Their jar comes first among those of a plugin; see [[PatchedClass]].
 */
object PatchSink {
  private val of = "io/debezium/connector/jdbc"
  private val dialect = s"$of/dialect/DatabaseDialect"
  private val table = s"$of/relational/TableDescriptor"
  private val pair = s"(L$of/JdbcSinkRecord;L$table;)"
  private val sink = s"$of/JdbcChangeEventSink"
  private val task = s"$of/JdbcSinkConnectorTask"
  private val sinkTask = "Lorg/apache/kafka/connect/sink/SinkTask;"
  private val writer = "mesh/OneWriter"
  private val connection = "java/sql/Connection"
  private val metadata = "java/sql/DatabaseMetaData"
  private val schema = "org/apache/kafka/connect/data/Schema"
  private val column = "Lio/debezium/sink/column/ColumnDescriptor;"
  private val field = s"$of/field/JdbcFieldDescriptor"
  private val text = "Ljava/lang/String;"
  private val takesNull = s"(L$schema;L$of/JdbcSinkRecord;L$table;$text)Z"

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    write(
      folder, s"$of/dialect/GeneralDatabaseDialect", 8,
      Map(
        ("columnNameEqualsBinding", s"(${text}L$table;L$of/JdbcSinkRecord;)$text") ->
          (new Comparing(_, _)),
        // what says of a column whether it takes null
        ("lambda$getCreateTableStatement$0", s"(Ljava/util/Map;$text)$text") ->
          (new Answering(_, _)(schema, "isOptional", true)),
        ("lambda$getAlterTableStatement$2", s"(L$of/JdbcSinkRecord;$text)$text") ->
          (new Answering(_, _)(schema, "isOptional", true)),
        ("tableExists", s"(L$connection;Lio/debezium/metadata/CollectionId;)Z") ->
          (new Finding(_, _)),
        ("resolveMissingFields", s"${pair}Ljava/util/Set;") ->
          (new Beginning(_, _)(1, 2, "require", s"${pair}V")),
        ("readTable", s"(L$connection;Lio/debezium/metadata/CollectionId;)L$table;") -> (new Reading(_, _))))
    write(
      folder, sink, 1,
      Map(
        ("flushBuffer", s"(Lio/debezium/metadata/CollectionId;Ljava/util/List;L$table;)V") ->
          (new Beginning(_, _)(2, 3, "requireValues", s"(Ljava/util/List;L$table;)V"))))
    write(
      folder, s"$of/DefaultRecordWriter", 1,
      Map(
        ("alterTableIfNeeded", s"(Lio/debezium/metadata/CollectionId;L$of/JdbcSinkRecord;)L$table;") ->
          (new Adding(_, _))))
    write(
      folder, task, 4,
      Map(
        ("start", "(Ljava/util/Map;)V") -> (new Owning(_, _)("start", "Ljava/util/Map;")),
        ("open", "(Ljava/util/Collection;)V") -> (new Owning(_, _)("open", "Ljava/util/Collection;")),
        ("stop", "()V") -> (new Owning(_, _)("stop", "")),
        ("put", "(Ljava/util/Collection;)V") -> (new Writing(_, _))))
    write(
      folder, s"$of/type/debezium/VariableScaleDecimalType", 1,
      Map(
        ("getTypeName", "(Lorg/apache/kafka/connect/data/Schema;Z)Ljava/lang/String;") ->
          (new Naming(_, _))))
    write(
      folder, s"$of/type/debezium/AbstractDebeziumTimeType", 1,
      Map(
        // with a zone it is today's, in words that PostgreSQL does not take
        ("getDefaultValueBinding", s"(L$schema;Ljava/lang/Object;)$text") ->
          (new Answering(_, _)(dialect, "isTimeZoneSet", false))))
  }

  private def write(folder: Path, name: String, count: Int, patches: Patches): Unit =
    PatchedClass.write(folder, name, count)(new Patched(_, patches))

  private type Patches = Map[(String, String), (MethodVisitor, Patched) => MethodVisitor]

  private class Patched(writer: ClassVisitor, patches: Patches) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      patches.get((method, types)).fold(inner)(patch => patch(inner, this))
    }
  }

  /** Asks with two of its arguments before anything else. */
  private class Beginning(inner: MethodVisitor, of: Patched)(
      one: Int, other: Int, asked: String, types: String)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      inner.visitVarInsn(Opcodes.ALOAD, one)
      inner.visitVarInsn(Opcodes.ALOAD, other)
      ask(inner, asked, types)
      of.changes += 1
    }
  }

  /** Says what a task begins with, before anything else. */
  private class Owning(inner: MethodVisitor, of: Patched)(asked: String, types: String)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      inner.visitVarInsn(Opcodes.ALOAD, 0)
      if (types.nonEmpty) inner.visitVarInsn(Opcodes.ALOAD, 1)
      inner.visitMethodInsn(Opcodes.INVOKESTATIC, writer, asked, s"($sinkTask$types)V", false)
      of.changes += 1
    }
  }

  /** Has a task write where no other one does. */
  private class Writing(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      if (owner == sink && called == "execute") {
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitMethodInsn(
          Opcodes.INVOKESTATIC, writer, called,
          s"(L$sink;Ljava/util/Collection;$sinkTask)V", false)
        of.changes += 1
      } else super.visitMethodInsn(code, owner, called, types, ofInterface)
  }

  /** Has a table found by its name, where the driver is asked for a pattern. */
  private class Finding(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      if (owner == metadata && (called == "getTables" || called == "getColumns")) {
        ask(inner, called, s"(L$metadata;${types.drop(1)}")
        of.changes += 1
      } else super.visitMethodInsn(code, owner, called, types, ofInterface)
  }

  private class Reading(inner: MethodVisitor, of: Patched) extends Finding(inner, of) {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.ARETURN) {
        inner.visitInsn(Opcodes.DUP)
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitVarInsn(Opcodes.ALOAD, 1)
        ask(inner, "read", s"(L$table;L$dialect;L$connection;)V")
        of.changes += 1
      }
      super.visitInsn(code)
    }
  }

  /** Has a row looked for by a value that can be compared with its column. */
  private class Comparing(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    private val columnAt = 6

    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
      super.visitMethodInsn(code, owner, called, types, ofInterface)
      if (owner == field && called == "getQueryBinding") {
        inner.visitVarInsn(Opcodes.ALOAD, 2)
        inner.visitVarInsn(Opcodes.ALOAD, columnAt)
        ask(inner, "compared", s"(${text}L$table;$column)$text")
        of.changes += 1
      }
    }
  }

  /** Has a column added that takes null, of a field without which there is no record. */
  private class Adding(inner: MethodVisitor, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    private val nameAt = 6

    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      if (owner == schema && called == "isOptional") {
        inner.visitVarInsn(Opcodes.ALOAD, 2)
        inner.visitVarInsn(Opcodes.ALOAD, 3)
        inner.visitVarInsn(Opcodes.ALOAD, nameAt)
        ask(inner, "takesNull", takesNull)
        of.changes += 1
      } else super.visitMethodInsn(code, owner, called, types, ofInterface)
  }

  /** Answers what a method without arguments is asked for. */
  private class Answering(inner: MethodVisitor, of: Patched)(
      asked: String, method: String, answer: Boolean)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      if (owner == asked && called == method) {
        inner.visitInsn(Opcodes.POP)
        inner.visitInsn(if (answer) Opcodes.ICONST_1 else Opcodes.ICONST_0)
        of.changes += 1
      } else super.visitMethodInsn(code, owner, called, types, ofInterface)
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
