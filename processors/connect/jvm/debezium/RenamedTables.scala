package io.debezium.connector.postgresql

import io.debezium.connector.postgresql.PostgresConnectorConfig.AutoCreateMode
import io.debezium.connector.postgresql.connection.{MessageDecoderContext, PostgresConnection}
import io.debezium.connector.postgresql.connection.pgoutput.PgOutputRelationMetaData
import mesh.RefusedException

/**
 * Refuses changes of a captured table under another name. A publication holds tables, not names, so that
 * PostgreSQL goes on to send them; Debezium goes by names, and passed over them. A table that an update of
 * the connector has left out is not in its publication any more.
 *
 * `mesh.PatchDebezium` has the connector ask this of each table whose changes come. It stands in this
 * package for what others may not ask of a config. Nothing of Scala's own library is used, so that
 * Connect needs no more jars for it.
 */
object RenamedTables {
  private val query = """
    SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
    WHERE p.pubname = ? AND r.prrelid = CAST(? AS bigint)::oid"""

  def require(
      context: MessageDecoderContext, database: PostgresConnection, table: PgOutputRelationMetaData): Unit = {
    val config = context.getConfig
    // a publication that somebody else keeps may have other tables
    if (AutoCreateMode.FILTERED.equals(config.publicationAutocreateMode) &&
      !config.getTableFilters.dataCollectionFilter.isIncluded(table.getTableId) &&
      isPublished(config.publicationName, database, table.getRelationId))
      throw new RefusedException(
        "table_renamed: " + table.getSchema + "." + table.getName +
          ": it is in the connector's publication, by another name than in its config")
  }

  private def isPublished(name: String, database: PostgresConnection, id: Int): Boolean = {
    val asking = database.connection.prepareStatement(query)
    try {
      asking.setString(1, name)
      asking.setLong(2, java.lang.Integer.toUnsignedLong(id))
      asking.executeQuery().next()
    } finally asking.close()
  }
}
