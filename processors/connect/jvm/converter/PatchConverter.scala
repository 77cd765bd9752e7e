package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes a class of the Avro converter below a folder: what makes Connect's schemas of Avro's, and
 * the other way round, asks [[BoundedSchemas]], and what makes small numbers of larger ones
 * [[SmallNumbers]]. Its jar comes first among those of the plugin; see [[PatchedClass]].
 */
object PatchConverter {
  private val data = "io/apicurio/registry/utils/converter/avro/AvroData"
  private val cache = "org/apache/kafka/common/cache/Cache"
  private val schema = "org/apache/avro/Schema"
  private val any = "Ljava/lang/Object;"
  private val number = "java/lang/Integer"
  private val small = Set("byteValue", "shortValue")

  /** Where a schema of Avro's is the first argument. */
  private val toConnect =
    s"(L$schema;Ljava/lang/Integer;L$data$$ToConnectContext;)Lorg/apache/kafka/connect/data/Schema;"

  def main(arguments: Array[String]): Unit =
    PatchedClass.write(Path.of(arguments(0)), data, 5)(new Patched(_))

  private class Patched(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      new Asking(inner, method, method == "toConnectSchema" && types == toConnect, this)
    }
  }

  private class Asking(inner: MethodVisitor, method: String, ofAvro: Boolean, of: Patched)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitMethodInsn(
        code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
      if (owner == cache && called == "put") ask("put", s"(L$cache;$any$any)V")
      else if (owner == cache && called == "get" && ofAvro) {
        super.visitVarInsn(Opcodes.ALOAD, 1)
        ask("get", s"(L$cache;${any}L$schema;)$any")
      } else if (owner == number && method == "toConnectData" && small.contains(called))
        ask(called, s"(L$number;${types.drop(1)}", "mesh/SmallNumbers")
      else super.visitMethodInsn(code, owner, called, types, ofInterface)

    private def ask(asked: String, types: String, whom: String = "mesh/BoundedSchemas"): Unit = {
      super.visitMethodInsn(Opcodes.INVOKESTATIC, whom, asked, types, false)
      of.changes += 1
    }
  }
}
