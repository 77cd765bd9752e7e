package mesh

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel

import org.apache.kafka.common.utils.Utils

/**
 * Where the search for aborted transactions begins in a segment's index of them. Kafka reads it entry by entry from
 * its start, for each partition of each fetch: 21 000 of them in 200 partitions kept a request handler busy for
 * seconds. They are in the order of their last offsets. From there on it is read in blocks: Kafka asks the system
 * twice for each entry. [[PatchKafka]] has Kafka call these methods.
 */
object BoundedIndexes {
  // version, producer, first offset, last offset, last stable offset
  private val entry = 2 + 8 + 8 + 8 + 8
  private val ofLastOffset = 2 + 8 + 8
  private val start = new ThreadLocal[Integer]
  private val fewest = 32
  private val block = ThreadLocal.withInitial[Block](() => new Block)

  /** Entries that stand behind each other, as they were when the search in their index began. */
  private class Block {
    private val bytes = ByteBuffer.allocate(64 * fewest * entry)
    private var index: FileChannel = _
    private var position = 0L
    private var entries = fewest
    var end = 0L

    def forget(): Unit = index = null

    def isOf(channel: FileChannel): Boolean = channel eq index

    def begin(channel: FileChannel): Unit = {
      index = channel
      end = channel.position
      entries = fewest
      bytes.limit(0)
    }

    def read(to: ByteBuffer, from: Long): Unit = {
      if (from < position || from + to.remaining > position + bytes.limit()) load(from)
      to.put(bytes.array, (from - position).toInt, math.min(to.remaining, bytes.limit() - (from - position).toInt))
    }

    private def load(from: Long): Unit = {
      bytes.clear().limit(math.min(bytes.capacity, entries * entry))
      Utils.readFully(index, bytes, from)
      bytes.flip()
      position = from
      entries = math.min(2 * entries, bytes.capacity / entry)
    }
  }

  /** The thread is to look for transactions that end at an offset, or behind it, in an index; null for an empty one. */
  def looks(index: FileChannel, offset: Long): Unit = start.set(if (index == null) null else first(index, offset))

  /** In place of a position at which an index is read. */
  def from(position: Int): Int = {
    val found = start.get
    start.remove()
    block.get.forget()
    if (found == null) position else found
  }

  /** In place of the place behind the last entry of an index. */
  def end(index: FileChannel): Long = {
    val known = block.get
    if (known.isOf(index)) known.end else index.position
  }

  /** In place of reading an entry of an index at a position. */
  def read(index: FileChannel, to: ByteBuffer, position: Long): Unit = {
    val known = block.get
    if (!known.isOf(index)) known.begin(index)
    known.read(to, position)
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
