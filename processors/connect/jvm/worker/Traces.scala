package mesh

import java.io.PrintStream
import java.sql.SQLException

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
  /** Parts of PostgreSQL's error, by what its driver calls them. */
  private val parts = Seq("Schema", "Table", "Column", "Constraint")

  /** As `failure.printStackTrace(out)`, without what was suppressed. */
  def print(failure: Throwable, out: PrintStream): Unit = {
    val causes = Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(mostCauses).toSeq
    for ((one, place) <- causes.zipWithIndex) {
      out.println((if (place > 0) "Caused by: " else "") + onOneLine(String.valueOf(one)))
      one match {
        case error: SQLException => out.println(onOneLine(s"SQLSTATE: ${state(error)}"))
        case _ =>
      }
      one.getStackTrace.foreach(frame => out.println(s"\tat $frame"))
    }
  }

  /** The SQLSTATE, and `name=value` of each part that the database names; a driver may have none. */
  private def state(error: SQLException): String = {
    val about = for {
      server <- asked(error, "getServerErrorMessage").toSeq
      part <- parts
      value <- asked(server, s"get$part")
    } yield s"${part.toLowerCase}=$value"
    (String.valueOf(error.getSQLState) +: about).mkString(" ")
  }

  /** What a public method gives; its class is of the connector's own class loader. */
  private def asked(of: AnyRef, method: String): Option[AnyRef] =
    try Option(of.getClass.getMethod(method).invoke(of))
    catch { case _: ReflectiveOperationException | _: RuntimeException | _: LinkageError => None }

  private def onOneLine(text: String): String =
    text.take(longest).map(letter => if (endsLine(letter)) ' ' else letter)

  private def endsLine(letter: Char): Boolean =
    Character.isISOControl(letter) || letter == '\u2028' || letter == '\u2029'
}
