package mesh

import org.apache.hadoop.security.UserGroupInformation
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, UnresolvedFunction, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, UnresolvedDataSource}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.execution.command.CreateViewCommand
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.unsafe.types.UTF8String

/**
 * A Spark Connect server for one domain's statements. Statements are compiled from a list of
 * functions and read from Kafka alone; here the rest is missing, should something else get through.
 *
 * `mesh.user` is the name of the account: its user id may have none, which Hadoop does not take.
 */
object DomainServer {
  /** They call any static method of Java, or open a file or an address that an option names. */
  val removed: Seq[String] = Seq(
    "reflect", "java_method", "try_reflect",
    "from_xml", "schema_of_xml", "from_protobuf", "to_protobuf", "schema_of_avro")

  def main(arguments: Array[String]): Unit = {
    val user = System.getProperty("mesh.user")
    UserGroupInformation.setLoginUser(UserGroupInformation.createRemoteUser(user))
    // every session copies this registry when it begins
    removed.foreach(name => FunctionRegistry.builtin.dropFunction(FunctionIdentifier(name)))
    ConnectServer.main(arguments)
  }
}

/**
 * The session extension that refuses every source but Kafka, and every command. It adds `mesh_attempt`
 * and `mesh_valid_texts`, and computes decimals exactly.
 */
class DomainRules extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    Attempt.inject(extensions)
    Decimals.inject(extensions)
    ValidTexts.inject(extensions)
    // hints are resolved before sources are: a file's types would be looked up in the file
    extensions.injectHintResolutionRule(_ => SourcesByName)
    extensions.injectCheckRule(_ => Sources.check(_))
  }
}

object SourcesByName extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    Sources.check(plan)
    plan
  }
}

object Sources {
  private val kafka = "kafka"
  private val ours = "org.apache.spark.sql.kafka010."

  /** Throws SecurityException for a plan that reads anything but Kafka or schemas in files, or is a command. */
  def check(plan: LogicalPlan): Unit = plan.foreachWithSubqueries(one)

  private def one(node: LogicalPlan): Unit = {
    node.expressions.foreach(_.foreach(function))
    source(node)
  }

  private def source(node: LogicalPlan): Unit = node match {
    case source: UnresolvedDataSource => require(source.format == kafka, source.format)
    // text.`/a/file`, and tables of a catalog; a view of the session has one name
    case table: UnresolvedRelation => require(table.multipartIdentifier.length == 1, table.name)
    case stream: StreamingRelationV2 => require(stream.sourceName == kafka, stream.sourceName)
    case stream: StreamingRelation => require(stream.sourceName == kafka, stream.sourceName)
    case found: LogicalRelation => requireClass(found.relation)
    case found: DataSourceV2Relation => requireClass(found.table)
    case _: CreateViewCommand => ()
    case command: Command => refuse(command.nodeName)
    case _ => ()
  }

  /** The options of from_avro that statements need; another one names a file with a schema. */
  private val ofAvro = Set("mode", "avroSchema")

  private def function(one: Expression): Unit = one match {
    case call: UnresolvedFunction if call.nameParts.last.equalsIgnoreCase("from_avro") =>
      call.arguments.drop(2).foreach(options)
    case _ => ()
  }

  private def options(given: Expression): Unit = given match {
    case map: UnresolvedFunction if map.nameParts.map(_.toLowerCase) == Seq("map") =>
      map.arguments.grouped(2).foreach {
        case Seq(Literal(name: UTF8String, _), _: Literal) => require(ofAvro(name.toString), s"from_avro, $name")
        case _ => refuse("from_avro, options that are no literals")
      }
    case _ => refuse("from_avro, options that are no map")
  }

  private def requireClass(source: AnyRef): Unit =
    require(source.getClass.getName.startsWith(ours), source.getClass.getSimpleName)

  private def require(allowed: Boolean, what: String): Unit = if (!allowed) refuse(what)

  private def refuse(what: String): Unit =
    throw new SecurityException(s"a domain's server reads Kafka alone, and not: $what")
}
