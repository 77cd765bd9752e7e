package mesh

import java.nio.file.{Files, Path}

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, Opcodes}

/** A class that is changed as it is copied; counts the places that were changed. */
abstract class PatchedClass(writer: ClassVisitor) extends ClassVisitor(Opcodes.ASM9, writer) {
  var changes = 0
}

object PatchedClass {
  /**
   * Writes a class below a folder as `patch` changes it; it takes the place of the one that it is made
   * of where its jar comes first.
   *
   * Ends with IllegalStateException where other than `expected` places were changed, so that no version
   * of what is patched runs without the change unnoticed.
   */
  def write(folder: Path, name: String, expected: Int)(patch: ClassVisitor => PatchedClass): Unit = {
    val source = getClass.getClassLoader.getResourceAsStream(s"$name.class")
    val reader = try new ClassReader(source) finally source.close()
    val writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS)
    val patched = patch(writer)
    reader.accept(patched, 0)
    if (patched.changes != expected)
      throw new IllegalStateException(
        s"$name of this version has ${patched.changes} places to change, not $expected")
    val target = folder.resolve(s"$name.class")
    Files.createDirectories(target.getParent)
    Files.write(target, writer.toByteArray)
  }
}
