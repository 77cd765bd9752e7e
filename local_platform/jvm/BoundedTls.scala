package mesh

import java.nio.ByteBuffer
import javax.net.ssl.{SSLEngine, SSLEngineResult, SSLException}
import javax.net.ssl.SSLEngineResult.HandshakeStatus.{FINISHED, NEED_WRAP}
import javax.net.ssl.SSLEngineResult.Status.OK

/**
 * How long a network thread reads from one TLS connection at a time, and how many records without data one may send.
 * Kafka reads until what it waits for is whole or nothing has come: who sends records of a byte, or of none, keeps the
 * thread from all its other connections, without a login too. A handshake that begins anew closes its connection: Java
 * goes on when Kafka has done a task for it, and Kafka, which does none once the first handshake is over, tries for
 * ever. [[PatchKafka]] has Kafka call these methods.
 *
 * Properties of the JVM:
 *   mesh.tls.ms=<n>      after which a connection is left until its next turn
 *   mesh.tls.empty=<n>   records without data of a connection, as those that update its keys, of 128 bytes each; and
 *                        one more for each MiB of data. One more closes it. One that is to be answered counts as ten:
 *                        Java keeps a cipher for each answer until something is sent
 */
object BoundedTls {
  private val sliceNs = Integer.getInteger("mesh.tls.ms", 2).longValue * 1000000L
  private val mostEmpty = Integer.getInteger("mesh.tls.empty", 100).longValue
  private val sizeOfEmpty = 128
  private val sizeOfAsking = 3
  private val mostOfHandshake = 100
  private val again = "a connection begins a handshake anew"
  private val current = new ThreadLocal[Connection]

  private class Connection {
    var ends = 0L
    var isFirst = true
    var empty, bytes = 0L
    var wraps = 0
  }

  /** The thread reads from a connection; returns what is kept of it, which was null before the first time. */
  def begins(kept: AnyRef): AnyRef = {
    val connection = of(kept)
    connection.ends = System.nanoTime + sliceNs
    connection.isFirst = true
    current.set(connection)
    connection
  }

  private def of(kept: AnyRef): Connection = kept match {
    case before: Connection => before
    case _ => new Connection
  }

  /**
   * A record of the first handshake is to be sent; returns what is kept of the connection. SSLException for too many:
   * three thousand changes of keys, which all are to be answered, fit into the record by which the client ends it.
   */
  def shakes(kept: AnyRef): AnyRef = {
    val connection = of(kept)
    connection.wraps += 1
    if (connection.wraps > mostOfHandshake) {
      throw new SSLException(s"a handshake takes more than $mostOfHandshake records")
    }
    connection
  }

  /**
   * In place of how many bytes have come: none, so that it goes on with what it has and then leaves the connection, once
   * its time is over. Not for the first ones, by which it knows that it has something.
   */
  def received(bytes: Int): Int = {
    val connection = current.get
    if (bytes <= 0) bytes
    else if (connection.isFirst) {
      connection.isFirst = false
      bytes
    } else if (System.nanoTime > connection.ends) 0
    else bytes
  }

  /** In place of `engine.unwrap(from, to)`; SSLException for a handshake, and for too many records without data. */
  def unwrap(engine: SSLEngine, from: ByteBuffer, to: ByteBuffer): SSLEngineResult = {
    val result = moved(engine.unwrap(from, to))
    // the status does not show it while something is to be sent, and what comes meanwhile is kept
    if (result.bytesProduced == 0 && engine.getDelegatedTask != null) throw new SSLException(again)
    val connection = current.get
    connection.bytes += result.bytesProduced
    if (result.bytesProduced == 0 && result.bytesConsumed > 0) {
      // tickets, which servers send, are longer
      val size = if (result.getHandshakeStatus == NEED_WRAP) sizeOfAsking else sizeOfEmpty
      connection.empty += (if (engine.getUseClientMode) 1 else 1 + result.bytesConsumed / size)
      if (connection.empty > mostEmpty + (connection.bytes >> 20)) {
        throw new SSLException(s"a connection sends more than $mostEmpty records without data")
      }
    }
    result
  }

  /** In place of `engine.wrap(from, to)`; SSLException where nothing would ever be sent. */
  def wrap(engine: SSLEngine, from: ByteBuffer, to: ByteBuffer): SSLEngineResult = moved(engine.wrap(from, to))

  /** What takes nothing and makes nothing does so the next time, too. */
  private def moved(result: SSLEngineResult): SSLEngineResult = {
    val stands = result.getStatus == OK && result.bytesConsumed == 0 && result.bytesProduced == 0
    // which is said once, of the first one
    if (stands && result.getHandshakeStatus != FINISHED) throw new SSLException(again)
    result
  }
}
