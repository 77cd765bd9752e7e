package mesh

import java.nio.ByteBuffer
import java.nio.charset.{CharacterCodingException, StandardCharsets}

import org.apache.kafka.connect.errors.DataException

/** The same as that of our transformations, which the converter's plugin is not compiled with. */
class RefusedException(message: String) extends DataException(message)

/**
 * Refuses a text of a record whose bytes are no UTF-8. Avro puts one character in the place of any
 * such bytes, so that two keys became one. [[PatchAvro]] has Avro ask this as it makes a text.
 *
 * The error begins with a code. Nothing of Scala's own library is used, so that Connect needs no more
 * jars for it.
 */
object StrictTexts {
  /** Of the bytes so many are the text's. */
  def require(bytes: Array[Byte], length: Int): Unit = {
    var index = 0
    // most texts have letters of one byte alone
    while (index < length && bytes(index) >= 0) index += 1
    if (index < length)
      try StandardCharsets.UTF_8.newDecoder.decode(ByteBuffer.wrap(bytes, index, length - index))
      catch {
        case _: CharacterCodingException =>
          throw new RefusedException("text_not_utf8: a text: its bytes are no UTF-8")
      }
  }
}
