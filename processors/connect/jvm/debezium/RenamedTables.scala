package io.debezium.connector.postgresql

import java.sql.{Connection, Statement}
import java.util
import java.util.regex.Pattern

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import io.debezium.connector.postgresql.PostgresConnectorConfig.AutoCreateMode
import io.debezium.connector.postgresql.connection.{MessageDecoderContext, PostgresConnection}
import io.debezium.connector.postgresql.connection.pgoutput.PgOutputRelationMetaData
import io.debezium.relational.TableId
import mesh.RefusedException

/**
 * Refuses changes of a captured table by another name, and another table in its place. A publication holds
 * tables and Debezium goes by names: it passed over the changes of a table while it had another name, and
 * took a table that had got the name since into its publication, without what was written to it before.
 *
 * Which table had which name as the connector last started stands in the comment of its publication. It is
 * written in the transaction that sets the publication's tables, so that it can be compared with the names
 * that PostgreSQL sends for changes of any time since; so it keeps tables that are gone, as long as the slot
 * is the same. A publication that has another comment, or another owner, is compared with nothing; nor is
 * one without a slot, whose tables are read anew. A partition of a table that is captured may be called as
 * it likes: its changes come under that one's name.
 *
 * `mesh.PatchDebezium` has the connector ask this. It stands in this package for what others may not ask of
 * a config. The error begins with a code, and names the table of the config where its name is plain. Nothing
 * of Scala's own library is used, so that Connect needs no more jars for it.
 */
object RenamedTables {
  private val begin = "tables that are captured, by their oid: "
  private val kept = """
    SELECT obj_description(p.oid, 'pg_publication'), pg_has_role(p.pubowner, 'USAGE'),
      EXISTS (SELECT FROM pg_replication_slots s WHERE s.slot_name = ?)
    FROM pg_publication p WHERE p.pubname = (parse_ident(?))[1]::name"""
  private val published = """
    SELECT c.oid::bigint, n.nspname, c.relname FROM pg_publication p
    JOIN pg_publication_rel r ON r.prpubid = p.oid
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE p.pubname = (parse_ident(?))[1]::name ORDER BY 1"""
  private val byName = """
    SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ? AND c.relname = ? AND c.relkind IN ('r', 'p')"""
  private val roots = """
    SELECT n.nspname, c.relname FROM pg_partition_ancestors(CAST(? AS bigint)::oid::regclass) a
    JOIN pg_publication_rel r ON r.prrelid = a.relid JOIN pg_publication p ON p.oid = r.prpubid
    JOIN pg_class c ON c.oid = a.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE p.pubname = (parse_ident(?))[1]::name AND p.pubviaroot AND a.relid <> CAST(? AS bigint)::oid"""
  private val commenting = """
    SELECT format('COMMENT ON PUBLICATION %I IS %L', (parse_ident(?))[1], ?::text)"""
  private val plain = Pattern.compile("[\\w$-]{1,63}")
  private val json = new ObjectMapper
  private val longestS = 90
  /** Tables that are gone and are kept. */
  private val mostGone = 1000
  /** Of a stream, oid -> the name in the config of a table that comes by another one. */
  private val coming = util.Collections.synchronizedMap(
    new util.WeakHashMap[MessageDecoderContext, util.Map[Integer, TableId]]())

  /** What stands in the comment, null where it is another one; and what its owner and slot are. */
  private final class Kept(val tables: JsonNode, val mayChange: Boolean, val hasSlot: Boolean)

  /** At a start, of the publication as it is, before it gets the tables of the config. */
  def require(statement: Statement, config: PostgresConnectorConfig): Unit = {
    val connection = statement.getConnection
    val known = read(connection, config)
    if (known != null && known.tables != null && known.hasSlot) {
      val now = present(connection, config)
      val each = known.tables.properties().iterator
      while (each.hasNext) {
        val one = each.next()
        val before = table(one.getValue)
        if (before != null && isCaptured(config, before)) {
          val after = now.get(one.getKey)
          if (after != null && !isCaptured(config, after) && !hasRoot(connection, config, one.getKey))
            throw end(connection, renamed(before))
          val other = if (before.equals(after)) null else oid(connection, before)
          if (other != null && !other.equals(one.getKey) && !now.containsKey(other))
            throw end(connection, recreated(before))
        }
      }
    }
    remember(connection, config, known)
  }

  /** Once the publication has the tables of the config, in the same transaction. */
  def remember(statement: Statement, config: PostgresConnectorConfig): Unit = {
    val connection = statement.getConnection
    remember(connection, config, read(connection, config))
  }

  /** Of a table that a stream names, before its changes: a partition is named, too, and has none. */
  def named(
      context: MessageDecoderContext, database: PostgresConnection, of: PgOutputRelationMetaData): Unit = {
    val config = context.getConfig
    if (AutoCreateMode.FILTERED.equals(config.publicationAutocreateMode)) {
      val id = Integer.valueOf(of.getRelationId)
      var others = coming.get(context)
      if (others == null) {
        others = new util.HashMap[Integer, TableId]()
        coming.put(context, others)
      }
      if (isCaptured(config, of.getTableId)) others.remove(id)
      else {
        val known = read(database.connection, config)
        val before =
          if (known == null || known.tables == null) null
          else table(known.tables.path(Integer.toUnsignedString(of.getRelationId)))
        if (before != null && isCaptured(config, before)) others.put(id, before) else others.remove(id)
      }
    }
  }

