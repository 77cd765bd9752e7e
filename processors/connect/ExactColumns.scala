package mesh

import java.sql.{Connection, Types}
import java.util

import io.debezium.connector.jdbc.JdbcSinkRecord
import io.debezium.connector.jdbc.dialect.DatabaseDialect
import io.debezium.connector.jdbc.dialect.postgres.PostgresDatabaseDialect
import io.debezium.connector.jdbc.relational.TableDescriptor
import io.debezium.sink.column.ColumnDescriptor
import org.apache.kafka.connect.data.Schema
import org.apache.kafka.connect.errors.DataException

/** The same as that of our transformations, which the sink's plugin is not compiled with. */
class RefusedException(message: String) extends DataException(message)

/**
 * Lets Debezium's JDBC sink write no value that its column would round:
 *
 *  - its columns for decimals without a scale (VariableScaleDecimal) are of numeric, and not of double
 *    precision, for which two keys are one;
 *  - it fails at a table that has one of double precision for them, as the sink made it before, or
 *    one of a domain over that;
 *  - it fails at a record whose field has gone from whole numbers to others, to double from float, or
 *    to more places behind the point, since the column was made: databases round what they store;
 *  - it fails at a table of MySQL or MariaDB with a unique index over other columns than the sink's key;
 *  - it fails at a value that a column does not have as it is, whatever it was made for, and at any in
 *    a column of a type of the database's own that nobody has looked at; see [[ColumnValues]].
 *
 * The error begins with a code, and names the column.
 *
 * [[PatchSink]] has the sink ask this. Nothing of Scala's own library is used, so that Connect needs
 * no more jars for it.
 */
object ExactColumns {
  private val decimal = "io.debezium.data.VariableScaleDecimal"
  private val connectDecimal = "org.apache.kafka.connect.data.Decimal"
  /** PostgreSQL's numeric can be declared with so many; MySQL's with fewer. */
  private val mostDigits = 1000
  /** Tables whose columns were asked for: name -> what it is made of. */
  private val known =
    util.Collections.synchronizedMap(
      new util.WeakHashMap[TableDescriptor, util.Map[String, MadeColumn]])
  /** Those of MySQL and MariaDB: the columns of each unique index, in small letters. */
  private val unique =
    util.Collections.synchronizedMap(
      new util.WeakHashMap[TableDescriptor, util.Map[String, util.Set[String]]])
  /** What a column is made of: a domain of its type, an array of its items. Types of others are not
   * looked at. The places of money are those of the database's currency. */
  private val made =
    """WITH RECURSIVE made(name, type, modifier, items) AS (
      SELECT a.attname, a.atttypid, a.atttypmod, false FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = ? AND c.relname = ? AND a.attnum > 0 AND NOT a.attisdropped
      UNION SELECT m.name, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END,
        CASE WHEN m.modifier = -1 THEN t.typtypmod ELSE m.modifier END, m.items OR t.typtype <> 'd'
      FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.type
      WHERE t.typtype = 'd' OR t.typcategory = 'A')
    SELECT m.name, t.typname, CASE t.typname
      WHEN 'money' THEN pg_catalog.scale(1::pg_catalog.money::pg_catalog.numeric)
      ELSE m.modifier END, m.items, NULL
    FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.type
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    WHERE t.typtype <> 'd' AND t.typcategory <> 'A' AND n.nspname = 'pg_catalog'"""

  /** The same of MySQL and MariaDB, in the words of PostgreSQL where they are the same. A float of
   * declared digits is of a type that nobody looked at. */
  private val ofMysql =
    """SELECT column_name, CASE
      WHEN data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') THEN 'int8'
      WHEN data_type = 'decimal' THEN 'numeric'
      WHEN data_type = 'float' AND numeric_scale IS NULL THEN 'float4'
      WHEN data_type = 'double' AND numeric_scale IS NULL THEN 'float8'
      WHEN data_type = 'datetime' THEN 'timestamp'
      WHEN data_type = 'timestamp' THEN 'timestamptz'
      WHEN data_type IN ('tinytext', 'text', 'mediumtext', 'longtext') THEN 'mysql_text'
      WHEN data_type = 'char' THEN 'mysql_char'
      WHEN data_type = 'binary' THEN 'mysql_binary'
      WHEN data_type = 'json' THEN 'mysql_json'
      ELSE data_type END,
      CAST(CASE WHEN data_type = 'decimal' THEN 4 + numeric_scale
      WHEN data_type = 'varchar' THEN 4 + character_maximum_length
      ELSE LEAST(2147483647, COALESCE(datetime_precision, character_maximum_length, 0)) END AS SIGNED),
      FALSE, CASE WHEN data_type IN ('enum', 'set') THEN column_type END
    FROM information_schema.columns WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?"""

