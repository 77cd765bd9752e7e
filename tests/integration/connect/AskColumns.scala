package mesh

import java.lang.reflect.{InvocationTargetException, Proxy}
import java.util

import io.debezium.connector.jdbc.dialect.DatabaseDialect
import io.debezium.connector.jdbc.relational.TableDescriptor
import io.debezium.connector.jdbc.{
  DefaultRecordWriter, JdbcSinkConnectorConfig, JdbcSinkRecord, QueryBinderResolver}
import io.debezium.metadata.CollectionId
import io.debezium.sink.field.FieldDescriptor
import org.apache.kafka.connect.data.Schema
import org.hibernate.SharedSessionContract
import org.hibernate.jdbc.ReturningWork

/**
 * What a sink that may change no table says of one that lacks the column of a field: a line "field
 * error" for one of the key, one that has to be there, and one that need not be.
 */
object AskColumns {
  private val id = new CollectionId(null, "public", "users")
  private val table = TableDescriptor.builder.schemaName("public").tableName("users").build

  /** What answers calls by their name. */
  private def answering[T](of: Class[T])(answers: PartialFunction[String, Array[Object] => Object]): T =
    of.cast(Proxy.newProxyInstance(of.getClassLoader, Array(of), (_, method, given) =>
      answers.applyOrElse(method.getName, (_: String) => (_: Array[Object]) => null)(given)))

  private def said(name: String, schema: Schema): String = {
    val record = answering(classOf[JdbcSinkRecord]) {
      case "allFields" => _ => util.Map.of(name, new FieldDescriptor(schema, name, name == "key"))
      case "keyFieldNames" => _ => util.Set.of("key")
    }
    val dialect = answering(classOf[DatabaseDialect]) {
      case "tableExists" => _ => java.lang.Boolean.TRUE
      case "readTable" => _ => table
      case "resolveMissingFields" => _ => util.Set.of(name)
    }
    val session = answering(classOf[SharedSessionContract]) {
      case "doReturningWork" => given => given(0).asInstanceOf[ReturningWork[Object]].execute(null)
    }
    val config = new JdbcSinkConnectorConfig(util.Map.of("schema.evolution", "none"))
    val making = classOf[DefaultRecordWriter].getDeclaredConstructors()(0)
    making.setAccessible(true)
    val writer = making.newInstance(session, new QueryBinderResolver, config, dialect)
    val asked = classOf[DefaultRecordWriter].getDeclaredMethod(
      "alterTableIfNeeded", classOf[CollectionId], classOf[JdbcSinkRecord])
    asked.setAccessible(true)
    try String.valueOf(asked.invoke(writer, id, record))
    catch { case error: InvocationTargetException => error.getCause.getMessage }
  }

  def main(words: Array[String]): Unit = {
    println("key " + said("key", Schema.INT32_SCHEMA))
    println("order " + said("order", Schema.STRING_SCHEMA))
    println("note " + said("note", Schema.OPTIONAL_STRING_SCHEMA))
  }
}
