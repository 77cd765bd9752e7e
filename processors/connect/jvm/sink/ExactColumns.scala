package mesh

import java.sql.{Connection, DatabaseMetaData, ResultSet, Types}
import java.util

import io.debezium.connector.jdbc.JdbcSinkRecord
import io.debezium.connector.jdbc.dialect.DatabaseDialect
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
 *  - it finds a table by its name, in which Debezium takes _ for any character;
 *  - it fails at a record whose key is not that of the table: it would delete other rows, or all;
 *  - a column that it adds to a table takes null: Debezium adds none for a field that has to be there;
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
  /** A numeric can be declared with so many. */
  private val mostDigits = 1000
  /** Tables whose columns were asked for: name -> what it is made of. */
  private val known =
    util.Collections.synchronizedMap(
      new util.WeakHashMap[TableDescriptor, util.Map[String, MadeColumn]])
  /** The columns of each whole unique index of a table. */
  private val unique =
    util.Collections.synchronizedMap(
      new util.WeakHashMap[TableDescriptor, util.Map[String, util.Set[String]]])
  private val keys =
    """SELECT i.indexrelid, a.attname FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
      AND a.attnum = ANY ((i.indkey::pg_catalog.int2[])[0:i.indnkeyatts - 1])
    WHERE n.nspname = ? AND c.relname = ? AND i.indisunique AND i.indisvalid
      AND i.indpred IS NULL AND i.indexprs IS NULL"""
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
      ELSE m.modifier END, m.items
    FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.type
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    WHERE t.typtype <> 'd' AND t.typcategory <> 'A' AND n.nspname = 'pg_catalog'"""

  /** In the place of what the dialect calls a number of floating point. */
  def typeName(dialect: DatabaseDialect, kind: Int): String = "numeric"

  /**
   * How a value is compared with a column, in the place of how it is written into one: the sink has a
   * time of day as one of a day, which no time is equal to.
   */
  def compared(binding: String, table: TableDescriptor, column: ColumnDescriptor): String = {
    val columns = known.get(table)
    val made = if (columns == null) null else columns.get(column.getColumnName)
    if (made == null || made.isArray || !("time".equals(made.kind) || "timetz".equals(made.kind)))
      binding
    else "cast(" + binding + " as pg_catalog." + made.kind + ")"
  }

  /** Called with each table that the sink has read. */
  def read(table: TableDescriptor, dialect: DatabaseDialect, connection: Connection): Unit = {
    val found = new util.HashMap[String, MadeColumn]()
    val asking = connection.prepareStatement(made)
    try {
      asking.setString(1, table.getId.namespace)
      asking.setString(2, table.getId.name)
      val rows = asking.executeQuery()
      while (rows.next())
        found.put(
          rows.getString(1), new MadeColumn(rows.getString(2), rows.getInt(3), rows.getBoolean(4)))
    } finally asking.close()
    known.put(table, found)
    unique.put(table, indexes(table, connection))
  }

  private def indexes(
      table: TableDescriptor, connection: Connection): util.Map[String, util.Set[String]] = {
    val found = new util.HashMap[String, util.Set[String]]()
    val asking = connection.prepareStatement(keys)
    try {
      asking.setString(1, table.getId.namespace)
      asking.setString(2, table.getId.name)
      val rows = asking.executeQuery()
      while (rows.next()) {
        val index = rows.getString(1)
        val before = found.get(index)
        val columns = if (before == null) new util.HashSet[String]() else before
        columns.add(rows.getString(2))
        found.put(index, columns)
      }
    } finally asking.close()
    found
  }

  /** In the place of the driver's: it takes names for patterns. */
  def getTables(
      of: DatabaseMetaData, catalog: String, schema: String, table: String,
      kinds: Array[String]): ResultSet =
    of.getTables(catalog, escaped(schema), escaped(table), kinds)

  def getColumns(
      of: DatabaseMetaData, catalog: String, schema: String, table: String,
      column: String): ResultSet =
    of.getColumns(catalog, escaped(schema), escaped(table), column)

  private def escaped(name: String): String =
    if (name == null) null
    else name.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")

  /** A row is found, and deleted, by the columns of the key, which those of a unique index have to be. */
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
        val named = if (field == null) name else field.getColumnName
        val column = columnOf(table, named)
        key.add(if (column == null) named else column.getColumnName)
      }
      if (key.isEmpty || !indexes.containsValue(key))
        throw notFit(table, "none of its primary key or of a whole unique index")
    }
  }

  private def notFit(table: TableDescriptor, what: String): RefusedException =
    new RefusedException("table_not_fit: " + placeOf(table) + ": a record's key is " + what)

  /**
   * Whether the column that a table gets for a field takes null, as those do that are made with it; the
   * rows that are there have none. One of a key would be in no primary key and no unique index.
   */
  def takesNull(
      schema: Schema, record: JdbcSinkRecord, table: TableDescriptor, name: String): Boolean = {
    if (!schema.isOptional && schema.defaultValue == null && record.keyFieldNames.contains(name))
      throw notFit(table, "of a column that the table lacks")
    true
  }

  /** Called with each record, and the table that it is for. */
  def require(record: JdbcSinkRecord, table: TableDescriptor): Unit = {
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
    if (!records.isEmpty) requireKey(records.get(0), table)
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

  private def refusal(table: TableDescriptor, column: String, why: String): RefusedException =
    new RefusedException("column_not_exact: " + placeOf(table) + "." + column + ": " + why)

  private def placeOf(table: TableDescriptor): String = {
    val namespace = table.getId.namespace
    if (namespace == null) table.getId.name else namespace + "." + table.getId.name
  }
}
