package io.debezium.connector.postgresql

import java.sql.Statement
import java.util.regex.Pattern

import io.debezium.connector.postgresql.PostgresConnectorConfig.AutoCreateMode
import io.debezium.connector.postgresql.connection.{MessageDecoderContext, PostgresConnection}
import io.debezium.connector.postgresql.connection.pgoutput.PgOutputRelationMetaData
import io.debezium.relational.TableId
import mesh.RefusedException

/**
 * Refuses changes of a captured table under another name. A publication holds tables, not names, so that
 * PostgreSQL goes on to send them; Debezium goes by names, and passed over them. At its next start it took
 * such a table out of the publication, after which nothing tells it from one that the config has left out.
 *
 * `mesh.PatchDebezium` has the connector ask this before it changes its publication, and of each table
 * whose changes come. It stands in this package for what others may not ask of a config. The error begins with
 * a code, and names the table where its name is plain. Nothing of Scala's own library is used, so that
 * Connect needs no more jars for it.
 */
object RenamedTables {
  /** Without those that inherit another one, which come into a publication with it. */
  private val published = """
    SELECT n.nspname, c.relname FROM pg_publication p
    JOIN pg_publication_rel r ON r.prpubid = p.oid
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE p.pubname = ? AND (c.relispartition OR NOT EXISTS (
      SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid))"""
  private val one = published + " AND c.oid = CAST(? AS bigint)::oid"
  private val plain = Pattern.compile("[\\w$-]{1,63}")

  /** Before the publication gets the tables of the config: it may lose some, but none for another one. */
  def require(asking: Statement, publication: String, config: PostgresConnectorConfig): Unit = {
    val listed = config.tableIncludeList
    if (listed != null) {
      val query = asking.getConnection.prepareStatement(published)
      try {
        query.setString(1, publication)
        val found = query.executeQuery()
        var kept = 0
        var lost: TableId = null
        while (found.next()) {
          val table = new TableId(null, found.getString(1), found.getString(2))
          if (isCaptured(config, table)) kept += 1 else lost = table
        }
        if (lost != null && kept < listed.split(",").length) throw refused(lost)
      } finally query.close()
    }
  }

  /** Of a table whose changes come next. */
  def require(
      context: MessageDecoderContext, database: PostgresConnection, table: PgOutputRelationMetaData): Unit = {
    val config = context.getConfig
    // a publication that somebody else keeps may have other tables
    if (AutoCreateMode.FILTERED.equals(config.publicationAutocreateMode) &&
      !isCaptured(config, table.getTableId) &&
      isPublished(config.publicationName, database, table.getRelationId))
      throw refused(table.getTableId)
  }

  private def isCaptured(config: PostgresConnectorConfig, table: TableId): Boolean =
    config.getTableFilters.dataCollectionFilter.isIncluded(table)

  private def isPublished(name: String, database: PostgresConnection, id: Int): Boolean = {
    val query = database.connection.prepareStatement(one)
    try {
      query.setString(1, name)
      query.setLong(2, java.lang.Integer.toUnsignedLong(id))
      query.executeQuery().next()
    } finally query.close()
  }

  private def refused(table: TableId): RefusedException = {
    val isPlain = plain.matcher(table.schema).matches() && plain.matcher(table.table).matches()
    val name = if (isPlain) table.schema + "." + table.table else "a table"
    new RefusedException(
      "table_renamed: " + name + ": the connector's publication has it, by another name than its config")
  }
}
