package mesh

import java.util.regex.Pattern

import io.debezium.connector.postgresql.CountedPositions
import io.debezium.connector.postgresql.connection.{Lsn, PostgresReplicationConnection}

/**
 * Refuses to read on at a position that the database's log has not come to: of a server that was set
 * back, or of another one in its place. PostgreSQL would pass over every change up to that position.
 * A log that has grown beyond it since looks as the one that was read. [[PatchDebezium]] has the
 * connector ask this before it starts its stream.
 *
 * The error begins with a code, and names the database where its name is plain. Nothing of Scala's own
 * library is used, so that Connect needs no more jars for it.
 */
object LogPositions {
  /** What is written of the log, or has come to a standby. */
  private val end = """
    SELECT CASE WHEN pg_is_in_recovery()
      THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
      ELSE pg_current_wal_insert_lsn() END"""
  private val plain = Pattern.compile("[\\w$-]{1,63}")

  /** Of where a stream starts, null where nothing is stored. */
  def require(replication: PostgresReplicationConnection, start: Lsn): Unit = {
    val stored = CountedPositions.read(start)
    if (stored != null && stored.isValid) {
      val connection = replication.connection(false)
      val asking = connection.createStatement()
      try {
        val found = asking.executeQuery(end)
        if (found.next()) {
          val current = Lsn.valueOf(found.getString(1))
          if (stored.compareTo(current) > 0) {
            val name = connection.getCatalog
            val database = if (name != null && plain.matcher(name).matches()) name else "a database"
            throw new RefusedException(
              "log_behind: " + database + ": its log ends at " + current.asString +
                ", before the position that was read, " + stored.asString)
          }
        }
      } finally asking.close()
    }
  }

  /**
   * In place of a look at a publication that a standby cannot make. Debezium takes one that lacks
   * tables, whose changes would not arrive.
   */
  def refuseStandby(): Unit =
    throw new RefusedException(
      "database_is_standby: a database: a standby can neither make nor change a publication")
}
