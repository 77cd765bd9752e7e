package mesh

import java.io.InputStream
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap

import org.apache.kafka.common.InvalidRecordException
import org.apache.kafka.common.compress.Compression
import org.apache.kafka.common.errors.{RecordTooLargeException, ThrottlingQuotaExceededException}
import org.apache.kafka.common.record.internal.{
  DefaultRecord, DefaultRecordBatch, PartialDefaultRecord, Record, RecordBatch
}
import org.apache.kafka.common.utils.BufferSupplier

/**
 * What a compressed batch may unpack to. Kafka bounds a batch as it is sent, and makes room for what
 * the lengths in it announce: 91 bytes take 500 MB of a broker's heap. And where its records stand: of
 * one that is not compressed Kafka takes any offsets and times, about which its clients do not agree.
 * [[PatchKafka]] has Kafka's classes call these methods.
 *
 * Properties of the JVM:
 *   mesh.batches.record.bytes=<n>   of one record, and of one block of Snappy; one that a domain appends,
 *                                   compressed or not, is a MiB smaller, for copies and dead letters
 *   mesh.batches.bytes=<n>          of a batch
 *   mesh.batches.records=<n>        of a batch
 *   mesh.batches.record.headers=<n> of one record, compressed or not; of one that a domain appends a
 *                                   hundred less, since copies and dead letters have some more
 *   mesh.batches.headers=<n>        of all records of a compressed batch
 *   mesh.batches.request.bytes=<n>  of all batches that one request unpacks, for each header 32 more
 *   mesh.batches.login.bytes=<n>    of all requests of a login in a second
 *
 * RecordTooLargeException is what a Java producer answers by sending the batch in halves.
 */
object BoundedBatches {
  private val ofRecord = Integer.getInteger("mesh.batches.record.bytes", 17 << 20).intValue
  private val ofBatch = Integer.getInteger("mesh.batches.bytes", 32 << 20).intValue
  private val records = Integer.getInteger("mesh.batches.records", 100000).intValue
  private val headersOfRecord = Integer.getInteger("mesh.batches.record.headers", 10000).intValue
  private val spare = 100
  private val spareBytes = 1 << 20
  private val headersOfBatch = Integer.getInteger("mesh.batches.headers", 500000).intValue
  private val ofRequest = Integer.getInteger("mesh.batches.request.bytes", 256 << 20).intValue
  private val ofLogin = Integer.getInteger("mesh.batches.login.bytes", 1 << 30).doubleValue
  private val lateNs = 1000000000L
  private val admin = "admin"
  private val requests = new ThreadLocal[Budget]
  private val logins = new ConcurrentHashMap[String, Spent]()
  private val snappyHeader = Array[Byte](-126, 'S', 'N', 'A', 'P', 'P', 'Y', 0)

  /** The thread begins with a request of a login. */
  def begin(login: String): Unit = {
    ends()
    requests.set(new Budget(ofRequest, login))
  }

  /** It is done with it. */
  def ends(): Unit = {
    val before = requests.get
    if (before != null) before.settle()
    requests.remove()
  }

  /** Counts bytes for the login. */
  def spend(login: String, bytes: Long): Unit = spent(login).add((bytes / ofLogin * 1e9).toLong)

  /** Whether the login had more unpacked than it may until now. */
  def isLate(login: String): Boolean = !spent(login).takes(0, lateNs)

  private def spent(login: String): Spent = logins.computeIfAbsent(login, _ => new Spent)

  /** In place of `compression.wrapForInput(compressed, magic, supplier)` in `batch`. */
  def open(
      compression: Compression,
      compressed: ByteBuffer,
      magic: Byte,
      supplier: BufferSupplier,
      batch: DefaultRecordBatch
  ): InputStream = {
    val count = batch.countOrNull
    if (count != null && count > records) {
      throw new RecordTooLargeException(
        s"the batch has $count records: a compressed one may have $records")
    }
    val request = requests.get
    if (request != null) request.open()
    BoundedCleaning.again()
    new BoundedStream(
      compression.wrapForInput(compressed, magic, supplier), ofBatch, headersOfBatch, request)
  }

  /** The announced length of a record, in bytes, before room is made for it. */
  def length(announced: Int): Int = {
    if (announced < 0) throw new InvalidRecordException(s"a record announces $announced bytes")
    if (announced > ofRecord) throw tooLarge(s"a record announces $announced bytes")
    announced
  }

  /** The announced number of a record's headers, before room is made for them. */
  def headers(announced: Int): Unit = requireFew(announced, headersOfRecord)

  /** The same of a record of a compressed batch that is skipped; it counts for the batch. */
  def skipped(announced: Int, from: InputStream): Int = {
    requireFew(announced, ofAppended)
    count(math.max(announced, 0), from)
    announced
  }

