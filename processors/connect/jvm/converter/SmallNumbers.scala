package mesh

import org.apache.kafka.connect.errors.DataException

/** The same as that of our transformations, which the converter's plugin is not compiled with. */
class RefusedException(message: String) extends DataException(message)

/**
 * Refuses a number that is too large for the type that its schema has for Connect (`connect.type`),
 * of which the converter took the last bits. [[PatchConverter]] has it ask this.
 *
 * The error begins with a code. Nothing of Scala's own library is used, so that Connect needs no more
 * jars for it.
 */
object SmallNumbers {
  def byteValue(number: Integer): Byte = {
    require(number.intValue == number.byteValue, "int8")
    number.byteValue
  }

  def shortValue(number: Integer): Short = {
    require(number.intValue == number.shortValue, "int16")
    number.shortValue
  }

  private def require(fits: Boolean, kind: String): Unit =
    if (!fits) throw new RefusedException("value_not_exact: a number: its connect.type is " + kind)
}
