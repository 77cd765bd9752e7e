package mesh

import java.nio.file.{Files, Path}

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, Label, MethodVisitor, Opcodes}

/**
 * Writes twenty-six classes of Kafka, which call [[BoundedParsing]], [[BoundedTables]], [[BoundedRequests]],
 * [[BoundedWork]], [[BoundedBatches]], [[BoundedOffsets]], [[BoundedFetches]], [[BoundedConnections]],
 * [[BoundedSegments]], [[BoundedCleaning]], [[BoundedMarkers]], [[BoundedIndexes]] and [[BoundedTls]], below a
 * folder. They take the place of Kafka's where their jar comes first on the class path.
 *
 * Ends with IllegalStateException where a method is not as it is expected, so that no version of Kafka
 * runs without the bounds unnoticed.
 */
object PatchKafka {
  private val records = "org/apache/kafka/common/record/internal"
  private val groups = "org/apache/kafka/coordinator/group"
  private val requests = "org/apache/kafka/common/requests"
  private val tables = "org/apache/kafka/common/utils"
  private val apis = "kafka/server/KafkaApis"
  private val local = "org/apache/kafka/server/common/RequestLocal"
  private val channel = "kafka/network/RequestChannel"
  private val network = "org/apache/kafka/common/network"
  private val kafkaChannel = s"$network/KafkaChannel"
  private val tls = s"$network/SslTransportLayer"
  private val bounds = "mesh/BoundedTls"
  private val engine = "javax/net/ssl/SSLEngine"
  private val logs = "org/apache/kafka/storage/internals/log"
  private val connections = "mesh/BoundedConnections"
  private val fetch = "org/apache/kafka/server/storage/log/FetchParams"
  private val delayed = "kafka/server/DelayedFetch"
  private val whose = "whose"
  private val kept = "kept"
  private val compress = "org/apache/kafka/common/compress/Compression"
  private val batches = "mesh/BoundedBatches"
  private val cleaning = "mesh/BoundedCleaning"
  private val indexes = "mesh/BoundedIndexes"
  private val stream = "Ljava/io/InputStream;"
  private val buffer = "Ljava/nio/ByteBuffer;"

