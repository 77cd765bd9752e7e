package mesh

import java.io.PrintStream

import org.apache.kafka.connect.errors.DataException

/** What our own transformations refuse a record with: no other class begins a line of a trace so. */
class RefusedException(message: String) extends DataException(message)

/**
 * Prints the trace of a failure with one line per cause: a message may quote a record, and with its
 * line ends a record could write causes of its own. [[PatchConnect]] has Connect ask this for the
 * trace that its REST API tells.
 */
object Traces {
  /** Causes that are printed, and letters of each of their messages. */
  private val mostCauses = 50
  private val longest = 4096

  /** As `failure.printStackTrace(out)`, without what was suppressed. */
  def print(failure: Throwable, out: PrintStream): Unit = {
    val causes = Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(mostCauses).toSeq
    for ((one, place) <- causes.zipWithIndex) {
      out.println((if (place > 0) "Caused by: " else "") + onOneLine(String.valueOf(one)))
      one.getStackTrace.foreach(frame => out.println(s"\tat $frame"))
    }
  }

  private def onOneLine(text: String): String =
    text.take(longest).map(letter => if (endsLine(letter)) ' ' else letter)

  private def endsLine(letter: Char): Boolean =
    Character.isISOControl(letter) || letter == '\u2028' || letter == '\u2029'
}
