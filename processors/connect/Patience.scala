package mesh

import java.io.{FilterInputStream, IOException, InputStream}
import java.net.Socket
import java.util.Iterator
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit.{MILLISECONDS, SECONDS}

/**
 * For how long PostgreSQL's driver waits for a database: for the login as a whole, and for the
 * answer to what it has sent as a whole. The driver has no bound but for a server that is silent,
 * and each byte begins that anew; a task that waits so outlives its connector. [[PatchDriver]] has
 * the driver's stream tell this of what it does.
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

  private val clock = new Thread("database-patience") {
    override def run(): Unit = while (true) {
      Thread.sleep(lookMs)
      val all: Iterator[Patience] = known.keySet.iterator
      while (all.hasNext) if (all.next().isDone()) all.remove()
    }
  }
  clock.setDaemon(true)
  clock.start()
}

/** One connection's. Times are those of `System.nanoTime`. */
final class Patience(socket: Socket) {
  @volatile private var until = System.nanoTime + SECONDS.toNanos(Patience.loginS)
  @volatile private var isOver = false
  @volatile private var isReading = false
  /** Whether TLS is agreed upon, during which nothing is read by way of a watched stream. */
  @volatile private var isGreeted = false
  @volatile private var isLoggedIn = false
  @volatile private var silenceMs = 0L

  def greeted(): Unit = isGreeted = true

  /** A character is sent: a capital one begins a question, and none is sent before the login. */
  def sends(one: Int): Unit = if (one >= 'A' && one <= 'Z') isLoggedIn = true

  /** What was sent is on its way: the answer may take twice as long as a server may be silent. */
  def asked(): Unit = if (isLoggedIn) {
    val most =
      if (silenceMs > 0) MILLISECONDS.toNanos(2 * silenceMs) else SECONDS.toNanos(Patience.answerS)
    until = System.nanoTime + most
  }

  /** The driver bounds a silence; for a look at what has come it does so with a shorter one. */
  def silence(ms: Int): Unit = if (ms > silenceMs) silenceMs = ms

  private[mesh] def reads(): Unit = isReading = true

  private[mesh] def hasRead(): Unit = isReading = false

  private[mesh] def require(): Unit = if (isOver || isLate) {
    isOver = true
    throw new IOException(
      if (isLoggedIn) "the database did not end its answer in time"
      else "the database did not let the connector in within " + Patience.loginS + " seconds")
  }

  /** Whether nothing more is to be looked at; a connection is closed under whoever waits on it. */
  private[mesh] def isDone(): Boolean = {
    if (isLate && (isReading || !isGreeted)) {
      isOver = true
      // not the socket of TLS: to close that waits for who reads
      try socket.close() catch { case _: IOException => }
    }
    isOver || socket.isClosed
  }

  private def isLate: Boolean = System.nanoTime - until > 0
}

private final class Watched(input: InputStream, patience: Patience)
    extends FilterInputStream(input) {
  override def read(): Int = {
    begin()
    try super.read()
    catch { case error: IOException => throw explained(error) }
    finally patience.hasRead()
  }

  override def read(into: Array[Byte], from: Int, most: Int): Int = {
    begin()
    try super.read(into, from, most)
    catch { case error: IOException => throw explained(error) }
    finally patience.hasRead()
  }

  override def skip(most: Long): Long = {
    begin()
    try super.skip(most)
    catch { case error: IOException => throw explained(error) }
    finally patience.hasRead()
  }

  private def begin(): Unit = {
    patience.require()
    patience.reads()
  }

  private def explained(error: IOException): IOException =
    try {
      if (!error.isInstanceOf[java.net.SocketTimeoutException]) patience.require()
      error
    } catch { case told: IOException => told.initCause(error); told }
}
