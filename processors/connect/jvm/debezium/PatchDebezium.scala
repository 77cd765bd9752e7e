package mesh

import java.nio.file.Path

import org.apache.xbean.asm9.{ClassVisitor, Label, MethodVisitor, Opcodes}

/**
 * Writes classes of Debezium's PostgreSQL connector below a folder: those that compare texts of a
 * database with patterns ask [[BoundedMatches]], the one that reads defaults asks [[ConstantDefaults]],
 * the one that makes publications asks [[Identities]] and `RenamedTables`, and changes their tables alone,
 * what reads of which table a change is asks `RenamedTables`, and the one that reads slots asks [[LostSlots]]. No unique index is the key of a table without a primary key. The
 * one that starts a replication stream asks for no logical messages, which every role that may connect
 * to the database can send, in any size. The one that reads tables begins the stream where the slot
 * does, if there is one: what commits while a first reading is begun anew comes behind it, some of it
 * again. The one that starts the stream asks [[LogPositions]], also of a standby's publication. The one
 * that reads it asks `Keepalives` before its
 * heartbeats, and [[CountedPositions]] where it begins and at each message, as do those that make
 * positions. The queue of records and what polls it ask [[WholeMessages]]. The one that makes records of an outbox's payloads asks
 * [[WholePayloads]]. What reads the types of a database asks [[TypeLabels]]. Their jar comes first among those of the plugin; see [[PatchedClass]].
 */
object PatchDebezium {
  private val of = "io/debezium/connector/postgresql"
  private val pattern = "java/util/regex/Pattern"
  private val logger = "org/slf4j/Logger"
  private val texts = "Ljava/lang/CharSequence;"
  private val toMatcher = s"($texts)Ljava/util/regex/Matcher;"
  private val toParts = s"($texts)[Ljava/lang/String;"
  private val toConstant =
    "(Lio/debezium/relational/Column;Ljava/lang/String;)Ljava/lang/String;"
  private val toAnswer = "(Ljava/lang/String;)Z"
  private val toLog = "(Ljava/lang/String;Ljava/lang/Throwable;)V"
  private val connection = s"$of/connection/PostgresReplicationConnection"
  private val toExecute = "(Ljava/sql/Statement;Ljava/lang/String;)V"
  private val builder = "org/postgresql/replication/fluent/logical/ChainedLogicalStreamBuilder"
  private val toOption = s"(Ljava/lang/String;Z)L$builder;"
  private val toPublish = "createOrUpdatePublicationModeFiltered"
  private val toCompare = "validatePublications"
  private val toAlter = "buildAlterPublishClause"
  private val toStart = "isPublicationUpdateRequired"
  private val decoder = s"$of/connection/pgoutput/PgOutputMessageDecoder"
  private val toRelation = "resolveRelationFromMetadata"
  private val toChange = "resolveRelation"
  private val context = s"L$of/connection/MessageDecoderContext;"
  private val config = s"L$of/PostgresConnectorConfig;"
  private val database = s"L$of/connection/PostgresConnection;"
  private val relation = s"L$of/connection/pgoutput/PgOutputRelationMetaData;"
  private val renamed = s"$of/RenamedTables"
  private val isKey = "isTableUniqueIndexIncluded"
  private val toSlot = "parseRestartLsn"
  private val toType = "createTypeBuilderFromResultSet"
  private val toRecord = "jsonNodeToStructInternal"
  private val ofJson =
    "(Lcom/fasterxml/jackson/databind/JsonNode;Lorg/apache/kafka/connect/data/Schema;)V"
  private val keepalives = s"$of/Keepalives"
  private val positions = "mesh/LogPositions"
  private val source = s"$of/PostgresStreamingChangeEventSource"
  private val position = s"$of/PostgresOffsetContext"
  private val number = "org/postgresql/replication/LogSequenceNumber"
  private val lsn = s"L$of/connection/Lsn;"
  private val counted = s"$of/CountedPositions"
  private val whole = s"$of/WholeMessages"
  private val queue = "io/debezium/connector/base/ChangeEventQueue"
  private val task = s"$of/PostgresConnectorTask"
  private val map = "Ljava/util/Map;"
  private val list = "Ljava/util/List;"
  private val toMessage =
    s"(L$of/connection/ReplicationStream;L$of/connection/ReplicationMessage;)Z"