  private val uniqueOfMysql =
    """SELECT index_name, CASE WHEN sub_part IS NULL THEN column_name END
    FROM information_schema.statistics
    WHERE non_unique = 0 AND table_schema = COALESCE(?, DATABASE()) AND table_name = ?"""

  def typeName(dialect: DatabaseDialect, kind: Int): String =
    if (dialect.isInstanceOf[PostgresDatabaseDialect]) "numeric" else dialect.getJdbcTypeName(kind)

  /** Called with each table that the sink has read. */
  def read(table: TableDescriptor, dialect: DatabaseDialect, connection: Connection): Unit = {
    requireDriver(connection)
    val found = new util.HashMap[String, MadeColumn]()
    val asking =
      connection.prepareStatement(if (dialect.isInstanceOf[PostgresDatabaseDialect]) made else ofMysql)
    try {
      val id = table.getId
      asking.setString(1, if (dialect.isInstanceOf[PostgresDatabaseDialect]) id.namespace else id.realm)
      asking.setString(2, id.name)
      val rows = asking.executeQuery()
      while (rows.next())
        found.put(
          rows.getString(1),
          new MadeColumn(
            rows.getString(2), rows.getInt(3), rows.getBoolean(4), rows.getString(5)))
    } finally asking.close()
    known.put(table, found)
    if (!dialect.isInstanceOf[PostgresDatabaseDialect]) readUnique(table, connection)
  }

  private def readUnique(table: TableDescriptor, connection: Connection): Unit = {
    val found = new util.HashMap[String, util.Set[String]]()
    val asking = connection.prepareStatement(uniqueOfMysql)
    try {
      asking.setString(1, table.getId.realm)
      asking.setString(2, table.getId.name)
      val rows = asking.executeQuery()
      while (rows.next()) {
        val index = rows.getString(1)
        // an index over an expression has no column, and one over a part of one finds others as well
        val column = String.valueOf(rows.getString(2)).toLowerCase(util.Locale.ROOT)
        val before = found.get(index)
        val columns = if (before == null) new util.HashSet[String]() else before
        columns.add(column)
        found.put(index, columns)
      }
    } finally asking.close()
    unique.put(table, found)
  }

  /** MySQL and MariaDB would change the row that is found by any unique index, and not by the key. */
  private def requireKey(record: JdbcSinkRecord, table: TableDescriptor): Unit = {
    val indexes = unique.get(table)
    if (indexes != null) {
      val key = new util.HashSet[String]()
      // first, as it has them all only where nothing was asked before
      val fields = record.jdbcFields
      val names = record.keyFieldNames.iterator
      while (names.hasNext) {
        val name = names.next()
        val field = fields.get(name)
        val column = if (field == null) name else field.getColumnName
        key.add(column.toLowerCase(util.Locale.ROOT))
      }
      val all = indexes.entrySet.iterator
      var found = key.isEmpty
      while (all.hasNext) {
        val one = all.next()
        if (!key.isEmpty && !one.getValue.equals(key)) throw notFit(table, one.getKey)
        found = true
      }
      if (!found) throw notFit(table, "none")
    }
  }

  /** MySQL's driver takes MariaDB before 11 for a MySQL 5.5, which has no parts of seconds. */
  private def requireDriver(connection: Connection): Unit = {
    val told = connection.getMetaData
    if (told.getDriverName.startsWith("MySQL") && told.getDatabaseProductVersion.startsWith("5.5.5-"))
      throw new RefusedException(
        "driver_not_fit: mysql: it writes whole seconds alone to a MariaDB: write jdbc:mariadb")
  }

  private def notFit(table: TableDescriptor, index: String): RefusedException =
    new RefusedException(
      "table_not_fit: " + table.getId.name + "." + index +
        ": rows are found by unique indexes, of which there has to be one, over the key")

  /** Called with each record, and the table that it is for. */
  def require(record: JdbcSinkRecord, table: TableDescriptor): Unit = {
    requireKey(record, table)
    val columns = known.get(table)
    val fields = record.jdbcFields.values.iterator
    while (fields.hasNext) {
      val field = fields.next()
      val schema = field.getSchema
      val column = columnOf(table, field.getColumnName)
      if (column != null) {
        if (columns != null) requireDecimals(table, column, columns.get(column.getColumnName), schema)
        if (rounds(column, schema)) throw rounded(table, column)
      }
    }
  }

