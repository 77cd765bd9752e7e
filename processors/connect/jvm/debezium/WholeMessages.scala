package io.debezium.connector.postgresql

import java.util

import io.debezium.connector.base.ChangeEventQueue
import org.apache.kafka.connect.source.SourceRecord

/**
 * Has Connect get all records of a message together. Of a changed key there are three, with one
 * position: where a transaction of Kafka's ended between them, a capture that started again took the others for
 * written.
 *
 * Records come out of the queue as before; those of the last message are kept back until the next one
 * begins, which an end of a transaction is as well. `mesh.PatchDebezium` has the connector ask this.
 */
object WholeMessages {
  /** Records of one queue, counted as they come in and go out. */
  final class Batch {
    var enqueued = 0L
    var released = 0L
    /** How many were enqueued at the end of each message of which some are not released. */
    val ends = new util.ArrayDeque[java.lang.Long]
    val kept = new util.ArrayDeque[SourceRecord]

    /** Whatever stands in the queue is whole. */
    def end(): Unit = {
      val last = ends.peekLast
      val isNew = if (last == null) enqueued > released else enqueued > last.longValue
      if (isNew) ends.add(java.lang.Long.valueOf(enqueued))
    }
  }

  private val batches =
    util.Collections.synchronizedMap(new util.WeakHashMap[ChangeEventQueue[_], Batch])

  /** A record stands in the queue. */
  def enqueued(queue: ChangeEventQueue[_]): Unit = {
    val batch = of(queue)
    val place = CountedPositions.place
    batch.synchronized {
      batch.enqueued += 1
      // a row of a snapshot, or a heartbeat
      if (place == null || !place.isWithin) batch.end()
    }
    if (place != null) place.batch = batch
  }

  /** Whatever stands in the queue is whole. */
  def complete(batch: Batch): Unit =
    if (batch != null) batch.synchronized(batch.end())

  /** What of the records that came out of the queue, and were kept back, may be written. */
  def whole(found: util.List[SourceRecord], queue: ChangeEventQueue[_]): util.List[SourceRecord] = {
    val batch = of(queue)
    batch.synchronized {
      batch.kept.addAll(found)
      val out = batch.released + batch.kept.size
      var last = batch.released
      while (!batch.ends.isEmpty && batch.ends.peek.longValue <= out) last = batch.ends.poll().longValue
      val count = (last - batch.released).toInt
      batch.released = last
      val records = new util.ArrayList[SourceRecord](count)
      while (records.size < count) records.add(batch.kept.poll())
      records
    }
  }

  private def of(queue: ChangeEventQueue[_]): Batch = {
    val found = batches.get(queue)
    if (found != null) found
    else
      batches.synchronized {
        if (!batches.containsKey(queue)) batches.put(queue, new Batch)
        batches.get(queue)
      }
  }
}
