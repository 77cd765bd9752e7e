package mesh

import java.sql.Connection
import java.util

import io.debezium.connector.jdbc.JdbcSinkRecord
import io.debezium.connector.jdbc.dialect.DatabaseDialect
import io.debezium.connector.jdbc.dialect.postgres.PostgresDatabaseDialect
import io.debezium.connector.jdbc.relational.TableDescriptor
import org.apache.kafka.connect.data.Schema
import org.apache.kafka.connect.errors.DataException

/** The same as that of our transformations, which the sink's plugin is not compiled with. */
class RefusedException(message: String) extends DataException(message)

/**
 * Lets Debezium's JDBC sink keep decimals without a scale (VariableScaleDecimal) as they are:
 *
 *  - its columns for them are of numeric, and not of double precision, for which two keys are one;
 *  - it fails at a table that has one of double precision for them, as the sink made it before, or
 *    one of a domain over that. The error begins with a code, and names the column.
 *
 * [[PatchSink]] has the sink ask this. Nothing of Scala's own library is used, so that Connect needs
 * no more jars for it.
 */
object ExactColumns {
  private val decimal = "io.debezium.data.VariableScaleDecimal"
  /** Tables whose columns were asked for, and those that round. */
  private val known =
    util.Collections.synchronizedMap(new util.WeakHashMap[TableDescriptor, util.Set[String]])
  /** What a column is made of: a domain of its type, an array of its elements. */
  private val rounding =
    """WITH RECURSIVE made(name, type) AS (
      SELECT a.attname, a.atttypid FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = ? AND c.relname = ? AND a.attnum > 0 AND NOT a.attisdropped
      UNION SELECT m.name, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END
      FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.type
      WHERE t.typtype = 'd' OR t.typcategory = 'A')
    SELECT DISTINCT name FROM made WHERE type IN (700, 701)"""

  def typeName(dialect: DatabaseDialect, kind: Int): String =
    if (dialect.isInstanceOf[PostgresDatabaseDialect]) "numeric" else dialect.getJdbcTypeName(kind)

  /** Called with each table that the sink has read. */
  def read(table: TableDescriptor, dialect: DatabaseDialect, connection: Connection): Unit =
    if (dialect.isInstanceOf[PostgresDatabaseDialect]) {
      val found = new util.HashSet[String]()
      val asking = connection.prepareStatement(rounding)
      try {
        asking.setString(1, table.getId.namespace)
        asking.setString(2, table.getId.name)
        val rows = asking.executeQuery()
        while (rows.next()) found.add(rows.getString(1))
      } finally asking.close()
      known.put(table, found)
    }

  def require(record: JdbcSinkRecord, table: TableDescriptor): Unit = {
    val columns = known.get(table)
    if (columns != null && !columns.isEmpty) {
      val fields = record.jdbcFields.values.iterator
      while (fields.hasNext) {
        val field = fields.next()
        val schema = field.getSchema
        val isArray = Schema.Type.ARRAY.equals(schema.`type`)
        if (decimal.equals(if (isArray) schema.valueSchema.name else schema.name))
          requireExact(table, columns.iterator, field.getColumnName)
      }
    }
  }

  private def requireExact(
      table: TableDescriptor, columns: util.Iterator[String], name: String): Unit =
    while (columns.hasNext) {
      val column = columns.next()
      // without quotes the database spells a name in small letters
      if (column.equalsIgnoreCase(name))
        throw new RefusedException(
          "column_not_exact: " + table.getId.namespace + "." + table.getId.name + "." + column +
            ": double precision rounds the topic's decimals")
    }
}
