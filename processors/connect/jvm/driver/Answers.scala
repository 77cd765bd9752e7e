package mesh

import java.io.IOException

/** What a database sends at once is more than a connector may take of Connect's memory. */
class AnswerTooLargeException(message: String) extends IOException(message)

/**
 * The arrays of one row would take more than a connector may of Connect's memory. An error, since
 * Debezium says of any exception only that the value cannot be converted.
 */
class ArraysTooLargeError(message: String) extends Error(message)

/**
 * Bounds what PostgreSQL's driver keeps of a database's answer: the bytes of one message, and those
 * of all messages until the driver sends something again. [[PatchDriver]] has the driver ask this
 * before it makes room, since the driver has no bound of its own for errors, notices and changes,
 * and believes each length that a server writes.
 *
 * The error is an IOException, with which the driver ends the connection.
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object Answers {
  private val most = 16 << 20
  /** Of a text, such as an error, which the driver copies some times. */
  private val longestText = 1 << 20
  /** What the driver keeps beside the bytes of a message. */
  private val perMessage = 64
  /** An error or a notice is an exception with a trace. */
  private val perText = 4096

  /** What has come together with so many bytes more. */
  def more(known: Int, bytes: Int): Int = {
    if (bytes < 0 || bytes > most - known) throw tooLarge(most)
    known + bytes
  }

  /** What has come without a message that was handed on, such as a change. */
  def handedOn(known: Int): Int = if (known < perMessage) 0 else known - perMessage

  def message(): Int = perMessage

  def text(bytes: Int): Int = {
    if (bytes < 0 || bytes > longestText) throw tooLarge(longestText)
    bytes + perText
  }

  /** Room for one message, or for a text of several reads. */
  def room(bytes: Int): Array[Byte] = {
    if (bytes < 0 || bytes > most) throw tooLarge(most)
    new Array[Byte](bytes)
  }

  def textRoom(bytes: Int): Array[Byte] = {
    if (bytes < 0 || bytes > 2 * longestText) throw tooLarge(longestText)
    new Array[Byte](bytes)
  }

  /** Of the arrays of one row. */
  private val mostElements = 200000
  /** Of settings that a server reports, which the driver keeps until the connection ends. */
  private val mostSettings = 200
  private val longestSetting = 8192
  private val arrayHead = 12
  private val dimensionHead = 8
  private val mostDimensions = 6

  /** How many elements the arrays of the row have that the thread is at. */
  private val elements = new ThreadLocal[Array[Int]] {
    override def initialValue(): Array[Int] = new Array[Int](1)
  }

  def nextRow(): Unit = elements.get()(0) = 0

  /** An element, or an array within an array: some bytes on the way, a hundred in memory. */
  def element(): Unit = holds(1)

  /** An array in binary form says how many elements it has before they come. */
  def array(bytes: Array[Byte]): Unit = {
    val head = java.nio.ByteBuffer.wrap(bytes)
    val dimensions = head.getInt()
    if (dimensions < 0 || dimensions > mostDimensions) throw tooManyElements()
    var count = 1L
    var one = 0
    while (one < dimensions) {
      val size = head.getInt(arrayHead + one * dimensionHead)
      if (size < 0) throw tooManyElements()
      count *= size
      if (count > mostElements) throw tooManyElements()
      one += 1
    }
    if (dimensions > 0) holds(count.toInt)
  }

  /** Before the driver keeps a setting that a server reports, beside those that it has. */
  def setting(known: java.util.Map[String, String], name: String, value: String): Unit = {
    if (name.length + value.length > longestSetting) throw tooLarge(longestSetting)
    if (known.size >= mostSettings && !known.containsKey(name)) throw tooLarge(longestSetting)
  }

  private def holds(more: Int): Unit = {
    val counted = elements.get()
    counted(0) += more
    if (counted(0) > mostElements) throw tooManyElements()
  }

  private def tooManyElements() = new ArraysTooLargeError(
    "the arrays of a row have more than " + mostElements + " elements")

  private def tooLarge(bound: Int): AnswerTooLargeException =
    new AnswerTooLargeException("the database sent more than " + bound + " bytes at once")
}
