package mesh

import org.apache.spark.{SparkException, SparkThrowable, TaskKilledException}
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.{FunctionIdentifier, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, GenericInternalRow, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, StringType, StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * The SQL function (expression) -> struct of `value`, and of `fault`: why the expression has no value
 * for a record, as the name of Spark's error condition, without anything that the record holds. Null
 * where it has a value.
 *
 * Only errors of values are caught. What ends a query on purpose does so here as well: `raise_error`,
 * and a table that cannot be looked up. Inside of a lambda, Spark computes the arguments of the
 * mesh's own functions where it calls them, and wraps their errors as if the function had raised
 * them: so what is wrapped is judged as if it were not, unless a lookup has raised it.
 */
case class Attempt(child: Expression) extends UnaryExpression {
  // computed once for a record, where it stands: never for a filter and again for what passes it
  override lazy val deterministic: Boolean = false
  override def foldable: Boolean = false
  override def nullable: Boolean = false
  override def prettyName: String = Attempt.name
  override def dataType: DataType = StructType(Seq(
    StructField("value", child.dataType), StructField("fault", StringType)))

  override def eval(input: InternalRow): Any =
    try Attempt.found(child.eval(input))
    catch { case error: Exception => Attempt.failed(error) }

  override protected def doGenCode(context: CodegenContext, made: ExprCode): ExprCode = {
    val inner = child.genCode(context)
    val value = context.freshName("value")
    val error = context.freshName("error")
    val attempt = classOf[Attempt].getName
    val code = code"""
      InternalRow ${made.value} = null;
      try {
        ${inner.code}
        Object $value = null;
        if (!${inner.isNull}) { $value = ${inner.value}; }
        ${made.value} = $attempt.found($value);
      } catch (Exception $error) {
        ${made.value} = $attempt.failed($error);
      }
    """
    made.copy(code = code, isNull = FalseLiteral)
  }

  override protected def withNewChildInternal(changed: Expression): Attempt = copy(child = changed)
}

object Attempt {
  val name = "mesh_attempt"
  private val lookup = "mesh_lookup"

  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectFunction((
      FunctionIdentifier(name), new ExpressionInfo(classOf[Attempt].getName, name),
      children => Attempt(children.head)))

  def found(value: Any): InternalRow = new GenericInternalRow(Array[Any](value, null))

  /** The row that stands for an error of a value; throws any other one again. */
  def failed(error: Exception): InternalRow = condition(error) match {
    case Some(why) if why != "USER_RAISED_EXCEPTION" =>
      new GenericInternalRow(Array[Any](null, UTF8String.fromString(why)))
    case _ => throw error
  }

  /** The condition of an error of a value, of this one or of the one that it wraps; None for any other. */
  @scala.annotation.tailrec
  private def condition(error: Throwable): Option[String] = error match {
    case none: NoValue => Some(none.condition)
    case of: SparkException if wraps(of) => condition(of.getCause)
    case _: SparkException | _: TaskKilledException => None
    case known: RuntimeException with SparkThrowable =>
      Option(known.getCondition).orElse(Some(error.getClass.getSimpleName))
    case _: RuntimeException => Some(error.getClass.getSimpleName)
    case _ => None
  }

  /** Whether a function of the mesh, or one of its arguments, has raised what this one wraps. */
  private def wraps(error: SparkException): Boolean =
    error.getCondition == "FAILED_EXECUTE_UDF" &&
      Option(error.getMessageParameters.get("functionName")).exists(!_.startsWith(s"`${lookup} "))
}
