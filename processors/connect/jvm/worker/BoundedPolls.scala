package mesh

import org.apache.kafka.common.record.internal.Record

/**
 * Bounds what one poll of a consumer unpacks. Kafka bounds the bytes that a broker sends, which are
 * compressed, and the number of records that a poll gives: 300 records of a megabyte can be some
 * kilobytes each, and all of them would be in the heap at once.
 *
 * A poll gives records until those that it has take `mesh.polls.bytes`, unpacked, with
 * `mesh.polls.header.bytes` more for each header: the last one may pass the bound, so that there
 * always is one. The next poll goes on behind it; what it has not given is still compressed.
 *
 * [[PatchConsumer]] has Kafka's consumer ask this. A poll runs in one thread from its begin to its
 * end.
 */
object BoundedPolls {
  private val most = Integer.getInteger("mesh.polls.bytes", 8 << 20).longValue
  /** A header of some bytes is several objects, here and as Connect's. */
  private val ofHeader = Integer.getInteger("mesh.polls.header.bytes", 512).longValue
  private val given = ThreadLocal.withInitial[Array[Long]](() => new Array[Long](1))

  /** A poll begins to unpack. */
  def begin(): Unit = given.get()(0) = 0

  /** The size of a record that the poll gives, which is counted. */
  def sizeOf(record: Record): Int = {
    val size = record.sizeInBytes
    given.get()(0) += size + ofHeader * record.headers.length
    size
  }

  /** How many records the poll may give, of those that it is asked for: none once it is full. */
  def room(records: Int): Int = if (given.get()(0) < most) records else 0
}
