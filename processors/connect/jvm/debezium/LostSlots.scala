package mesh

import java.sql.ResultSet

/**
 * Refuses a replication slot that PostgreSQL has given up, for which Debezium would wait half an hour
 * as for one that is not ready yet. [[PatchDebezium]] has the connector ask this as it reads a row of
 * `pg_replication_slots`.
 *
 * The error begins with a code, and names the slot. Nothing of Scala's own library is used, so that
 * Connect needs no more jars for it.
 */
object LostSlots {
  def require(slot: String, row: ResultSet): Unit =
    if ("lost".equals(row.getString("wal_status")))
      throw new RefusedException(
        "slot_lost: " + slot + ": its log of changes is no longer kept")
}
