package mesh

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util

import org.apache.kafka.common.errors.InvalidRequestException
import org.apache.kafka.common.protocol.{ApiKeys, ByteBufferAccessor, Readable}
import org.apache.kafka.common.requests.{AbstractRequest, RequestAndSize, RequestContext}
import org.apache.kafka.common.utils.ByteUtils

/**
 * How much a request may name. Kafka makes objects of all of it before it asks who sent it: 17 MiB of empty
 * names are a gigabyte of its heap. [[PatchKafka]] has Kafka call this in place of its own method.
 *
 * Properties of the JVM:
 *   mesh.request.fields=<n>         numbers and texts of a request, a text with its length two
 *   mesh.request.fields.admin=<n>   the same of the administrator's, other than what brokers tell each other of
 *                                   transactions, and of what consumers of the mesh ask for: a sink of some
 *                                   thousand partitions names all of them each time
 *   mesh.request.names=<n>          texts with the same hash, behind the first so many: Kafka looks through
 *                                   them all for each one more when it answers. Of domains' logins only,
 *                                   and not of offsets that are committed
 *
 * A connection with a request above that is closed, as one with a request that cannot be read.
 */
object BoundedParsing {
  private val most = Integer.getInteger("mesh.request.fields", 10000).intValue
  private val mostOfAdmin = Integer.getInteger("mesh.request.fields.admin", 200000).intValue
  private val sameHash = Integer.getInteger("mesh.request.names", 250).intValue
  private val admin = "admin"
  // the version of a header from which on it may have fields more
  private val withTags = 2
  private val mostTags = 20
  private val unknown = "ANONYMOUS"
  private val ofConsumers = Set(
    ApiKeys.FETCH, ApiKeys.LIST_OFFSETS, ApiKeys.OFFSET_COMMIT, ApiKeys.OFFSET_FETCH,
    ApiKeys.OFFSET_FOR_LEADER_EPOCH)
  // brokers send each other what all clients together have begun, as the administrator
  private val between = Set(ApiKeys.WRITE_TXN_MARKERS, ApiKeys.ADD_PARTITIONS_TO_TXN)

  /**
   * Before a header is read: Kafka keeps each field of it that it does not know, in the thread that reads for many
   * connections. No client sends any.
   */
  def header(request: ByteBuffer): Unit = {
    val rest = request.duplicate()
    val tags = try {
      val key = rest.getShort
      val version = rest.getShort
      rest.getInt
      if (!ApiKeys.hasId(key) || ApiKeys.forId(key).requestHeaderVersion(version) < withTags) 0
      else {
        val client = rest.getShort
        rest.position(rest.position() + math.max(0, client.toInt))
        ByteUtils.readUnsignedVarint(rest)
      }
    } catch {
      case unreadable: RuntimeException =>
        throw new InvalidRequestException(s"the header cannot be read: ${unreadable.getMessage}")
    }
    if (tags < 0 || tags > mostTags) throw new InvalidRequestException(s"a header may have $mostTags fields more")
  }

  /** In place of `AbstractRequest.parseRequest(key, version, from)`. */
  def parse(key: ApiKeys, version: Short, from: Readable, context: RequestContext): RequestAndSize = from match {
    case all: ByteBufferAccessor =>
      // Kafka takes what remains for the size
      val size = all.remaining
      val login = context.principal.getName
      val counted = new Counted(
        all.buffer,
        mostOf(login, key),
        if (BoundedWork.isOwn(login) || commits(key)) Int.MaxValue else sameHash)
      BoundedWork.reading(login) {
        BoundedTables.begin(BoundedWork.isOwn(login))
        try new RequestAndSize(AbstractRequest.parseRequest(key, version, counted).request, size)
        finally BoundedTables.end()
      }
    case _ => throw new InvalidRequestException(s"cannot count the fields of a request of $key")
  }

  private def mostOf(login: String, key: ApiKeys): Int =
    if (login == admin) { if (between(key)) Int.MaxValue else mostOfAdmin }
    else if (ofConsumers(key) && login != unknown && BoundedWork.isOwn(login)) mostOfAdmin
    else most

  /** Numbers and texts of what stands within a request as bytes. */
  val mostInside: Int = 5 * most

  /** What `read` makes of bytes within a request. */
  def inner[A](bytes: Array[Byte], login: String)(read: Readable => A): A = {
    val counted = new Counted(
      ByteBuffer.wrap(bytes), if (BoundedWork.isOwn(login)) mostOfAdmin else mostInside, Int.MaxValue)
    BoundedTables.begin(BoundedWork.isOwn(login))
    try read(counted) finally BoundedTables.end()
  }

  /** Offsets have texts beside them, which are often the same. */
  private def commits(key: ApiKeys): Boolean =
    key == ApiKeys.OFFSET_COMMIT || key == ApiKeys.TXN_OFFSET_COMMIT

  private class Counted(buffer: ByteBuffer, most: Int, sameHash: Int) extends ByteBufferAccessor(buffer) {
    private var left = most
    private var texts = 0
    private lazy val hashes = new util.HashMap[Int, Int]

    private def count(): Unit = {
      left -= 1
      if (left < 0) throw new InvalidRequestException(s"a request may have $most fields")
    }

    // room is made for the elements that a list announces, if so many bytes are left
    override def remaining(): Int = math.min(super.remaining(), left)

    override def readByte(): Byte = { count(); super.readByte() }
    override def readShort(): Short = { count(); super.readShort() }
    override def readInt(): Int = { count(); super.readInt() }
    override def readLong(): Long = { count(); super.readLong() }
    override def readDouble(): Double = { count(); super.readDouble() }
    override def readUnsignedVarint(): Int = { count(); super.readUnsignedVarint() }
    override def readVarint(): Int = { count(); super.readVarint() }
    override def readVarlong(): Long = { count(); super.readVarlong() }
    // names and other texts
    override def readArray(size: Int): Array[Byte] = {
      count()
      val text = super.readArray(size)
      texts += 1
      // hardly any request names so many
      if (texts > sameHash && hashes.merge(new String(text, UTF_8).hashCode, 1, _ + _) > sameHash) {
        throw new InvalidRequestException(s"a request names more than $sameHash texts of the same hash")
      }
      text
    }
  }
}