  def main(arguments: Array[String]): Unit = {
    val folder = Path.of(arguments(0))
    patch(folder, s"$records/DefaultRecordBatch", 1) { (name, types, inner) =>
      if (name == "recordInputStream") Some(new OpenBounded(inner)) else None
    }
    patch(folder, s"$records/DefaultRecord", 4) { (name, types, inner) =>
      val begins = types.startsWith(s"(${stream}JJ")
      name match {
        case "readFrom" if begins => Some(new ReadWhole(inner))
        case "readPartiallyFrom" if begins => Some(new PassNumber(inner, 1, "length", "(I)I")())
        // with the length as a parameter: when, offset, key, value, and then its headers
        case "readPartiallyFrom" =>
          Some(new PassNumber(inner, 4, "skipped", s"(I$stream)I")(Opcodes.ALOAD -> 0))
        case "readHeaders" =>
          Some(new CallFirst(inner, batches, "headers", "(I)V")(Opcodes.ILOAD -> 1))
        case _ => None
      }
    }
    patch(folder, s"$logs/LogValidator", 1) { (name, types, inner) =>
      if (name != "validateRecord") None
      else Some(new CallFirst(inner, batches, "place", s"(L$records/RecordBatch;L$records/Record;I)V")(
        Opcodes.ALOAD -> 0, Opcodes.ALOAD -> 2, Opcodes.ILOAD -> 3))
    }
    // other requests than those that append have payloads as well
    patch(folder, "org/apache/kafka/common/compress/SnappyCompression", 1) { (name, types, inner) =>
      if (name != "wrapForInput") None
      else Some(new CallFirst(inner, batches, "blocks", "(Ljava/nio/ByteBuffer;)V")(Opcodes.ALOAD -> 1))
    }
    patch(folder, s"$groups/OffsetMetadataManager", 2) { (name, types, inner) =>
      val given = types.substring(0, types.indexOf(')') + 1)
      // who sends the request, and the request
      if (!Set("commitOffset", "commitTransactionalOffset")(name)) None
      else Some(new CallFirst(
        inner, "mesh/BoundedOffsets", "require", s"${given}V")(Opcodes.ALOAD -> 1, Opcodes.ALOAD -> 2))
    }
    patch(folder, s"$requests/RequestContext", 1) { (name, types, inner) =>
      if (name == "parseRequest") Some(new ParseBounded(inner)) else None
    }
    patch(folder, s"$tables/ImplicitLinkedHashCollection", 2) { (name, types, inner) =>
      name match {
        case "addInternal" => Some(new CountSteps(inner))
        case "changeCapacity" => Some(new TakeAll(inner))
        case _ => None
      }
    }
    patch(folder, s"$tables/ImplicitLinkedHashMultiCollection", 1) { (name, types, inner) =>
      if (name == "addInternal") Some(new CountSteps(inner)) else None
    }
    patch(folder, apis, 1) { (name, types, inner) =>
      if (name == "handle") Some(new AskFirst(inner)) else None
    }
    patch(folder, "kafka/server/KafkaRequestHandler", 1) { (name, types, inner) =>
      val handle = s"handle(L$channel$$Request;L$local;)V"
      if (name != "run") None
      else Some(new InPlace(inner, "kafka/server/ApiRequestHandler", handle)("mesh/BoundedRequests", "handle"))
    }
    patch(folder, channel, 1) { (name, types, inner) =>
      val answer = s"L$channel$$Request;L$requests/AbstractResponse;"
      if (name != "sendResponse" || !types.startsWith(s"($answer")) None
      else Some(new LeaveWhere(inner, "mesh/BoundedWork", "closes", s"(L$channel;$answer)Z")(
        Opcodes.ALOAD -> 0, Opcodes.ALOAD -> 1, Opcodes.ALOAD -> 2))
    }
    patch(folder, "kafka/server/KafkaRequestHandler$", 1) { (name, types, inner) =>
      val callback = "Lscala/Function2;"
      if (name != "wrapAsyncCallback") None
      else Some(new ChangeParameter(inner, "mesh/BoundedRequests", "later", s"($callback)$callback")(
        Opcodes.ASTORE, Opcodes.ALOAD -> 1))
    }
    patch(folder, s"$network/KafkaChannel", 5) { (name, types, inner) =>
      name match {
        case "<init>" => Some(new TellLast(inner, "accepted"))
        case "read" => Some(new TellBoth(inner))
        case "close" => Some(new CallFirst(inner, connections, "closed", s"(L$kafkaChannel;)V")(Opcodes.ALOAD -> 0))
        case "prepare" => Some(new FailAlone(new TellLast(inner, "prepared")))
        case "maybeBeginServerReauthentication" => Some(new FailAlone(inner))
        case _ => None
      }
    }
    patch(folder, tls, 3, Some(kept)) { (name, types, inner) =>
      val ofOne = types == "(Ljava/nio/ByteBuffer;)I"
      name match {
        case "read" if ofOne => Some(new ReadSlice(inner))
        case "write" if ofOne => Some(new InPlace(inner, engine, s"wrap(${buffer}$buffer)Ljavax/net/ssl/SSLEngineResult;")(bounds, "wrap"))
        case "handshakeWrap" => Some(new TellKept(inner, "shakes"))
        case _ => None
      }
    }
    patch(folder, s"$network/NetworkReceive", 1) { (name, types, inner) =>
      if (name == "readFrom") Some(new MakeRoom(inner)) else None
    }
    patch(folder, s"$logs/LogSegment", 1) { (name, types, inner) =>
      if (name == "shouldRoll") Some(new RollLess(inner)) else None
    }
    patch(folder, s"$logs/LogCleanerManager", 1) { (name, types, inner) =>
      if (name == "lambda$grabFilthiestCompactedLog$0") Some(new TakeByTurns(inner)) else None
    }
    patch(folder, s"$logs/Cleaner", 3) { (name, types, inner) =>
      val checks = Set("cleanInto", "buildOffsetMapForSegment", "buildOffsetMap")(name)
      val accept = "accept(Ljava/lang/Object;)V"
      if (checks) Some(new InPlace(inner, "java/util/function/Consumer", accept)(cleaning, "check")) else None
    }
    patch(folder, s"$logs/LogCleaner$$CleanerThread", 1) { (name, types, inner) =>
      val clean = s"clean(L$logs/LogToClean;)Ljava/util/Map$$Entry;"
      if (name == "cleanLog") Some(new InPlace(inner, s"$logs/Cleaner", clean)(cleaning, "clean")) else None
    }
    patch(folder, "kafka/coordinator/transaction/TransactionMarkerChannelManager", 1) { (name, types, inner) =>
      // of a broker that is known; markers of others stay
      val (queue, drain) = ("java/util/concurrent/BlockingQueue", "drainTo(Ljava/util/Collection;)I")
      if (name != "$anonfun$generateRequests$5") None
      else Some(new InPlace(inner, queue, drain)("mesh/BoundedMarkers", "drain"))
    }
    patch(folder, s"$channel$$Request", 1) { (name, types, inner) =>
      if (name != "updateRequestMetrics") None
      else Some(new CallFirst(
        inner, "mesh/BoundedWork", "sent", s"(L$channel$$Request;)V")(Opcodes.ALOAD -> 0))
    }
    patch(folder, s"$logs/TransactionIndex", 2) { (name, types, inner) =>
      if (name == "collectAbortedTxns") Some(new LookFor(inner))
      else if (name == "iterable" && types.startsWith("(L")) Some(new BeginAt(inner))
      else None
    }
    patch(folder, s"$logs/TransactionIndex$$1", 2) { (name, types, inner) =>
      val file = "java/nio/channels/FileChannel"
      name match {
        case "hasNext" => Some(new InPlace(inner, file, "position()J")(indexes, "end"))
        case "next" if types.endsWith("WithPosition;") =>
          Some(new InPlace(inner, s"$tables/Utils", s"readFully(L$file;${buffer}J)V")(indexes, "read"))
        case _ => None
      }
    }
    patch(folder, s"$requests/RequestHeader", 1) { (name, types, inner) =>
      if (name != "parse") None
      else Some(new CallFirst(
        inner, "mesh/BoundedParsing", "header", "(Ljava/nio/ByteBuffer;)V")(Opcodes.ALOAD -> 0))
    }
    patch(folder, delayed, 2) { (name, types, inner) =>
      name match {
        case "tryComplete" => Some(new LookAt(inner, 3, "leaves", "Z"))
        case "onComplete" => Some(new LookAt(inner, 1, "answers", "V"))
        case _ => None
      }
    }
    patch(folder, fetch, 1, Some(whose)) { (name, types, inner) =>
      // the other one calls it
      val whole = name == "<init>" && types.startsWith("(IJJII") && types.endsWith("Z)V")
      if (whole) Some(new WaitLess(inner)) else None
    }
  }