  /** Of a table that a change is of, by its oid. */
  def require(context: MessageDecoderContext, id: Int): Unit = {
    val others = coming.get(context)
    if (others != null && !others.isEmpty) {
      val before = others.get(Integer.valueOf(id))
      if (before != null) throw renamed(before)
    }
  }

  private def read(connection: Connection, config: PostgresConnectorConfig): Kept = {
    val asking = connection.prepareStatement(kept)
    try {
      asking.setString(1, config.slotName)
      asking.setString(2, config.publicationName)
      val found = asking.executeQuery()
      if (!found.next()) null
      else {
        val comment = found.getString(1)
        val isOwn = found.getBoolean(2)
        val tables = if (comment == null || !isOwn) null else parsed(comment)
        new Kept(tables, isOwn && (comment == null || tables != null), found.getBoolean(3))
      }
    } finally asking.close()
  }

  private def remember(connection: Connection, config: PostgresConnectorConfig, known: Kept): Unit =
    if (known != null && known.mayChange) {
      val tables = json.createObjectNode()
      val now = present(connection, config)
      if (known.tables != null && known.hasSlot) keepGone(known.tables, now, config, tables)
      val each = now.entrySet.iterator
      while (each.hasNext) {
        val one = each.next()
        if (isCaptured(config, one.getValue))
          tables.putArray(one.getKey).add(one.getValue.schema).add(one.getValue.table)
      }
      if (!tables.equals(known.tables)) comment(connection, config, begin + tables.toString)
    }

  /** Those of the config that are not in the publication any more: their changes may still come. */
  private def keepGone(
      known: JsonNode,
      now: util.Map[String, TableId],
      config: PostgresConnectorConfig,
      kept: ObjectNode): Unit = {
    val each = known.properties().iterator
    while (each.hasNext && kept.size < mostGone) {
      val one = each.next()
      val name = table(one.getValue)
      if (name != null && isCaptured(config, name) && !now.containsKey(one.getKey))
        kept.set[JsonNode](one.getKey, one.getValue)
    }
  }

  private def comment(connection: Connection, config: PostgresConnectorConfig, text: String): Unit = {
    val asking = connection.prepareStatement(commenting)
    try {
      asking.setString(1, config.publicationName)
      asking.setString(2, text)
      val found = asking.executeQuery()
      found.next()
      val running = connection.createStatement()
      // a migration that changes the publication keeps it waiting
      running.setQueryTimeout(longestS)
      try running.execute(found.getString(1))
      finally running.close()
    } finally asking.close()
  }

  private def parsed(comment: String): JsonNode =
    if (!comment.startsWith(begin)) null
    else
      try {
        val found = json.readTree(comment.substring(begin.length))
        if (found != null && found.isObject) found else null
      } catch { case _: JsonProcessingException => null }

  /** The tables of the publication by their oid, as a text. */
  private def present(
      connection: Connection, config: PostgresConnectorConfig): util.Map[String, TableId] = {
    val asking = connection.prepareStatement(published)
    try {
      asking.setString(1, config.publicationName)
      val found = asking.executeQuery()
      val tables = new util.LinkedHashMap[String, TableId]()
      while (found.next())
        tables.put(found.getString(1), new TableId(null, found.getString(2), found.getString(3)))
      tables
    } finally asking.close()
  }

  /** Whether it is a partition of a table that is captured. */
  private def hasRoot(connection: Connection, config: PostgresConnectorConfig, id: String): Boolean = {
    val asking = connection.prepareStatement(roots)
    try {
      asking.setString(1, id)
      asking.setString(2, config.publicationName)
      asking.setString(3, id)
      val found = asking.executeQuery()
      var isCapturedRoot = false
      while (!isCapturedRoot && found.next())
        isCapturedRoot = isCaptured(config, new TableId(null, found.getString(1), found.getString(2)))
      isCapturedRoot
    } finally asking.close()
  }

  private def oid(connection: Connection, table: TableId): String = {
    val asking = connection.prepareStatement(byName)
    try {
      asking.setString(1, table.schema)
      asking.setString(2, table.table)
      val found = asking.executeQuery()
      if (found.next()) found.getString(1) else null
    } finally asking.close()
  }

  /** Null of anything but a schema's and a table's name. */
  private def table(names: JsonNode): TableId =
    if (names.isArray && names.size == 2) new TableId(null, names.get(0).asText, names.get(1).asText)
    else null

  private def isCaptured(config: PostgresConnectorConfig, table: TableId): Boolean =
    config.getTableFilters.dataCollectionFilter.isIncluded(table)

  private def renamed(table: TableId) = new RefusedException(
    "table_renamed: " + shown(table) + ": the publication has it by another name, which is not captured")

  private def recreated(table: TableId) = new RefusedException(
    "table_recreated: " + shown(table) + ": another table has the name, and the publication lacks it")

  private def shown(table: TableId): String =
    if (plain.matcher(table.schema).matches() && plain.matcher(table.table).matches())
      table.schema + "." + table.table
    else "a table"

  /** Whoever called leaves the transaction open, and what it locked. */
  private def end(connection: Connection, error: RefusedException): RefusedException = {
    connection.rollback()
    error
  }
}
