package mesh

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor}

/** A class of which the methods of these names are changed, each by its visitor. */
class PatchedMethods(
    writer: ClassVisitor, patches: Map[String, (MethodVisitor, PatchedClass) => MethodVisitor])
    extends PatchedClass(writer) {
  override def visitMethod(
      access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
    val inner = super.visitMethod(access, method, types, generic, raised)
    patches.get(method).fold(inner)(_(inner, this))
  }
}
