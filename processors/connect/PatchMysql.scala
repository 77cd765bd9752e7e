package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes classes of MySQL's driver and of MariaDB's below a folder: one of each whose streams are
 * those of [[Packets]], and those that make room for as much as a packet says that it has, which may
 * be any number, and here ask before. Their jar comes first among those of a plugin; see
 * [[PatchedClass]].
 */
object PatchMysql {
  private val patience = "mesh/Patience"
  private val ofPatience = s"L$patience;"
  /** A field that both are given. */
  private val waiting = "meshWaiting"
  private val sockets = Set("java/net/Socket", "javax/net/ssl/SSLSocket")
  private val ends = Set("getInputStream", "getOutputStream")

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    val mysql = "com/mysql/cj/protocol/a"
    val maria = "org/mariadb/jdbc"
    val streams = Map(s"$mysql/NativeSocketConnection" -> 7, s"$maria/client/impl/StandardClient" -> 6)
    for ((name, count) <- streams) PatchedClass.write(folder, name, count)(new Streams(_, name))
    PatchedClass.write(folder, s"$mysql/ColumnDefinitionReader", 1)(new Rooms(_, "read"))
    PatchedClass.write(folder, s"$mysql/NativePacketPayload", 1)(new Rooms(_, "readBytes"))
    PatchedClass.write(folder, s"$maria/message/ClientMessage", 3)(new Rooms(_, "readPacket"))
    PatchedClass.write(folder, s"$maria/message/server/OkPacket", 6)(new Rooms(_, "parse"))
  }

  /** Asks before there is room for bytes or columns, in methods whose names begin so. */
  private class Rooms(writer: ClassVisitor, methods: String) extends PatchedClass(writer) {
    private val columns = Set("com/mysql/cj/result/Field", "org/mariadb/jdbc/client/ColumnDecoder")

    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method.startsWith(methods)) new Room(inner) else inner
    }

    private class Room(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitIntInsn(code: Int, kind: Int): Unit =
        if (code == Opcodes.NEWARRAY && kind == Opcodes.T_BYTE) {
          inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/Answers", "room", "(I)[B", false)
          changes += 1
        } else super.visitIntInsn(code, kind)

      override def visitTypeInsn(code: Int, kind: String): Unit = {
        if (code == Opcodes.ANEWARRAY && columns(kind)) {
          inner.visitMethodInsn(Opcodes.INVOKESTATIC, "mesh/Packets", "columns", "(I)I", false)
          changes += 1
        }
        super.visitTypeInsn(code, kind)
      }
    }
  }

  private class Streams(writer: ClassVisitor, name: String) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      // to close it MariaDB's reads for some milliseconds
      if (method == "closeSocket") inner else new Ends(inner)
    }

    override def visitEnd(): Unit = {
      visitField(Opcodes.ACC_PRIVATE, waiting, ofPatience, null, null).visitEnd()
      super.visitEnd()
    }

    private class Ends(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
        if (sockets(owner) && ends(called)) {
          val end = types.drop(2)
          // its patience is made with the first socket; that of TLS is the same connection
          inner.visitInsn(Opcodes.DUP)
          own()
          inner.visitMethodInsn(
            Opcodes.INVOKESTATIC, patience, "of", s"(Ljava/net/Socket;$ofPatience)$ofPatience",
            false)
          inner.visitVarInsn(Opcodes.ALOAD, 0)
          inner.visitInsn(Opcodes.SWAP)
          inner.visitFieldInsn(Opcodes.PUTFIELD, name, waiting, ofPatience)
          super.visitMethodInsn(code, owner, called, types, ofInterface)
          own()
          inner.visitMethodInsn(
            Opcodes.INVOKESTATIC, "mesh/Packets", "watched", s"($end$ofPatience)$end", false)
          changes += 1
        } else super.visitMethodInsn(code, owner, called, types, ofInterface)

      private def own(): Unit = {
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitFieldInsn(Opcodes.GETFIELD, name, waiting, ofPatience)
      }
    }
  }
}
