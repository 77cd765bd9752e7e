package mesh

import java.nio.ByteBuffer

import org.apache.kafka.common.errors.InvalidRequestException
import org.apache.kafka.common.protocol.{ApiKeys, ByteBufferAccessor, Readable}
import org.apache.kafka.common.requests.{AbstractRequest, RequestAndSize}

/**
 * How much a request may name. Kafka makes objects of all of it before it asks who sent it: 17 MiB of empty
 * names are a gigabyte of its heap. [[PatchKafka]] has Kafka call this in place of its own method.
 *
 * Property of the JVM:
 *   mesh.request.fields=<n>   numbers and lengths of a request; a partition of a fetch has seven
 *
 * A connection with a request above that is closed, as one with a request that cannot be read.
 */
object BoundedParsing {
  private val most = Integer.getInteger("mesh.request.fields", 200000).intValue

  def parse(key: ApiKeys, version: Short, from: Readable): RequestAndSize = from match {
    case all: ByteBufferAccessor =>
      // Kafka takes what remains for the size
      val size = all.remaining
      val found = AbstractRequest.parseRequest(key, version, new Counted(all.buffer))
      new RequestAndSize(found.request, size)
    case _ => throw new InvalidRequestException(s"cannot count the fields of a request of $key")
  }

  private class Counted(buffer: ByteBuffer) extends ByteBufferAccessor(buffer) {
    private var left = most

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
  }
}
