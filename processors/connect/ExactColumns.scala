package mesh

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
 *  - it fails at a table that has one of double precision for them, as the sink made it before. The
 *    error begins with a code, and names the column.
 *
 * [[PatchSink]] has the sink ask this. Nothing of Scala's own library is used, so that Connect needs
 * no more jars for it.
 */
object ExactColumns {
  private val decimal = "io.debezium.data.VariableScaleDecimal"
  private val rounding = util.Set.of("float4", "float8", "_float4", "_float8")

  def typeName(dialect: DatabaseDialect, kind: Int): String =
    if (dialect.isInstanceOf[PostgresDatabaseDialect]) "numeric" else dialect.getJdbcTypeName(kind)

  def require(record: JdbcSinkRecord, table: TableDescriptor): Unit = {
    val fields = record.jdbcFields.values.iterator
    while (fields.hasNext) {
      val field = fields.next()
      val schema = field.getSchema
      val isArray = Schema.Type.ARRAY.equals(schema.`type`)
      if (decimal.equals(if (isArray) schema.valueSchema.name else schema.name))
        requireExact(table, field.getColumnName)
    }
  }

  private def requireExact(table: TableDescriptor, name: String): Unit = {
    val columns = table.getColumns.iterator
    while (columns.hasNext) {
      val column = columns.next()
      // without quotes the database spells a name in small letters
      if (column.getColumnName.equalsIgnoreCase(name) && rounding.contains(column.getTypeName))
        throw new RefusedException(
          "column_not_exact: " + table.getId.namespace + "." + table.getId.name + "." +
            column.getColumnName + ": double precision rounds the topic's decimals")
    }
  }
}