  /** Called with the records that are written next, which have one schema, and their table. */
  def requireValues(records: util.List[JdbcSinkRecord], table: TableDescriptor): Unit = {
    val columns = known.get(table)
    if (columns != null && !records.isEmpty) {
      val fields = records.get(0).jdbcFields.entrySet.iterator
      while (fields.hasNext) {
        val entry = fields.next()
        val column = columnOf(table, entry.getValue.getColumnName)
        val made = if (column == null) null else columns.get(column.getColumnName)
        if (made != null && ColumnValues.isLookedAt(made)) {
          val all = records.iterator
          while (all.hasNext) {
            val value = valueOf(all.next(), entry.getKey)
            if (!ColumnValues.isExact(made, entry.getValue.getSchema, value))
              throw rounded(table, column)
          }
        }
      }
    }
  }

  private def valueOf(record: JdbcSinkRecord, name: String): Object = {
    val place = if (record.keyFieldNames.contains(name)) record.filteredKey else record.getPayload
    if (place == null || place.schema.field(name) == null) null else place.getWithoutDefault(name)
  }

  /** The column of a field; null where there is none yet, which is then made by its schema. */
  private def columnOf(table: TableDescriptor, named: String): ColumnDescriptor = {
    // without quotes the sink spells a name in small letters
    val name = if (table.hasColumn(named)) named else named.toLowerCase(util.Locale.ROOT)
    if (table.hasColumn(name)) table.getColumnByName(name) else null
  }

  private def rounds(column: ColumnDescriptor, field: Schema): Boolean = {
    val ofItems = column.getJdbcType == Types.ARRAY && Schema.Type.ARRAY.equals(field.`type`)
    val schema = if (ofItems) field.valueSchema else field
    val kind = if (ofItems) kindOfItems(column.getTypeName) else column.getJdbcType
    val places = placesOf(schema)
    if (kind == Types.TINYINT || kind == Types.SMALLINT || kind == Types.INTEGER || kind == Types.BIGINT)
      places > 0
    else if (kind == Types.REAL) Schema.Type.FLOAT64.equals(schema.`type`)
    else if (kind == Types.NUMERIC || kind == Types.DECIMAL)
      // one without a precision says that it has more digits than any can have
      connectDecimal.equals(schema.name) && places > column.getScale &&
        column.getPrecision > 0 && column.getPrecision <= mostDigits
    else false
  }

  /** PostgreSQL names an array by its items' type, behind a line. */
  private def kindOfItems(name: String): Int =
    if (name.equals("_int2") || name.equals("_int4") || name.equals("_int8")) Types.BIGINT
    else if (name.equals("_float4")) Types.REAL
    else if (name.equals("_numeric")) Types.NUMERIC
    else Types.OTHER

  /** How many places a number may have behind the point; 0 of what is no number. */
  private def placesOf(schema: Schema): Int =
    if (Schema.Type.FLOAT32.equals(schema.`type`) || Schema.Type.FLOAT64.equals(schema.`type`))
      Integer.MAX_VALUE
    else if (connectDecimal.equals(schema.name) && schema.parameters != null) {
      val scale = schema.parameters.get("scale")
      if (scale == null) 0 else Integer.parseInt(scale)
    } else 0

  private def requireDecimals(
      table: TableDescriptor, column: ColumnDescriptor, made: MadeColumn, schema: Schema): Unit = {
    val item = if (Schema.Type.ARRAY.equals(schema.`type`)) schema.valueSchema else schema
    if (made != null && decimal.equals(item.name) &&
      ("float8".equals(made.kind) || "float4".equals(made.kind)))
      throw refusal(table, column.getColumnName, "double precision rounds the topic's decimals")
  }

  private def rounded(table: TableDescriptor, column: ColumnDescriptor): RefusedException =
    refusal(table, column.getColumnName, column.getTypeName + " rounds or cuts the topic's values")

  private def refusal(table: TableDescriptor, column: String, why: String): RefusedException = {
    val namespace = table.getId.namespace
    val place = if (namespace == null) table.getId.name else namespace + "." + table.getId.name
    new RefusedException("column_not_exact: " + place + "." + column + ": " + why)
  }
}