  /**
   * Raises for a record that says that it stands elsewhere than at its number in the batch, that it is older
   * than Kafka's time, or has attributes, of which there are none. The administrator may append it. Also
   * for one of a domain that leaves no room for what a copy or a dead letter has beside it.
   */
  def place(batch: RecordBatch, record: Record, number: Int): Unit = record match {
    case plain: DefaultRecord =>
      plain match {
        // its headers were counted as they were skipped
        case _: PartialDefaultRecord => ()
        case whole => requireFew(whole.headers.length, ofAppended)
      }
      if (!isOfMesh && plain.sizeInBytes > ofRecord - spareBytes)
        throw new RecordTooLargeException(
          s"a record has ${plain.sizeInBytes} bytes: it may have ${ofRecord - spareBytes}, compressed or not")
      val fault =
        if (plain.offset - batch.baseOffset != number)
          s"a record is number $number of its batch, and says that it is ${plain.offset - batch.baseOffset}"
        else if (plain.timestamp < RecordBatch.NO_TIMESTAMP) s"a record has the time ${plain.timestamp}"
        else if (plain.attributes != 0) s"a record has the attributes ${plain.attributes}"
        else null
      if (fault != null && !isOfAdmin) throw new InvalidRecordException(fault)
    case _ => ()
  }

  private def isOfAdmin: Boolean = {
    val request = requests.get
    request != null && request.login == admin
  }

  /** Headers of a record that the thread's request appends. */
  private def ofAppended: Int = if (isOfMesh) headersOfRecord else headersOfRecord - spare

  private def isOfMesh: Boolean = {
    val request = requests.get
    request == null || BoundedWork.isOwn(request.login)
  }

  private def requireFew(announced: Int, most: Int): Unit =
    if (announced > most) {
      throw new RecordTooLargeException(s"a record announces $announced headers: it may have $most")
    }

  /** A record was read out of a compressed batch. */
  def read(record: DefaultRecord, from: InputStream): Unit = count(record.headers.length, from)

  private def count(headers: Int, from: InputStream): Unit = from match {
    case bounded: BoundedStream => bounded.countHeaders(headers)
    case _ => ()
  }

  private def tooLarge(what: String) =
    new RecordTooLargeException(s"$what: one of a compressed batch may have $ofRecord")

  /** Raises for blocks of Snappy that announce more than they may: all is one, or has Xerial's frames. */
  def blocks(packed: ByteBuffer): Unit = {
    val compressed = packed.duplicate
    val head = new Array[Byte](snappyHeader.length)
    val framed = compressed.remaining >= 16 && {
      compressed.duplicate.get(head)
      java.util.Arrays.equals(head, snappyHeader)
    }
    if (!framed) requireBlock(compressed)
    else {
      compressed.position(compressed.position + 16)
      while (compressed.remaining >= 4) {
        val size = compressed.getInt
        // a second header would have a negative size
        if (size < 0 || size > compressed.remaining) {
          throw new InvalidRecordException(s"a block of Snappy announces $size bytes")
        }
        requireBlock(compressed.slice(compressed.position, size))
        compressed.position(compressed.position + size)
      }
    }
  }

  /** A block begins with the length that it unpacks to, seven bits a byte. */
  private def requireBlock(block: ByteBuffer): Unit = {
    var unpacked, shift = 0L
    var more = block.hasRemaining
    while (more) {
      val next = block.get
      unpacked |= (next & 0x7fL) << shift
      shift += 7
      more = next < 0 && block.hasRemaining && shift < 35
    }
    if (unpacked > ofRecord) throw tooLarge(s"a block of Snappy announces $unpacked bytes")
  }
}

/** What a request of a login may still unpack, in bytes. */
class Budget(most: Int, val login: String) {
  private var left = most.toLong
  private var charged = left

  /** A batch is to be unpacked. */
  def open(): Unit = {
    settle()
    if (BoundedBatches.isLate(login)) throw new ThrottlingQuotaExceededException(s"$login has batches unpacked too fast")
    take(0)
  }

  /** Counts for the login what was unpacked since; nearly every request unpacks nothing. */
  def settle(): Unit = if (charged != left) {
    BoundedBatches.spend(login, charged - left)
    charged = left
  }

  def take(bytes: Long): Unit = {
    left -= bytes
    if (left < 0) {
      throw new RecordTooLargeException(s"the compressed batches of a request may unpack to $most bytes")
    }
  }
}

/** Ends with RecordTooLargeException where more than `most` bytes or `mostHeaders` headers come out. */
private class BoundedStream(inner: InputStream, most: Int, mostHeaders: Int, request: Budget)
    extends InputStream {
  private val ofHeader = 32
  private var left = most
  private var headersLeft = mostHeaders

  def countHeaders(found: Int): Unit = {
    headersLeft -= found
    if (headersLeft < 0) {
      throw new RecordTooLargeException(s"a compressed batch may have $mostHeaders headers")
    }
    if (request != null) request.take(ofHeader * found.toLong)
  }

  override def read(): Int = {
    val found = inner.read()
    if (found >= 0) count(1)
    found
  }

  override def read(into: Array[Byte], offset: Int, length: Int): Int = {
    val found = inner.read(into, offset, length)
    if (found > 0) count(found)
    found
  }

  override def skip(length: Long): Long = {
    // what is skipped is unpacked as well: no more than one byte above the bound
    val found = inner.skip(math.min(length, left + 1L))
    count(found)
    found
  }

  override def available(): Int = inner.available()

  override def close(): Unit = inner.close()

  private def count(found: Long): Unit = {
    left -= found.toInt
    if (left < 0) throw new RecordTooLargeException(s"a compressed batch may unpack to $most bytes")
    if (request != null) request.take(found)
  }
}
