package mesh

import java.io.IOException

/** What a database sends at once is more than a connector may take of Connect's memory. */
class AnswerTooLargeException(message: String) extends IOException(message)

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

  private[mesh] def tooLarge(bound: Int): AnswerTooLargeException =
    new AnswerTooLargeException("the database sent more than " + bound + " bytes at once")
}
