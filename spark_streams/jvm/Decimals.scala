package mesh

import java.math.{BigDecimal => JavaDecimal}

import org.apache.spark.sql.{AnalysisException, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.expressions.{Abs, BinaryArithmetic, Cast, EvalMode, ExpectsInputTypes, Expression, IsNaN, Literal, Signum, UnaryExpression, UnaryMinus}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.{ArrayType, ByteType, DataType, Decimal, DecimalType, DoubleType, FloatType, IntegerType, LongType, MapType, ShortType, StructType}

/**
 * Decimals of up to 38 digits, exactly. Spark rounds what `-` and `abs` give to the 34 digits of
 * Scala's decimals, a decimal that meets another one to the scale that is left beside the most
 * digits before the point, and numbers that meet a DOUBLE or a FLOAT to those.
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

  /** Throws AnalysisException for a cast that nobody has written, and that rounds. */
  private def check(plan: LogicalPlan): Unit =
    plan.foreachWithSubqueries(_.expressions.foreach(look(_, inComputation = false)))

  /** Who computes with a DOUBLE expects one; who compares, or chooses, is shown another value. */
  private def look(one: Expression, inComputation: Boolean): Unit = {
    one match {
      case cast: Cast if cast.getTagValue(Cast.USER_SPECIFIED_CAST).isEmpty =>
        rounded(cast.child.dataType, cast.dataType, inComputation).foreach { case (from, to) =>
          if (!keepsLiteral(cast)) throw new RoundsNumber(from, to)
        }
      case _ =>
    }
    one.children.foreach(look(_, computes(one)))
  }

  /** Functions of a collection expect what it holds, and look for a number in it. */
  private def computes(one: Expression): Boolean = one match {
    case _: BinaryArithmetic | _: IsNaN | _: Signum => true
    case function: ExpectsInputTypes => function.inputTypes.forall(Seq(DoubleType, IntegerType, LongType).contains)
    case _ => false
  }

  /** The first number in a type, and what it would be rounded to. */
  private def rounded(from: DataType, to: DataType, computes: Boolean): Option[(DataType, DataType)] =
    (from, to) match {
      case (one: DecimalType, other: DecimalType) => Option.unless(holds(other, one))((one, other))
      case (_, FloatType | DoubleType) => Option.unless(computes || isExact(from, to))((from, to))
      case (ArrayType(one, _), ArrayType(other, _)) => rounded(one, other, computes)
      case (MapType(key, value, _), MapType(otherKey, otherValue, _)) =>
        rounded(key, otherKey, computes).orElse(rounded(value, otherValue, computes))
      case (one: StructType, other: StructType) =>
        one.fields.zip(other.fields).view
          .flatMap { case (a, b) => rounded(a.dataType, b.dataType, computes) }.headOption
      case _ => None
    }

  /** Whether each number of a type is another one of those, by the digits that they keep. */
  private def isExact(from: DataType, to: DataType): Boolean = (from, to) match {
    case (LongType, _) => false
    case (IntegerType, _) => to == DoubleType
    case (decimal: DecimalType, _) => decimal.precision <= (if (to == DoubleType) 15 else 6)
    case _ => true
  }

  private def holds(wide: DecimalType, one: DecimalType): Boolean =
    wide.scale >= one.scale && wide.precision - wide.scale >= one.precision - one.scale

  /** Whether what is cast is a literal that is the same in the other type, as 2.0 and 2. */
  private def keepsLiteral(cast: Cast): Boolean = cast.child match {
    case _: Literal | Cast(_: Literal, _, _, _) | UnaryMinus(_: Literal, _) =>
      (number(cast.child.eval()), number(cast.eval())) match {
        case (Some(one), Some(other)) => one.compareTo(other) == 0
        case (one, other) => one == other
      }
    case _ => false
  }

  private def number(value: Any): Option[JavaDecimal] = value match {
    case decimal: Decimal => Some(decimal.toJavaBigDecimal)
    case whole @ (_: Byte | _: Short | _: Int | _: Long) => Some(new JavaDecimal(whole.toString))
    case one: Float if !one.isNaN && !one.isInfinite => Some(new JavaDecimal(one.toDouble))
    case one: Double if !one.isNaN && !one.isInfinite => Some(new JavaDecimal(one))
    case _ => None
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

/** Two numbers have no type in common that holds both. */
final class RoundsNumber(from: DataType, to: DataType) extends AnalysisException(
  s"${from.sql} would be rounded to ${to.sql} to have the type of what it is compared or put " +
    s"together with: CAST one of them" + (to match {
      case _: DecimalType => s", so that both fit into ${DecimalType.MAX_PRECISION} digits"
      case _ => ", to a DECIMAL where each digit counts"
    }),
  None, None, None, None, Map.empty[String, String], Array.empty)
