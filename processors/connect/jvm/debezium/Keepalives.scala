package io.debezium.connector.postgresql

import io.debezium.connector.postgresql.connection.{Lsn, WalPositionLocator}
import io.debezium.connector.postgresql.connection.ReplicationMessage.Operation
import org.postgresql.replication.LogSequenceNumber

/**
 * Lets a heartbeat of Debezium's say how far the database's log was read while nothing in it was
 * captured. PostgreSQL tells it by keepalives, when every transaction that has ended before is sent.
 * The position is in Kafka with the heartbeat before it is confirmed to the database: a capture that
 * is started again never asks for what is no longer there. `lsn.flush.mode=connector_and_driver`
 * confirms at once, and keeps the position nowhere.
 *
 * `mesh.PatchDebezium` has the connector ask this. It stands in this package for what others may not
 * ask of a position. Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object Keepalives {
  /** Of the stream that the thread reads. */
  private val received = new ThreadLocal[LogSequenceNumber]

  /** How far the driver has read. */
  def receive(end: LogSequenceNumber): LogSequenceNumber = {
    received.set(end)
    end
  }

  /** Moves a position where nothing is pending; whether it may be confirmed then. */
  def advance(offset: PostgresOffsetContext, mayFlush: Boolean): Boolean = {
    val end = received.get
    // within a transaction each of its changes is a position
    if (end == null || isWithin(offset)) mayFlush
    else {
      val read = Lsn.valueOf(end)
      val before = offset.lastCompletelyProcessedLsn
      val isFurther = read.isValid && (before == null || read.compareTo(before) > 0)
      if (isFurther) offset.updateCommitPosition(read, read)
      mayFlush || isFurther
    }
  }

  /**
   * In place of `locator.searchingEnabled`. Debezium looks for the change of the stored position among
   * those that come, and passes over what is before it. Between transactions there is none before it,
   * and a change of a later transaction may stand at just that position. Within one its messages are
   * counted, but by an earlier version.
   */
  def searches(locator: WalPositionLocator, offset: PostgresOffsetContext): Boolean =
    !CountedPositions.begin(offset) && locator.searchingEnabled && isWithin(offset)

  /** Whether a position is within a transaction. */
  def isWithin(offset: PostgresOffsetContext): Boolean = {
    val last = offset.lastProcessedMessageType
    last != null && last != Operation.COMMIT
  }
}
