package mesh

import java.io.{FilterInputStream, FilterOutputStream, IOException, InputStream, OutputStream}
import java.net.Socket
import java.util.Iterator
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit.{MILLISECONDS, SECONDS}

/**
 * For how long a database's driver waits for it: for the login as a whole, and for a question as a
 * whole, from its first byte to the last one of its answer. A driver has no bound but for a server
 * that is silent, and each byte begins that anew; for one that does not read it has none. A task
 * that waits so outlives its connector. [[PatchDriver]] has PostgreSQL's driver say what it does.
 *
 * Who waits for longer has the connection closed, and the driver ends with an IOException.
 * As for [[Answers]], nothing of Scala's own library is used.
 */
object Patience {
  private[mesh] val loginS = 60L
  /** An answer to a driver that waits for ever. */
  private[mesh] val answerS = 3600L
  private val known = new ConcurrentHashMap[Patience, Patience]
  private val lookMs = 1000L

  /** A stream's, made with its first socket; another one is the same connection within TLS. */
  def of(socket: Socket, before: Patience): Patience =
    if (before != null) before
    else {
      val made = new Patience(socket)
      known.put(made, made)
      made
    }

  def watched(input: InputStream, patience: Patience): InputStream = new Watched(input, patience)

  def watched(output: OutputStream, patience: Patience): OutputStream =
    new WatchedOutput(output, patience)

  private val clock = new Thread("database-patience") {
    override def run(): Unit = while (true)
      try {
        Thread.sleep(lookMs)
        val all: Iterator[Patience] = known.keySet.iterator
        while (all.hasNext) if (isDone(all.next())) all.remove()
        // a look that fails, as with a full heap, is not the last one
      } catch { case _: Throwable => }
  }
  clock.setDaemon(true)
  clock.start()

  /** One that fails keeps no other from being looked at. */
  private def isDone(one: Patience): Boolean =
    try one.isDone() catch { case _: Throwable => false }
}

/** One connection's. Times are those of `System.nanoTime`. */
final class Patience(socket: Socket) {
  @volatile private var until = System.nanoTime + SECONDS.toNanos(Patience.loginS)
  @volatile private var isOver = false
  @volatile private var isReading = false
  @volatile private var isWriting = false
  /** Whether TLS is agreed upon, during which nothing is read by way of a watched stream. */
  @volatile private var isGreeted = false
  @volatile private var isLoggedIn = false
  /** Whether a question has no whole answer: what the driver sends then is part of it. */
  @volatile private var isOpen = false
  @volatile private var silenceMs = 0L

  def greeted(): Unit = isGreeted = true

  /**
   * A character is sent: a capital one begins a question, and none is sent before the login. A server
   * may make the driver send more of them without an answer, but for those of a stream of changes.
   */
  def sends(one: Int): Unit = {
    if (one >= 'A' && one <= 'Z') isLoggedIn = true
    if (one == 'd') isOpen = false
  }

  /** A character has come: one says that the answer is whole. */
  def receives(one: Int): Unit = if (one == 'Z') isOpen = false

  /** The driver bounds a silence; for a look at what has come it does so with a shorter one. */
  def silence(ms: Int): Unit = if (ms > silenceMs) silenceMs = ms

  /** The first bytes of a question: it and its answer may take twice as long as a silence. */
  private def asks(): Unit = if (isLoggedIn && !isOpen) {
    isOpen = true
    val most =
      if (silenceMs > 0) MILLISECONDS.toNanos(2 * silenceMs) else SECONDS.toNanos(Patience.answerS)
    until = System.nanoTime + most
  }

  private[mesh] def reads(): Unit = {
    require()
    isReading = true
  }

  private[mesh] def hasRead(): Unit = isReading = false

  private[mesh] def writes(): Unit = {
    asks()
    require()
    isWriting = true
  }

  private[mesh] def hasWritten(): Unit = isWriting = false

  private[mesh] def require(): Unit = if (isOver || isLate) {
    isOver = true
    throw new IOException(
      if (isLoggedIn) "the database did not take a question and end its answer in time"
      else "the database did not let the connector in within " + Patience.loginS + " seconds")
  }

  /** Whether nothing more is to be looked at; a connection is closed under whoever waits on it. */
  private[mesh] def isDone(): Boolean = {
    // who waits first: the time of a question is set before its bytes are written
    if ((isReading || isWriting || !isGreeted) && isLate) isOver = true
    // not the socket of TLS: to close that waits for who reads
    if (isOver) try socket.close() catch { case _: IOException => }
    isOver || socket.isClosed
  }

  private[mesh] def explained(error: IOException): IOException =
    try {
      if (!error.isInstanceOf[java.net.SocketTimeoutException]) require()
      error
    } catch { case told: IOException => told.initCause(error); told }

  private def isLate: Boolean = System.nanoTime - until > 0
}

private class Watched(input: InputStream, patience: Patience)
    extends FilterInputStream(input) {
  override def read(): Int = {
    patience.reads()
    try super.read()
    catch { case error: IOException => throw patience.explained(error) }
    finally patience.hasRead()
  }

  override def read(into: Array[Byte], from: Int, most: Int): Int = {
    patience.reads()
    try super.read(into, from, most)
    catch { case error: IOException => throw patience.explained(error) }
    finally patience.hasRead()
  }

  override def skip(most: Long): Long = {
    patience.reads()
    try super.skip(most)
    catch { case error: IOException => throw patience.explained(error) }
    finally patience.hasRead()
  }
}

private class WatchedOutput(output: OutputStream, patience: Patience)
    extends FilterOutputStream(output) {
  override def write(one: Int): Unit = {
    val bytes = new Array[Byte](1)
    bytes(0) = one.toByte
    write(bytes, 0, 1)
  }

  override def write(bytes: Array[Byte], from: Int, count: Int): Unit = {
    patience.writes()
    try output.write(bytes, from, count)
    catch { case error: IOException => throw patience.explained(error) }
    finally patience.hasWritten()
  }
}