  /** Class -> its methods that are changed, and the places in them. */
  private val places = Map(
    s"$of/connection/PostgresConnection" -> (Set(isKey, toSlot), 2),
    s"$of/connection/PostgresDefaultValueConverter" ->
      (Set("extractDefault", "parseDefaultValue"), 4),
    s"$of/connection/AbstractReplicationMessageColumn$$TypeMetadataImpl" ->
      (Set("parseModifiers"), 2),
    connection ->
      (Set("startStreaming", "advanceReplicationSlot", "createReplicationStream", toPublish, toCompare,
        toAlter, toStart), 11),
    s"$of/TypeRegistry" -> (Set(toType), 1),
    decoder -> (Set("defaultOptions", toRelation, toChange), 3),
    s"$connection$$1" -> (Set("readPending"), 1),
    source -> (Set("execute", "processMessages", "processReplicationMessages"), 4),
    position -> (Set("getOffset"), 1),
    s"$position$$Loader" -> (Set("load"), 1),
    queue -> (Set("doEnqueue"), 1),
    task -> (Set("doPoll"), 1),
    s"$of/PostgresSnapshotChangeEventSource" -> (Set("getTransactionStartLsn"), 1),
    s"$of/PgSnapshot" -> (Set("valueOf"), 1),
    "io/debezium/transforms/outbox/JsonSchemaData" -> (Set(toRecord), 1))

  def main(arguments: Array[String]): Unit =
    for ((name, (methods, count)) <- places)
      PatchedClass.write(Path.of(arguments(0)), name, count)(new Patched(_, methods))

  private class Patched(writer: ClassVisitor, methods: Set[String]) extends PatchedClass(writer) {
    override def visitMethod(
        access: Int, method: String, types: String, generic: String, raised: Array[String]) = {
      val inner = super.visitMethod(access, method, types, generic, raised)
      if (method == isKey && methods(method)) {
        inner.visitCode()
        inner.visitInsn(Opcodes.ICONST_0)
        inner.visitInsn(Opcodes.IRETURN)
        inner.visitMaxs(0, 0)
        inner.visitEnd()
        changes += 1
        null
      } else if (methods(method) && (access & Opcodes.ACC_BRIDGE) == 0) new Asking(inner, method)
      else inner
    }

