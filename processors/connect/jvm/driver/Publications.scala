package mesh

import java.sql.SQLWarning
import java.util.regex.Pattern

import org.postgresql.util.PSQLWarning

/** The same as that of our transformations, which no driver of a database's is compiled with. */
class RefusedError(message: String) extends Error(message)

/**
 * Refuses changes without their publication: from PostgreSQL 18 on a stream whose publication is gone
 * goes on without them, and a warning is all that tells it. [[PatchDriver]] has the driver ask this of
 * each warning, before it hands on what came behind it.
 *
 * A server writes its messages in its own language, but not the names of its functions. The error
 * begins with a code, and names the publication where its name is plain. Nothing of Scala's own library
 * is used, so that Connect needs no more jars for it.
 */
object Publications {
  private val function = "LoadPublications"
  private val quoted = Pattern.compile("[^\\w]([a-z0-9_]{1,63})[^\\w]*$")

  def require(warning: SQLWarning): Unit =
    if (warning.isInstanceOf[PSQLWarning]) {
      val told = warning.asInstanceOf[PSQLWarning].getServerErrorMessage
      if (function.equals(told.getRoutine)) {
        val message = told.getMessage
        val found = quoted.matcher(if (message == null) "" else message)
        val name = if (found.find()) found.group(1) else "a publication"
        throw new RefusedError(
          "publication_lost: " + name + ": it was dropped, and changes of its tables are missing")
      }
    }
}