  private type Choice = (String, String, MethodVisitor) => Option[Change]

  /** Write the class, with the changes of `expected` methods, and with one more field. */
  private def patch(folder: Path, name: String, expected: Int, field: Option[String] = None)(choose: Choice): Unit = {
    val source = getClass.getClassLoader.getResourceAsStream(s"$name.class")
    val reader = try new ClassReader(source) finally source.close()
    val writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS)
    var changes = List.empty[Change]
    val visitor = new ClassVisitor(Opcodes.ASM9, writer) {
      override def visitMethod(
          access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
        val inner = super.visitMethod(access, method, types, generic, raised)
        val change = choose(method, types, inner)
        changes = change.toList ++ changes
        change.getOrElse(inner)
      }
    }
    reader.accept(visitor, 0)
    field.foreach(writer.visitField(Opcodes.ACC_PUBLIC, _, "Ljava/lang/Object;", null, null).visitEnd())
    if (changes.size != expected || !changes.forall(_.isDone)) {
      throw new IllegalStateException(s"$name of this Kafka is not as expected: it gets no bounds")
    }
    val target = folder.resolve(s"$name.class")
    Files.createDirectories(target.getParent)
    Files.write(target, writer.toByteArray)
  }

  /** A method that makes `expected` calls more. */
  private abstract class Change(inner: MethodVisitor, expected: Int = 1)
      extends MethodVisitor(Opcodes.ASM9, inner) {
    private var added = 0

    def isDone: Boolean = added == expected && (inner match {
      case change: Change => change.isDone
      case _ => true
    })

    protected def call(owner: String, method: String, types: String): Unit = {
      super.visitMethodInsn(Opcodes.INVOKESTATIC, owner, method, types, false)
      added += 1
    }
  }

  /** Its call of `Compression.wrapForInput` becomes one of `BoundedBatches.open`, with the batch. */
  private class OpenBounded(inner: MethodVisitor) extends Change(inner) {
    private val supplier = "org/apache/kafka/common/utils/BufferSupplier"
    private val given = s"Ljava/nio/ByteBuffer;BL$supplier;"

    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit =
      if (owner == compress && name == "wrapForInput" && types == s"($given)$stream") {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        val batch = s"L$records/DefaultRecordBatch;"
        call(batches, "open", s"(L$compress;$given$batch)$stream")
      } else super.visitMethodInsn(code, owner, name, types, ofInterface)
  }

  /** Its call of `MemoryPool.tryAllocate` becomes one of `BoundedConnections.room`, with what is received. */
  private class MakeRoom(inner: MethodVisitor) extends Change(inner) {
    private val pool = "org/apache/kafka/common/memory/MemoryPool"

    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit =
      if (owner == pool && name == "tryAllocate" && types == "(I)Ljava/nio/ByteBuffer;") {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        call(connections, "room", s"(L$pool;IL$network/NetworkReceive;)Ljava/nio/ByteBuffer;")
      } else super.visitMethodInsn(code, owner, name, types, ofInterface)
  }

  /** Its parameter of how long to wait is bounded, and it keeps whose request it is of. */
  private class WaitLess(inner: MethodVisitor)
      extends ChangeParameter(inner, "mesh/BoundedFetches", "bounded", "(J)J", 2)(
        Opcodes.LSTORE, Opcodes.LLOAD -> 4) {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.RETURN) {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        call("mesh/BoundedWork", "handling", "()Ljava/lang/Object;")
        super.visitFieldInsn(Opcodes.PUTFIELD, fetch, whose, "Ljava/lang/Object;")
      }
      super.visitInsn(code)
    }
  }

  /** Tells the bounds first which index it looks through, and the offset. */
  private class LookFor(inner: MethodVisitor) extends Change(inner) {
    private val channel = "Ljava/nio/channels/FileChannel;"

    override def visitCode(): Unit = {
      super.visitCode()
      super.visitVarInsn(Opcodes.ALOAD, 0)
      super.visitMethodInsn(Opcodes.INVOKEVIRTUAL, s"$logs/TransactionIndex", "channelOrNull", s"()$channel", false)
      super.visitVarInsn(Opcodes.LLOAD, 1)
      call(indexes, "looks", s"(${channel}J)V")
    }
  }

  /**
   * Its call of a method of `of`, by name and types, becomes one of a method of the bounds, with the same parameters
   * behind the object that it is called on, if any.
   */
  private class InPlace(inner: MethodVisitor, of: String, called: String)(bounds: String, method: String)
      extends Change(inner) {
    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit =
      if (owner == of && s"$name$types" == called) {
        call(bounds, method, if (code == Opcodes.INVOKESTATIC) types else types.replace("(", s"(L$owner;"))
      } else super.visitMethodInsn(code, owner, name, types, ofInterface)
  }

  /** Its second call of `Stream.toList`, of all logs that are dirty enough, becomes one of `BoundedCleaning.take`. */
  private class TakeByTurns(inner: MethodVisitor) extends Change(inner) {
    private var lists = 0

    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit = {
      if (name == "toList") lists += 1
      if (name == "toList" && lists == 2) call(cleaning, "take", types.replace("(", s"(L$owner;"))
      else super.visitMethodInsn(code, owner, name, types, ofInterface)
    }
  }

  /** The position at which it begins is what the bounds make of it. */
  private class BeginAt(inner: MethodVisitor) extends Change(inner) {
    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit = {
      if (name == "ofInt") call(indexes, "from", "(I)I")
      super.visitMethodInsn(code, owner, name, types, ofInterface)
    }
  }

  /**
   * Tells the bounds when it begins to look at a fetch that waits, and when it is done, also by an error; and whose
   * that is. It returns at once, nothing or false, where a method of the bounds says so.
   */
  private class LookAt(inner: MethodVisitor, returns: Int, asked: String, kind: String)
      extends Change(inner, 3 + returns) {
    private val callback = "Lscala/Function1;"
    private val (begin, end, fail) = (new Label, new Label, new Label)

    override def visitCode(): Unit = {
      super.visitCode()
      val goOn = new Label
      whoseIs()
      if (kind == "Z") call("mesh/BoundedWork", asked, "(Ljava/lang/Object;)Z")
      else {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        super.visitFieldInsn(Opcodes.GETFIELD, delayed, "responseCallback", callback)
        call("mesh/BoundedWork", asked, s"(Ljava/lang/Object;$callback)Z")
      }
      super.visitJumpInsn(Opcodes.IFEQ, goOn)
      if (kind == "Z") super.visitInsn(Opcodes.ICONST_0)
      inner.visitInsn(if (kind == "Z") Opcodes.IRETURN else Opcodes.RETURN)
      super.visitLabel(goOn)
      super.visitFrame(Opcodes.F_SAME, 0, null, 0, null)
      tell("looks")
      super.visitLabel(begin)
    }

    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.RETURN || code == Opcodes.IRETURN) tell("looked")
      super.visitInsn(code)
    }

    override def visitMaxs(stack: Int, locals: Int): Unit = {
      super.visitLabel(end)
      // behind the method's own: the first one that fits is taken
      super.visitTryCatchBlock(begin, end, fail, null)
      super.visitLabel(fail)
      super.visitFrame(Opcodes.F_FULL, 1, Array[AnyRef](delayed), 1, Array[AnyRef]("java/lang/Throwable"))
      tell("looked")
      inner.visitInsn(Opcodes.ATHROW)
      super.visitMaxs(stack, locals)
    }

    private def tell(method: String): Unit = {
      whoseIs()
      call("mesh/BoundedWork", method, "(Ljava/lang/Object;)V")
    }

    private def whoseIs(): Unit = {
      super.visitVarInsn(Opcodes.ALOAD, 0)
      super.visitFieldInsn(Opcodes.GETFIELD, delayed, "params", s"L$fetch;")
      super.visitFieldInsn(Opcodes.GETFIELD, fetch, whose, "Ljava/lang/Object;")
    }
  }

  /**
   * A text that is too deep for its thread's stack, as of a login's name, closes the connection that it came by. Kafka
   * lets the error end what the thread does for all its connections, and what had come by others is lost.
   */
  private class FailAlone(inner: MethodVisitor) extends Change(inner) {
    private val (begin, end, fail) = (new Label, new Label, new Label)
    private val error = "java/lang/StackOverflowError"

    override def visitCode(): Unit = {
      super.visitCode()
      super.visitTryCatchBlock(begin, end, fail, error)
      super.visitLabel(begin)
    }

    override def visitMaxs(stack: Int, locals: Int): Unit = {
      super.visitLabel(end)
      super.visitLabel(fail)
      super.visitFrame(Opcodes.F_FULL, 1, Array[AnyRef](kafkaChannel), 1, Array[AnyRef](error))
      call(connections, "tooDeep", s"(L$error;)Ljava/io/IOException;")
      inner.visitInsn(Opcodes.ATHROW)
      super.visitMaxs(stack, locals)
    }
  }

  /** Tells the bounds of connections by this method when it is done, but by an error. */
  private class TellLast(inner: MethodVisitor, method: String) extends Change(inner) {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.RETURN) {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        call(connections, method, s"(L$kafkaChannel;)V")
      }
      super.visitInsn(code)
    }
  }

  /** Tells the bounds of connections when it begins, and when it is done, also by an error. */
  private class TellBoth(inner: MethodVisitor) extends Change(inner, 3) {
    private val (begin, end, fail) = (new Label, new Label, new Label)

    override def visitCode(): Unit = {
      super.visitCode()
      tell("reads")
      super.visitTryCatchBlock(begin, end, fail, null)
      super.visitLabel(begin)
    }

    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.LRETURN) tell("hasRead")
      super.visitInsn(code)
    }

    override def visitMaxs(stack: Int, locals: Int): Unit = {
      super.visitLabel(end)
      super.visitLabel(fail)
      super.visitFrame(Opcodes.F_FULL, 1, Array[AnyRef](kafkaChannel), 1, Array[AnyRef]("java/lang/Throwable"))
      tell("hasRead")
      inner.visitInsn(Opcodes.ATHROW)
      super.visitMaxs(stack, locals)
    }

    private def tell(method: String): Unit = {
      super.visitVarInsn(Opcodes.ALOAD, 0)
      call(connections, method, s"(L$kafkaChannel;)V")
    }
  }

  /** Begins by a call of a method of the bounds of TLS, with what is kept of its connection. */
  private class TellKept(inner: MethodVisitor, method: String, more: Int = 0) extends Change(inner, 1 + more) {
    override def visitCode(): Unit = {
      super.visitCode()
      super.visitVarInsn(Opcodes.ALOAD, 0)
      super.visitInsn(Opcodes.DUP)
      super.visitFieldInsn(Opcodes.GETFIELD, tls, kept, "Ljava/lang/Object;")
      call(bounds, method, "(Ljava/lang/Object;)Ljava/lang/Object;")
      super.visitFieldInsn(Opcodes.PUTFIELD, tls, kept, "Ljava/lang/Object;")
    }
  }

  /** Reads for a while only, and passes what it makes of each record through the bounds of TLS. */
  private class ReadSlice(inner: MethodVisitor) extends TellKept(inner, "begins", 2) {
    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit =
      if (owner == engine && name == "unwrap") call(bounds, name, types.replace("(", s"(L$engine;"))
      else {
        super.visitMethodInsn(code, owner, name, types, ofInterface)
        if (name == "readFromSocketChannel") call(bounds, "received", "(I)I")
      }
  }

  /** Passes what it returns through `BoundedSegments.rolls`. */
  private class RollLess(inner: MethodVisitor) extends Change(inner) {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.IRETURN) {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        super.visitFieldInsn(Opcodes.GETFIELD, s"$logs/LogSegment", "created", "J")
        super.visitVarInsn(Opcodes.ALOAD, 0)
        super.visitVarInsn(Opcodes.ALOAD, 1)
        call("mesh/BoundedSegments", "rolls", s"(ZJL$logs/LogSegment;L$logs/RollParams;)Z")
      }
      super.visitInsn(code)
    }
  }

  /** Its call of `AbstractRequest.parseRequest` becomes one of `BoundedParsing.parse`, with the context. */
  private class ParseBounded(inner: MethodVisitor) extends Change(inner) {
    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit =
      if (owner == s"$requests/AbstractRequest" && name == "parseRequest") {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        call("mesh/BoundedParsing", "parse", types.replace(")", s"L$requests/RequestContext;)"))
      } else super.visitMethodInsn(code, owner, name, types, ofInterface)
  }

  /** Calls the bounds each time it has looked at a place. */
  private class CountSteps(inner: MethodVisitor) extends Change(inner) {
    override def visitIincInsn(index: Int, more: Int): Unit = {
      call("mesh/BoundedTables", "step", "()V")
      super.visitIincInsn(index, more)
    }
  }

  /** Its call of `iterator` is followed by one of `BoundedTables.all`. */
  private class TakeAll(inner: MethodVisitor) extends Change(inner) {
    private val iterator = "Ljava/util/Iterator;"

    override def visitMethodInsn(
        code: Int, owner: String, name: String, types: String, ofInterface: Boolean): Unit = {
      super.visitMethodInsn(code, owner, name, types, ofInterface)
      if (name == "iterator" && types == s"()$iterator") {
        call("mesh/BoundedTables", "all", s"($iterator)$iterator")
      }
    }
  }

  /**
   * Passes what one of its calls of `ByteUtils.readVarint` returns through a method of the bounds, with
   * some of its own parameters.
   */
  private class PassNumber(
      inner: MethodVisitor, which: Int, method: String, types: String, expected: Int = 1)(
      parameters: (Int, Int)*) extends Change(inner, expected) {
    private var calls = 0

    override def visitMethodInsn(
        code: Int, owner: String, name: String, called: String, ofInterface: Boolean): Unit = {
      super.visitMethodInsn(code, owner, name, called, ofInterface)
      if (name == "readVarint" && called == s"($stream)I") {
        calls += 1
        if (calls == which) {
          parameters.foreach { case (load, index) => super.visitVarInsn(load, index) }
          call(batches, method, types)
        }
      }
    }
  }

  /** Shows the bounds the length of its record, and the record before it returns it. */
  private class ReadWhole(inner: MethodVisitor) extends PassNumber(inner, 1, "length", "(I)I", 2)() {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.ARETURN) {
        super.visitInsn(Opcodes.DUP)
        super.visitVarInsn(Opcodes.ALOAD, 0)
        call(batches, "read", s"(L$records/DefaultRecord;$stream)V")
      }
      super.visitInsn(code)
    }
  }

  /** Begins by a call of a method of the bounds with some of its own parameters. */
  private class CallFirst(
      inner: MethodVisitor, owner: String, method: String, types: String, expected: Int = 1)(
      parameters: (Int, Int)*) extends Change(inner, expected) {
    override def visitCode(): Unit = {
      super.visitCode()
      parameters.foreach { case (load, index) => super.visitVarInsn(load, index) }
      call(owner, method, types)
    }
  }

  /** Returns at once where a method of the bounds says so of some of its own parameters. */
  private class LeaveWhere(
      inner: MethodVisitor, owner: String, method: String, types: String, expected: Int = 1)(
      parameters: (Int, Int)*) extends Change(inner, expected) {
    override def visitCode(): Unit = {
      super.visitCode()
      val goOn = new Label
      parameters.foreach { case (load, index) => super.visitVarInsn(load, index) }
      call(owner, method, types)
      super.visitJumpInsn(Opcodes.IFEQ, goOn)
      // not by a method of a class below: nothing was begun
      super.visitInsn(Opcodes.RETURN)
      super.visitLabel(goOn)
      super.visitFrame(Opcodes.F_SAME, 0, null, 0, null)
    }
  }

  /** Makes the first of some of its own parameters what a method of the bounds returns for them. */
  private class ChangeParameter(
      inner: MethodVisitor, owner: String, method: String, types: String, expected: Int = 1)(
      store: Int, parameters: (Int, Int)*)
      extends CallFirst(inner, owner, method, types, expected)(parameters: _*) {
    override def visitCode(): Unit = {
      super.visitCode()
      super.visitVarInsn(store, parameters.head._2)
    }
  }

  /** Returns at once where `BoundedRequests.refuses` its request, and else tells when it is done. */
  private class AskFirst(inner: MethodVisitor) extends LeaveWhere(
      inner, "mesh/BoundedRequests", "refuses", s"(L$apis;Lkafka/network/RequestChannel$$Request;L$local;)Z", 2)(
      Opcodes.ALOAD -> 0, Opcodes.ALOAD -> 1, Opcodes.ALOAD -> 2) {
    override def visitInsn(code: Int): Unit = {
      if (code == Opcodes.RETURN) {
        super.visitVarInsn(Opcodes.ALOAD, 0)
        super.visitVarInsn(Opcodes.ALOAD, 2)
        call("mesh/BoundedRequests", "ends", s"(L$apis;L$local;)V")
      }
      super.visitInsn(code)
    }
  }
}
