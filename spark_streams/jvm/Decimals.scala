package mesh

import org.apache.spark.sql.{AnalysisException, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.expressions.{Abs, Cast, EvalMode, Expression, Literal, UnaryExpression, UnaryMinus}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.{ArrayType, ByteType, DataType, Decimal, DecimalType, IntegerType, LongType, MapType, ShortType, StructType}

/**
 * Decimals of up to 38 digits, exactly. Spark rounds what `-` and `abs` give to the 34 digits of
 * Scala's decimals, and a decimal that meets another one to the scale that is left beside the most
 * digits before the point.
 */
object Decimals {
  /** Digits of Scala's decimals, DECIMAL128: of so many Spark's own value is exact. */
  private val exact = 34

  def inject(extensions: SparkSessionExtensions): Unit = {
    extensions.injectPostHocResolutionRule(_ => ExactSigns)
    extensions.injectCheckRule(_ => check(_))
  }

  def isLong(kind: DataType): Boolean = kind match {
    case decimal: DecimalType => decimal.precision > exact
    case _ => false
  }

  def negated(value: Decimal): Decimal =
    Decimal(value.toJavaBigDecimal.negate, value.precision, value.scale)

  def absolute(value: Decimal): Decimal =
    if (value.toJavaBigDecimal.signum < 0) negated(value) else value

  /** Throws AnalysisException for a cast that nobody has written, and that rounds decimals. */
  private def check(plan: LogicalPlan): Unit =
    plan.foreachWithSubqueries(_.expressions.foreach(_.foreach {
      case cast: Cast if cast.getTagValue(Cast.USER_SPECIFIED_CAST).isEmpty =>
        rounded(cast.child.dataType, cast.dataType).foreach { case (from, to) =>
          if (!keepsLiteral(cast)) throw new RoundsDecimal(from, to)
        }
      case _ =>
    }))

  /** The first decimal in a type, and what it would be rounded to. */
  private def rounded(from: DataType, to: DataType): Option[(DecimalType, DecimalType)] = (from, to) match {
    case (one: DecimalType, other: DecimalType) => Option.unless(holds(other, one))((one, other))
    case (ArrayType(one, _), ArrayType(other, _)) => rounded(one, other)
    case (MapType(key, value, _), MapType(otherKey, otherValue, _)) =>
      rounded(key, otherKey).orElse(rounded(value, otherValue))
    case (one: StructType, other: StructType) =>
      one.fields.zip(other.fields).view.flatMap { case (a, b) => rounded(a.dataType, b.dataType) }.headOption
    case _ => None
  }

  private def holds(wide: DecimalType, one: DecimalType): Boolean =
    wide.scale >= one.scale && wide.precision - wide.scale >= one.precision - one.scale

  /** Whether what is cast is a literal that is the same in the other type, as 2.0 and 2. */
  private def keepsLiteral(cast: Cast): Boolean = cast.child match {
    case _: Literal | Cast(_: Literal, _: DecimalType, _, _) => same(cast.child.eval(), cast.eval())
    case _ => false
  }

  private def same(one: Any, other: Any): Boolean = (one, other) match {
    case (one: Decimal, other: Decimal) => one.compare(other) == 0
    case _ => one == other
  }
}

/**
 * `-` and `abs` of long decimals become those below; of anything else they stay Spark's. TRY_CAST of
 * a decimal to a smaller integer goes by a BIGINT, which is cut off: Spark goes by a double, and
 * makes 1 of 0.99999999999999999.
 */
object ExactSigns extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveExpressions {
    case cast @ Cast(child, IntegerType | ShortType | ByteType, _, EvalMode.TRY)
        if child.resolved && child.dataType.isInstanceOf[DecimalType] =>
      cast.copy(child = Cast(child, LongType, cast.timeZoneId, EvalMode.TRY))
    case UnaryMinus(child, _) if child.resolved && Decimals.isLong(child.dataType) => ExactNegative(child)
    case Abs(child, _) if child.resolved && Decimals.isLong(child.dataType) => ExactAbs(child)
  }
}

trait ExactSign extends UnaryExpression {
  protected def of(value: Decimal): Decimal
  protected def name: String

  override def nullIntolerant: Boolean = true
  override def dataType: DataType = child.dataType
  override protected def nullSafeEval(value: Any): Any = of(value.asInstanceOf[Decimal])
  override protected def doGenCode(context: CodegenContext, made: ExprCode): ExprCode =
    defineCodeGen(context, made, value => s"mesh.Decimals.$name($value)")
}

/** The type stays that of what is negated, as in Spark. */
case class ExactNegative(child: Expression) extends ExactSign {
  override protected def of(value: Decimal): Decimal = Decimals.negated(value)
  override protected def name: String = "negated"
  override def prettyName: String = "negative"
  override protected def withNewChildInternal(changed: Expression): ExactNegative = copy(child = changed)
}

case class ExactAbs(child: Expression) extends ExactSign {
  override protected def of(value: Decimal): Decimal = Decimals.absolute(value)
  override protected def name: String = "absolute"
  override def prettyName: String = "abs"
  override protected def withNewChildInternal(changed: Expression): ExactAbs = copy(child = changed)
}

/** Two decimals have no type in common that holds both. */
final class RoundsDecimal(from: DecimalType, to: DecimalType) extends AnalysisException(
  s"${from.sql} would be rounded to ${to.sql} to have the type of what it is compared or put " +
    s"together with: CAST one of them, so that both fit into ${DecimalType.MAX_PRECISION} digits",
  None, None, None, None, Map.empty[String, String], Array.empty)