    private class Asking(inner: MethodVisitor, method: String)
        extends MethodVisitor(Opcodes.ASM9, inner) {
      override def visitCode(): Unit = {
        super.visitCode()
        // Debezium takes null for no default
        if (method == "parseDefaultValue") {
          inner.visitVarInsn(Opcodes.ALOAD, 1)
          inner.visitVarInsn(Opcodes.ALOAD, 2)
          call("mesh/ConstantDefaults", "constant", toConstant)
          inner.visitVarInsn(Opcodes.ASTORE, 2)
        }
        if (method == "processReplicationMessages") leaveWhatIsDone()
        if (method == toStart) askOfTables("require")
        if (method == toRelation) {
          inner.visitVarInsn(Opcodes.ALOAD, 0)
          inner.visitFieldInsn(Opcodes.GETFIELD, decoder, "decoderContext", context)
          inner.visitVarInsn(Opcodes.ALOAD, 0)
          inner.visitFieldInsn(Opcodes.GETFIELD, decoder, "connection", database)
          inner.visitVarInsn(Opcodes.ALOAD, 1)
          call(renamed, "named", s"($context$database$relation)V")
        }
        // its argument is the table's oid
        if (method == toChange) {
          inner.visitVarInsn(Opcodes.ALOAD, 0)
          inner.visitFieldInsn(Opcodes.GETFIELD, decoder, "decoderContext", context)
          inner.visitVarInsn(Opcodes.ILOAD, 1)
          call(renamed, "require", s"(${context}I)V")
        }
        if (method == toCompare) call(positions, "refuseStandby", "()V")
        if (method == toRecord) {
          inner.visitVarInsn(Opcodes.ALOAD, 1)
          inner.visitVarInsn(Opcodes.ALOAD, 2)
          call("mesh/WholePayloads", "require", ofJson)
        }
        // its first argument is the slot's name, the last one its row
        if (method == toSlot) {
          inner.visitVarInsn(Opcodes.ALOAD, 1)
          inner.visitVarInsn(Opcodes.ALOAD, 4)
          call("mesh/LostSlots", "require", "(Ljava/lang/String;Ljava/sql/ResultSet;)V")
        }
      }

      override def visitInsn(code: Int): Unit = {
        (code, method) match {
          case (Opcodes.ARETURN, "getOffset") =>
            inner.visitVarInsn(Opcodes.ALOAD, 0)
            call(counted, "told", s"(${map}L$position;)$map")
          case (Opcodes.ARETURN, "load") =>
            inner.visitVarInsn(Opcodes.ALOAD, 1)
            call(counted, "loaded", s"(L$position;$map)L$position;")
          case (Opcodes.RETURN, "doEnqueue") =>
            inner.visitVarInsn(Opcodes.ALOAD, 0)
            call(whole, "enqueued", s"(L$queue;)V")
          case _ =>
        }
        super.visitInsn(code)
      }

      override def visitMethodInsn(
          code: Int, owner: String, called: String, types: String, ofInterface: Boolean): Unit =
        (owner, called, types, method) match {
          case (`pattern`, "matcher" | "split", `toMatcher` | `toParts`, _) =>
            ask(called, s"(L$pattern;${types.drop(1)}")
          case ("java/lang/String", "matches", `toAnswer`, _) =>
            ask("matches", "(Ljava/lang/String;Ljava/lang/String;)Z")
          case (`logger`, "debug", `toLog`, "parseDefaultValue") =>
            askOf("passOver", logger, toLog, "io/debezium/relational/Column")
          case ("java/sql/Array", "getArray", "()Ljava/lang/Object;", `toType`) =>
            call("mesh/TypeLabels", "of", "(Ljava/sql/Array;)Ljava/lang/Object;")
          case (`connection`, "executeWithTimeout", `toExecute`, `toPublish`) =>
            super.visitMethodInsn(code, owner, called, types, ofInterface)
            askOfPublication()
          case (`builder`, "withSlotOption", `toOption`, "defaultOptions") =>
            // its only option that is true or false is whether messages are sent
            inner.visitInsn(Opcodes.POP)
            inner.visitInsn(Opcodes.ICONST_0)
            super.visitMethodInsn(code, owner, called, types, ofInterface)
            changes += 1
          case (`connection`, "buildPublishOptionValue", _, `toAlter`) =>
            // what is published stays: PostgreSQL has no WITH behind the tables that it is set to
            inner.visitInsn(Opcodes.POP)
            inner.visitInsn(Opcodes.ACONST_NULL)
            changes += 1
          case (_, "shouldStreamEventsStartingFromSnapshot", _, "getTransactionStartLsn") =>
            inner.visitInsn(Opcodes.POP)
            inner.visitInsn(Opcodes.ICONST_0)
            changes += 1
          case (_, "getLastReceiveLSN", _, "readPending") =>
            super.visitMethodInsn(code, owner, called, types, ofInterface)
            call(keepalives, "receive", s"(L$number;)L$number;")
          case (`connection`, "connect", _, "startStreaming") =>
            super.visitMethodInsn(code, owner, called, types, ofInterface)
            inner.visitVarInsn(Opcodes.ALOAD, 0)
            inner.visitVarInsn(Opcodes.ALOAD, 1)
            call(positions, "require", s"(L$connection;$lsn)V")
          case (_, "searchingEnabled", _, "execute") =>
            inner.visitVarInsn(Opcodes.ALOAD, 0)
            inner.visitFieldInsn(Opcodes.GETFIELD, source, "effectiveOffset", s"L$position;")
            call(keepalives, "searches", s"(L$owner;L$position;)Z")
          case (`position`, "lastCompletelyProcessedLsn", _, "execute") =>
            super.visitMethodInsn(code, owner, called, types, ofInterface)
            inner.visitVarInsn(Opcodes.ALOAD, 0)
            inner.visitFieldInsn(Opcodes.GETFIELD, source, "effectiveOffset", s"L$position;")
            call(counted, "start", s"(${lsn}L$position;)$lsn")
          case (_, "pollRecords", _, "doPoll") =>
            super.visitMethodInsn(code, owner, called, types, ofInterface)
            inner.visitVarInsn(Opcodes.ALOAD, 0)
            inner.visitFieldInsn(Opcodes.GETFIELD, task, "queue", s"L$queue;")
            call(whole, "whole", s"(${list}L$queue;)$list")
          case (_, "dispatchHeartbeatEventAlsoToIncrementalSnapshot", _, "processMessages") =>
            advance()
            super.visitMethodInsn(code, owner, called, types, ofInterface)
          case _ => super.visitMethodInsn(code, owner, called, types, ofInterface)
        }

      /** Its last arguments are the stream and the message. */
      private def leaveWhatIsDone(): Unit = {
        val isNew = new Label()
        inner.visitVarInsn(Opcodes.ALOAD, 3)
        inner.visitVarInsn(Opcodes.ALOAD, 4)
        call(counted, "isDone", toMessage)
        inner.visitJumpInsn(Opcodes.IFEQ, isNew)
        inner.visitInsn(Opcodes.RETURN)
        inner.visitLabel(isNew)
        inner.visitFrame(Opcodes.F_SAME, 0, null, 0, null)
      }

      /** Its third argument is the position, of which the source keeps a part. */
      private def advance(): Unit = {
        val allowed = "lsnFlushingAllowed"
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitVarInsn(Opcodes.ALOAD, 3)
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitFieldInsn(Opcodes.GETFIELD, source, allowed, "Z")
        call(keepalives, "advance", s"(L$position;Z)Z")
        inner.visitFieldInsn(Opcodes.PUTFIELD, source, allowed, "Z")
        val last = "lastCompletelyProcessedLsn"
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitVarInsn(Opcodes.ALOAD, 3)
        inner.visitMethodInsn(Opcodes.INVOKEVIRTUAL, position, last, s"()$lsn", false)
        inner.visitFieldInsn(Opcodes.PUTFIELD, source, last, lsn)
      }

      /** Ask with the first argument of the method beside those of what was called. */
      private def askOf(asked: String, owner: String, types: String, first: String): Unit = {
        inner.visitVarInsn(Opcodes.ALOAD, 1)
        ask(asked, s"(L$owner;${types.drop(1).replace(")", s"L$first;)")}")
      }

      /** Ask with the statement that the method was given, which ran in an open transaction. */
      private def askOfPublication(): Unit = {
        inner.visitVarInsn(Opcodes.ALOAD, 1)
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitFieldInsn(
          Opcodes.GETFIELD, connection, "publicationName", "Ljava/lang/String;")
        call("mesh/Identities", "require", toExecute)
        askOfTables("remember")
      }

      /** Ask with the statement that the method was given, and the connector's config. */
      private def askOfTables(asked: String): Unit = {
        inner.visitVarInsn(Opcodes.ALOAD, 1)
        inner.visitVarInsn(Opcodes.ALOAD, 0)
        inner.visitFieldInsn(Opcodes.GETFIELD, connection, "connectorConfig", config)
        call(renamed, asked, s"(Ljava/sql/Statement;$config)V")
      }

      private def ask(asked: String, types: String): Unit =
        call("mesh/BoundedMatches", asked, types)

      private def call(owner: String, called: String, types: String): Unit = {
        inner.visitMethodInsn(Opcodes.INVOKESTATIC, owner, called, types, false)
        changes += 1
      }
    }
  }
}
