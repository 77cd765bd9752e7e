package io.debezium.connector.postgresql

import java.util

import io.debezium.connector.postgresql.connection.{Lsn, ReplicationMessage, ReplicationStream}
import io.debezium.connector.postgresql.connection.ReplicationMessage.Operation
import mesh.RefusedException

/**
 * Counts the messages of a transaction, so that a capture which starts again within it passes over those
 * whose records are in Kafka, and no other. Debezium goes by their positions in the database's log alone, of which
 * the rows of a COPY have one for each page: it took all rows of the page for read.
 *
 * The number stands beside the position that Connect keeps, with the position of the last message counted. A
 * stream that starts at the transaction's end before has that transaction first, message by message as it was;
 * where the count ends at another position it is refused. A stream that begins with another transaction does
 * so since PostgreSQL was told that the whole of this one is read: records that a transform drops leave no
 * position in Kafka.
 *
 * `mesh.PatchDebezium` has the connector ask this. It stands in this package for what others may not
 * ask of a position. Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object CountedPositions {
  private val number = "mesh_messages"
  private val of = "mesh_lsn"
  /** Debezium's own. */
  private val transaction = "txId"
  private val unknown = -1L

  /** Where a thread reads. */
  final class Place {
    /** Messages since the last transaction's end, unknown after a position of an earlier version. */
    var count: Long = unknown
    /** The position of the last of them. */
    var lsn: Lsn = _
    /** Messages that are still to be passed over, if they are of this transaction. */
    var done = 0L
    var transaction = unknown
    var hasBegun = false
    /** The transaction's end before a position that was not counted; it may be sent again. */
    var since: Lsn = _
    var isWithin = false
    /** What takes its records. */
    var batch: WholeMessages.Batch = _
  }

  private val places = new ThreadLocal[Place]
  private val reached = new ThreadLocal[Lsn]
  /** What stands beside positions of Connect's. */
  private val known =
    util.Collections.synchronizedMap(new util.WeakHashMap[PostgresOffsetContext, Array[Long]])

  /** Null where the thread reads no stream. */
  def place: Place = places.get

  /** Keeps what stands beside a stored position. */
  def loaded(position: PostgresOffsetContext, stored: util.Map[String, _]): PostgresOffsetContext = {
    val count: Any = stored.get(number)
    val lsn: Any = stored.get(of)
    val id: Any = stored.get(transaction)
    if (count.isInstanceOf[Number] && lsn.isInstanceOf[Number] && id.isInstanceOf[Number]) {
      val numbers = new Array[Long](3)
      numbers(0) = count.asInstanceOf[Number].longValue
      numbers(1) = lsn.asInstanceOf[Number].longValue
      numbers(2) = id.asInstanceOf[Number].longValue
      known.put(position, numbers)
    }
    position
  }

  /** Where a stream starts for a position: at the transaction's end before, if its messages are counted. */
  def start(lsn: Lsn, position: PostgresOffsetContext): Lsn = {
    reached.set(lsn)
    if (counted(position) == null) lsn else position.lastCommitLsn
  }

  /** How far the log was read that a stream is started for; where it starts if nothing of it was. */
  def read(start: Lsn): Lsn = {
    val found = reached.get
    if (found == null) start else found
  }

  /** Begin to read; whether messages are counted that are to be passed over. */
  def begin(position: PostgresOffsetContext): Boolean = {
    val stored = counted(position)
    val place = new Place
    places.set(place)
    place.isWithin = Keepalives.isWithin(position)
    if (stored != null) {
      place.count = stored(0)
      place.done = place.count
      place.lsn = Lsn.valueOf(java.lang.Long.valueOf(stored(1)))
      place.transaction = stored(2)
    } else if (place.isWithin) place.since = position.lastCommitLsn
    else place.count = 0
    stored != null
  }

  /** Whether a message is one whose records are in Kafka; it is counted otherwise. */
  def isDone(stream: ReplicationStream, message: ReplicationMessage): Boolean = {
    if (place == null) places.set(new Place)
    val here = place
    // all records of the one before stand in the queue
    WholeMessages.complete(here.batch)
    val ends = message.getOperation == Operation.COMMIT
    val lsn = stream.lastReceivedLsn
    if (!here.hasBegun) {
      here.hasBegun = true
      if (here.done > 0 && message.getTransactionId.orElse(unknown) != here.transaction) {
        here.done = 0
        here.count = 0
      }
    }
    if (here.done > 0) {
      here.done -= 1
      if (ends || here.done == 0 && !lsn.equals(here.lsn))
        throw new RefusedException(
          "position_lost: a transaction: the database's log has another one behind " +
            "the last that was read as a whole")
      true
    } else {
      here.isWithin = !ends
      if (ends) {
        if (here.since == null || lsn.compareTo(here.since) > 0) here.count = 0
      }
      else if (here.count != unknown) here.count += 1
      here.lsn = lsn
      false
    }
  }

  /** Puts the number of messages beside a position. */
  def told(offset: util.Map[String, _], position: PostgresOffsetContext): util.Map[String, _] = {
    val here = place
    if (here == null || here.count < 1 || !Keepalives.isWithin(position)) offset
    else {
      val found = new util.HashMap[String, Any](offset)
      found.put(number, java.lang.Long.valueOf(here.count))
      found.put(of, java.lang.Long.valueOf(here.lsn.asLong))
      found
    }
  }

  /** The number and the last position of its transaction's messages; null where that is not known. */
  private def counted(position: PostgresOffsetContext): Array[Long] =
    if (Keepalives.isWithin(position) && position.lastCommitLsn != null) known.get(position) else null
}
