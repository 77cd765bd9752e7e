package mesh

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel

/**
 * Where the search for aborted transactions begins in a segment's index of them. Kafka reads it entry by entry from
 * its start, for each partition of each fetch: 21 000 of them in 200 partitions kept a request handler busy for
 * seconds. They are in the order of their last offsets. [[PatchKafka]] has Kafka call these methods.
 */
object BoundedIndexes {
  // version, producer, first offset, last offset, last stable offset
  private val entry = 2 + 8 + 8 + 8 + 8
  private val ofLastOffset = 2 + 8 + 8
  private val start = new ThreadLocal[Integer]

  /** The thread is to look for transactions that end at an offset, or behind it, in an index; null for an empty one. */
  def looks(index: FileChannel, offset: Long): Unit = start.set(if (index == null) null else first(index, offset))

  /** In place of a position at which an index is read. */
  def from(position: Int): Int = {
    val found = start.get
    start.remove()
    if (found == null) position else found
  }

  private def first(index: FileChannel, offset: Long): Int = {
    val buffer = ByteBuffer.allocate(8)
    try {
      var low = 0
      var high = (index.size / entry).toInt
      while (low < high) {
        val middle = (low + high) >>> 1
        buffer.clear()
        if (index.read(buffer, middle.toLong * entry + ofLastOffset) < buffer.capacity) high = low
        else if (buffer.getLong(0) < offset) low = middle + 1
        else high = middle
      }
      low * entry
    } catch {
      // Kafka meets it again, and says so
      case _: IOException => 0
    }
  }
}
