package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, MethodVisitor, Opcodes}

/**
 * Writes classes of PostgreSQL's driver below a folder, which ask [[Answers]] before they make
 * room for what a server sends, [[Patience]] for how long they wait for it, and [[Publications]] of a
 * server's warnings. Their jar comes first among those of a plugin; see [[PatchedClass]].
 */
object PatchDriver {
  private val stream = "org/postgresql/core/PGStream"
  private val buffer = "org/postgresql/core/VisibleBufferedInputStream"
  private val executor = "org/postgresql/core/QueryExecutorBase"
  private val arrays = "org/postgresql/jdbc/ArrayDecoding"
  private val rows = "org/postgresql/jdbc/PgResultSet"
  private val answers = "mesh/Answers"
  private val patience = "mesh/Patience"
  private val ofPatience = s"L$patience;"
  /** Fields and a method that the driver's stream is given. */
  private val received = "meshReceived"
  private val waiting = "meshWaiting"
  private val counted = "meshCounted"

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    PatchedClass.write(folder, buffer, 1)(new Buffer(_))
    PatchedClass.write(folder, stream, 18)(new Stream(_))
    PatchedClass.write(folder, executor, 3)(new Kept(_))
    PatchedClass.write(folder, arrays, 3)(new Arrays(_))
    PatchedClass.write(folder, rows, 1)(new Rows(_))
  }

  /** What the driver keeps of a server until the connection ends. */
  private class Kept(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      method match {
        case "onParameterStatus" => new Beginning(inner, this, setting)
        // no connector listens for notifications, or looks at the warnings of a connection
        case "addNotification" | "addWarning" =>
          inner.visitCode()
          if (method == "addWarning") {
            inner.visitVarInsn(Opcodes.ALOAD, 1)
            inner.visitMethodInsn(
              Opcodes.INVOKESTATIC, "mesh/Publications", "require", "(Ljava/sql/SQLWarning;)V", false)
          }
          inner.visitInsn(Opcodes.RETURN)
          inner.visitMaxs(0, 0)
          inner.visitEnd()
          changes += 1
          null
        case _ => inner
      }
    }

    private def setting(visitor: MethodVisitor): Unit = {
      visitor.visitVarInsn(Opcodes.ALOAD, 0)
      visitor.visitFieldInsn(Opcodes.GETFIELD, executor, "parameterStatuses", "Ljava/util/TreeMap;")
      visitor.visitVarInsn(Opcodes.ALOAD, 1)
      visitor.visitVarInsn(Opcodes.ALOAD, 2)
      ask(visitor, "setting", "(Ljava/util/Map;Ljava/lang/String;Ljava/lang/String;)V")
    }
  }

  /** An array says how many elements it has, or has one after the other. */
  private class Arrays(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      method match {
        case "readBinaryArray" =>
          new Beginning(inner, this, visitor => {
            visitor.visitVarInsn(Opcodes.ALOAD, 2)
            ask(visitor, "array", "([B)V")
          })
        case "buildArrayList" => new Elements(inner)
        case _ => inner
      }
    }

    private class Elements(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
        if (owner == s"$arrays$$PgArrayList" && called == "add") {
          ask(inner, "element", "()V")
          changes += 1
        }
        super.visitMethodInsn(code, owner, called, types, ofInterface)
      }
    }
  }

  /** The driver goes on to the next row of an answer. */
  private class Rows(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "next" && types == "()Z")
        new Beginning(inner, this, ask(_, "nextRow", "()V"))
      else inner
    }
  }

  /** Does something before all that the method does. */
  private class Beginning(inner: MethodVisitor, of: PatchedClass, begin: MethodVisitor => Unit)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitCode(): Unit = {
      super.visitCode()
      begin(inner)
      of.changes += 1
    }
  }

  /** The buffer grows by the texts that are read out of it. */
  private class Buffer(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == "doubleBuffer") new Rooms(inner, "textRoom", this) else inner
    }
  }

  /** Counts what has come until the stream sends again, and tells what it waits for. */
  private class Stream(writer: ClassVisitor) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      (method, types) match {
        case ("flush", "()V") => new Beginning(inner, this, forget)
        case ("changeSocket", _) => new Beginning(new Ends(inner), this, begin)
        case ("sendChar", "(I)V") => new Beginning(inner, this, tell(_, "sends", "(I)V", Opcodes.ILOAD))
        case ("setNetworkTimeout", "(I)V") =>
          new Beginning(inner, this, tell(_, "silence", "(I)V", Opcodes.ILOAD))
        case ("receiveInteger4", "()I") => new Beginning(inner, this, tell(_, "greeted", "()V"))
        case ("receiveChar", "()I") =>
          new Beginning(new Returning(inner), this, count(_, "message", "()I"))
        case ("receiveString", "(I)Ljava/lang/String;") | ("receiveErrorString", _) =>
          new Beginning(inner, this, visitor => {
            visitor.visitVarInsn(Opcodes.ILOAD, 1)
            count(visitor, "text", "(I)I")
          })
        case ("receiveTupleV3", _) => new Rooms(new Counting(inner), "room", this)
        // changes come without end, and nothing of the driver's keeps them
        case ("receive", "(I)[B") => new Beginning(new Rooms(inner, "room", this), this, handOn)
        case _ => new Texts(inner)
      }
    }

    override def visitEnd(): Unit = {
      visitField(Opcodes.ACC_PRIVATE, received, "I", null, null).visitEnd()
      visitField(Opcodes.ACC_PRIVATE, waiting, ofPatience, null, null).visitEnd()
      val made = super.visitMethod(Opcodes.ACC_PRIVATE, counted, "(I)I", null, null)
      made.visitCode()
      made.visitVarInsn(Opcodes.ALOAD, 0)
      made.visitVarInsn(Opcodes.ALOAD, 0)
      made.visitFieldInsn(Opcodes.GETFIELD, stream, received, "I")
      made.visitVarInsn(Opcodes.ILOAD, 1)
      ask(made, "more", "(II)I")
      made.visitFieldInsn(Opcodes.PUTFIELD, stream, received, "I")
      made.visitVarInsn(Opcodes.ILOAD, 1)
      made.visitInsn(Opcodes.IRETURN)
      made.visitMaxs(0, 0)
      made.visitEnd()
      super.visitEnd()
    }

    private def forget(visitor: MethodVisitor): Unit = {
      visitor.visitVarInsn(Opcodes.ALOAD, 0)
      visitor.visitInsn(Opcodes.ICONST_0)
      visitor.visitFieldInsn(Opcodes.PUTFIELD, stream, received, "I")
    }

    /** The connection's patience, made with its first socket. */
    private def begin(visitor: MethodVisitor): Unit = {
      visitor.visitVarInsn(Opcodes.ALOAD, 0)
      visitor.visitVarInsn(Opcodes.ALOAD, 1)
      own(visitor)
      visitor.visitMethodInsn(
        Opcodes.INVOKESTATIC, patience, "of", s"(Ljava/net/Socket;$ofPatience)$ofPatience", false)
      visitor.visitFieldInsn(Opcodes.PUTFIELD, stream, waiting, ofPatience)
    }

    private def own(visitor: MethodVisitor): Unit = {
      visitor.visitVarInsn(Opcodes.ALOAD, 0)
      visitor.visitFieldInsn(Opcodes.GETFIELD, stream, waiting, ofPatience)
    }

    /** Call a method of the connection's patience, with the first argument if it takes one. */
    private def tell(
        visitor: MethodVisitor, method: String, types: String, argument: Int = Opcodes.NOP): Unit = {
      own(visitor)
      if (argument != Opcodes.NOP) visitor.visitVarInsn(argument, 1)
      visitor.visitMethodInsn(Opcodes.INVOKEVIRTUAL, patience, method, types, false)
    }

    private def handOn(visitor: MethodVisitor): Unit = {
      ask(visitor, "nextRow", "()V")
      visitor.visitVarInsn(Opcodes.ALOAD, 0)
      visitor.visitVarInsn(Opcodes.ALOAD, 0)
      visitor.visitFieldInsn(Opcodes.GETFIELD, stream, received, "I")
      ask(visitor, "handedOn", "(I)I")
      visitor.visitFieldInsn(Opcodes.PUTFIELD, stream, received, "I")
    }

    /** Count what `Answers` says that a message amounts to. */
    private def count(visitor: MethodVisitor, method: String, types: String): Unit = {
      ask(visitor, method, types)
      keep(visitor)
      visitor.visitInsn(Opcodes.POP)
    }

    /** Count the number on the stack, and leave it there. */
    private def keep(visitor: MethodVisitor): Unit = {
      visitor.visitVarInsn(Opcodes.ALOAD, 0)
      visitor.visitInsn(Opcodes.SWAP)
      visitor.visitMethodInsn(Opcodes.INVOKESPECIAL, stream, counted, "(I)I", false)
    }

    /** Has what is read of a socket watched, and what is written to it. */
    private class Ends(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
        super.visitMethodInsn(code, owner, called, types, ofInterface)
        if (owner == "java/net/Socket" && (called == "getInputStream" || called == "getOutputStream")) {
          val end = types.drop(2)
          own(inner)
          inner.visitMethodInsn(
            Opcodes.INVOKESTATIC, patience, "watched", s"($end$ofPatience)$end", false)
          changes += 1
        }
      }
    }

    /** Has what is returned looked at. */
    private class Returning(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitInsn(code: Int): Unit = {
        if (code == Opcodes.IRETURN) {
          inner.visitInsn(Opcodes.DUP)
          own(inner)
          inner.visitInsn(Opcodes.SWAP)
          inner.visitMethodInsn(Opcodes.INVOKEVIRTUAL, patience, "receives", "(I)V", false)
          changes += 1
        }
        super.visitInsn(code)
      }
    }

    /** Counts a row's columns and their bytes. */
    private class Counting(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitTypeInsn(code: Int, kind: String): Unit = {
        if (code == Opcodes.ANEWARRAY) {
          keep(inner)
          changes += 1
        }
        super.visitTypeInsn(code, kind)
      }

      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
        // its length stands on the stack
        if (owner == answers && called == "room") keep(inner)
        super.visitMethodInsn(code, owner, called, types, ofInterface)
      }
    }

    /** Counts texts whose end has been looked for. */
    private class Texts(inner: MethodVisitor) extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit = {
        super.visitMethodInsn(code, owner, called, types, ofInterface)
        if (owner == buffer && called == "scanCStringLength") {
          keep(inner)
          changes += 1
        }
      }
    }
  }

  /** Has `Answers` make the bytes that the method makes. */
  private class Rooms(inner: MethodVisitor, method: String, of: PatchedClass)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    override def visitIntInsn(code: Int, kind: Int): Unit =
      if (code == Opcodes.NEWARRAY && kind == Opcodes.T_BYTE) {
        ask(this, method, "(I)[B")
        of.changes += 1
      } else super.visitIntInsn(code, kind)
  }

  private def ask(visitor: MethodVisitor, method: String, types: String): Unit =
    visitor.visitMethodInsn(Opcodes.INVOKESTATIC, answers, method, types, false)
}
