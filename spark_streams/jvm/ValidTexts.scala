package mesh

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.{FunctionIdentifier, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * The SQL function (expression) -> its value; NoValue, which `Attempt` catches, where a string in it
 * is no UTF-8, as one that was cast from bytes. Avro's strings are UTF-8, and most readers fail on
 * anything else.
 */
case class ValidTexts(child: Expression) extends UnaryExpression {
  override def nullIntolerant: Boolean = true
  override def prettyName: String = ValidTexts.name
  override def dataType: DataType = child.dataType

  override protected def nullSafeEval(value: Any): Any = ValidTexts.checked(value, dataType)

  override protected def doGenCode(context: CodegenContext, made: ExprCode): ExprCode = {
    val kind = context.addReferenceObj("kind", dataType, classOf[DataType].getName)
    val boxed = CodeGenerator.boxedType(dataType)
    defineCodeGen(context, made, value => s"($boxed) mesh.ValidTexts.checked($value, $kind)")
  }

  override protected def withNewChildInternal(changed: Expression): ValidTexts = copy(child = changed)
}

object ValidTexts {
  val name = "mesh_valid_texts"
  private val condition = "INVALID_UTF8_STRING"

  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectFunction((
      FunctionIdentifier(name), new ExpressionInfo(classOf[ValidTexts].getName, name),
      children => ValidTexts(children.head)))

  def checked(value: Any, kind: DataType): Any = {
    look(value, kind)
    value
  }

  private def look(value: Any, kind: DataType): Unit = kind match {
    case _: StringType => if (!value.asInstanceOf[UTF8String].isValid) throw new NoValue(condition)
    case StructType(fields) =>
      val row = value.asInstanceOf[InternalRow]
      for (index <- fields.indices if mayHold(fields(index).dataType) && !row.isNullAt(index))
        look(row.get(index, fields(index).dataType), fields(index).dataType)
    case ArrayType(one, _) if mayHold(one) => each(value.asInstanceOf[ArrayData], one)
    case MapType(key, one, _) =>
      val map = value.asInstanceOf[MapData]
      if (mayHold(key)) each(map.keyArray(), key)
      if (mayHold(one)) each(map.valueArray(), one)
    case _ =>
  }

  private def each(values: ArrayData, kind: DataType): Unit =
    for (index <- 0 until values.numElements() if !values.isNullAt(index))
      look(values.get(index, kind), kind)

  private def mayHold(kind: DataType): Boolean = kind match {
    case _: StringType | _: StructType | _: ArrayType | _: MapType => true
    case _ => false
  }
}
