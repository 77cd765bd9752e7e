package mesh

import org.apache.avro.InvalidNumberEncodingException

/**
 * Refuses numbers of records that their types have not. Avro takes the last 32 bits of an `int` of
 * more, and any byte but 1 for false, so that its readers in other languages show another value.
 * [[PatchDecoder]] has Avro ask this.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object StrictNumbers {
  /** An `int` as it is written, which is as a `long`. */
  def ofInt(value: Long): Int =
    if (value.toInt == value) value.toInt
    else throw new InvalidNumberEncodingException("an int of more than 32 bits")

  /** The byte of a boolean. */
  def ofBoolean(value: Int): Int =
    if (value <= 1) value
    else throw new InvalidNumberEncodingException("a boolean that is neither 0 nor 1")
}
