package io.quarkus.undertow.runtime

import java.util
import java.util.concurrent.{ExecutorService, Future, RejectedExecutionException}
import java.util.concurrent.atomic.AtomicBoolean
import java.util.function.Consumer

import io.quarkus.security.identity.SecurityIdentity
import io.quarkus.vertx.http.runtime.CrowdedConnections
import io.quarkus.vertx.http.runtime.security.QuarkusHttpUser
import io.vertx.core.{AsyncResult, Context, Handler, Vertx}
import io.vertx.core.buffer.Buffer
import io.vertx.core.http.HttpConnection
import io.vertx.core.net.impl.ConnectionBase
import io.vertx.ext.web.RoutingContext

/**
 * Reads the bodies of requests before a thread is taken for them. The registry has eight threads, and
 * each waited for a body, of which a client may send a byte a second.
 *
 * Room for what a body may become is taken before its first byte is read, and is held until its request
 * is answered, whether or not the client is still there; those without room wait, the newest first. What is read is never
 * paused, so that it is slow by its client alone: a body that comes more slowly than `leastPerS` is given up where others wait
 * for its room, its connection closed. So is, anyway, one that takes longer than `longestMs`, and one
 * in more parts than its bytes need: each takes the thread that reads for all some time. Small bodies, as most
 * schemas are, have a room of their own.
 *
 * Nothing is read from a connection whose request waits or is worked on: Vert.x keeps all requests that a client
 * sends behind it. No thread waits until an answer is read: see [[UnreadAnswers]].
 *
 * Requests without a login have seven of the eight threads at most, of which one is for what is not a lookup of schemas,
 * such as lists, and two for large bodies.
 *
 * Nothing of Scala's own library is used, which the registry does not have.
 */
object WholeBodies {
  private val longestMs = 30000L
  private val patienceNs = 2000000000L
  private val leastPerS = 128 << 10
  private val freeParts = 256
  /** A body of more bytes has another part for each of these. */
  private val leastOfPart = 512
  /** Each is one of the connections that the registry has, and its client may be gone unnoticed. */
  private val mostWaiting = 50
  private val lookMs = 250L
  private val limit = "io.quarkus.max-request-size"
  /** Whether a request has a login that is known. */
  private val owned = "mesh.owned"
  private val closesMs = 1000L
  private val tooLarge = 413
  private val unavailable = 503

  private val lookups = new Lane(4)
  private val others = new Lane(1)
  private val small = new Room(8 << 20, lookups)
  /** One of 2 MB takes 20 MB of the heap while it is compared, and a thread for a second. */
  private val large = new Room(24 << 20, new Lane(2))
  /** Of requests with a login, which are the mesh's own. */
  private val own = new Lane(64)
  private val ownSmall = new Room(8 << 20, own)
  private val ownLarge = new Room(12 << 20, new Lane(2))
  /** What is looked up without a login. */
  private val lookedUp = util.List.of("/apis/ccompat/v7/schemas/ids/", "/apis/ccompat/v7/subjects/")
  private val mostOfSmall = 64 << 10
  /** What a body takes at least, for what is around it. */
  private val leastOfBody = 4 << 10
  private var looks = false
  private var lookedNs = 0L
  /** The request that this thread hands to another, and its body if it has one. */
  private val handed = new ThreadLocal[RoutingContext]
  private val current = new ThreadLocal[Body]

  /**
   * Whether the request is answered, or waits for its body; then `handler` is given it again when that is
   * whole.
   */
  def waits(handler: Handler[RoutingContext], context: RoutingContext): Boolean = {
    val request = context.request
    CrowdedConnections.asks(request.connection)
    val isInParts = request.getHeader("Transfer-Encoding") != null
    val announced = length(request.getHeader("Content-Length"))
    val hasBody = (isInParts || announced != 0) && context.getBody == null && !request.isEnded
    val isKnown = request.getHeader("Authorization") == null || context.get[java.lang.Boolean](owned) != null
    if (!Journal.isRead) {
      Journal.unavailable(context)
      isAnswered(context)
      true
    } else if (!isKnown) {
      identify(handler, context)
      true
    } else if (hasBody) {
      val limit = longest(context)
      new Body(handler, context, limit, if (isInParts || announced > limit) limit else announced, isOwn(context)).begin()
      true
    } else {
      handed.set(context)
      false
    }
  }

  /** Look who it is of, and give it to the handler again. */
  private def identify(handler: Handler[RoutingContext], context: RoutingContext): Unit = {
    context.request.pause()
    reads(context.request.connection, false)
    val loop = context.vertx.getOrCreateContext
    def go(isOwn: Boolean): Unit = loop.runOnContext(new Handler[Void] {
      override def handle(nothing: Void): Unit =
        // as a password that is wrong is
        if (context.response.ended || context.response.closed) isAnswered(context)
        else {
          context.put(owned, java.lang.Boolean.valueOf(isOwn))
          if (isOwn) CrowdedConnections.isOwn(context.request.connection)
          reads(context.request.connection, true)
          handler.handle(context)
        }
    })
    QuarkusHttpUser.getSecurityIdentity(context, null).subscribe().`with`(
      new Consumer[SecurityIdentity] {
        override def accept(found: SecurityIdentity): Unit = go(found != null && !found.isAnonymous)
      },
      new Consumer[Throwable] {
        override def accept(fault: Throwable): Unit = go(false)
      }
    )
  }

  private def isOwn(context: RoutingContext): Boolean = {
    val found = context.get[java.lang.Boolean](owned)
    found != null && found.booleanValue
  }

  /** The connection ends, once its client has had time to read what it was answered. */
  private def isAnswered(context: RoutingContext): Unit = {
    reads(context.request.connection, true)
    context.request.resume()
    // Vert.x reads on, however much comes
    context.vertx.setTimer(closesMs, new Handler[java.lang.Long] {
      override def handle(id: java.lang.Long): Unit = UnreadAnswers.close(context.request.connection)
    })
  }

  /**
   * Have the request worked on, as soon as few enough of its size are: its room is held until that is
   * done.
   */
  def submit(threads: ExecutorService, request: Runnable): Future[_] = {
    val body = current.get
    val context = handed.get
    if (UnreadAnswers.has(context.request.connection)) {
      // it asks on and does not read what it is answered
      UnreadAnswers.close(context.request.connection)
      null
    } else {
      val work = new Work(threads, request, context, body, if (body == null) laneFor(context) else body.room.lane)
      if (synchronized(work.lane.works(work))) work.submit() else null
    }
  }

  /** Of a request without a body. */
  private def laneFor(context: RoutingContext): Lane =
    if (isOwn(context)) own else if (isLookup(context.request.path)) lookups else others

  private def isLookup(path: String): Boolean = {
    var found = false
    val all = lookedUp.iterator
    while (!found && path != null && all.hasNext) {
      val one = all.next()
      found = path.startsWith(one) && path.length > one.length && isPlain(path)
    }
    found
  }

  /** Whether it can be read in one way alone. */
  private def isPlain(path: String): Boolean = {
    var at = 0
    while (at < path.length && isPlain(path.charAt(at))) at += 1
    at == path.length && !path.contains("/.") && !path.contains("//")
  }

  private def isPlain(one: Char): Boolean =
    one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9' ||
      one == '/' || one == '-' || one == '_' || one == '.'

  private final class Work(
      threads: ExecutorService, request: Runnable, context: RoutingContext, body: Body, val lane: Lane)
      extends Runnable {
    private val connection = context.request.connection
    val path: String = String.valueOf(context.request.path)
    if (body != null) body.isGiven = true
    reads(connection, false)
    UnreadAnswers.keeps(context.response)
    look(context.vertx)
    private val timer = context.vertx.setTimer(longestMs, new Handler[java.lang.Long] {
      override def handle(id: java.lang.Long): Unit = UnreadAnswers.close(connection)
    })

    def submit(): Future[_] =
      try threads.submit(this)
      catch {
        case full: RejectedExecutionException =>
          val following = done()
          context.fail(unavailable, full)
          if (following != null) following.begin()
          null
      }

    private def begin(): Unit = submit()

    /** It, and what follows it in its lane. */
    override def run(): Unit = {
      var work = this
      while (work != null) work = work.once()
    }

    /** The work that follows this one. */
    private def once(): Work = {
      try {
        // it may have waited for longer than its client
        if (!context.response.closed) request.run()
        UnreadAnswers.written(connection)
      } catch {
        case fault: Throwable => fail(fault)
      }
      done()
    }

    private def fail(fault: Throwable): Unit =
      try context.fail(fault)
      catch {
        case _: Throwable => UnreadAnswers.close(connection)
      }

    /** The work that this one's place in the lane is for now. */
    private def done(): Work = {
      try {
        context.vertx.cancelTimer(timer)
        reads(connection, true)
        if (body != null) release(body)
      } catch {
        case _: Throwable => UnreadAnswers.close(connection)
      }
      WholeBodies.synchronized(lane.worked())
    }
  }

  /** Whether what comes by the connection is read. */
  private def reads(connection: HttpConnection, on: Boolean): Unit =
    connection.asInstanceOf[ConnectionBase].channel.config.setAutoRead(on)

  /** Netty has refused what is no number. */
  private def length(header: String): Long = if (header == null) 0 else java.lang.Long.parseLong(header.trim)

  private def longest(context: RoutingContext): Long = {
    val configured = context.get[java.lang.Long](limit)
    if (configured == null) 2 << 20 else configured.longValue
  }

  /**
   * So many requests at work together; those that wait are begun by turns of their paths, since a large schema that is asked
   * for again and again takes a thread for some tenths of a second each time, and of one path the newest and the oldest by
   * turns: whose client is gone is not noticed. What is in it is used under the lock of `WholeBodies`.
   */
  private final class Lane(most: Int) {
    private val ready = new util.LinkedHashMap[String, util.ArrayDeque[Work]]()
    private var atWork = 0
    private var lastFirst = true

    /** Whether it is worked on now; later otherwise. */
    def works(work: Work): Boolean = {
      val goes = atWork < most
      if (goes) atWork += 1
      else {
        if (!ready.containsKey(work.path)) waits(work.path, new util.ArrayDeque[Work]())
        ready.get(work.path).addLast(work)
      }
      goes
    }

    /** As the last of the paths. */
    private def waits(path: String, same: util.ArrayDeque[Work]): Unit = ready.put(path, same)

    /** The work that follows one that is done. */
    def worked(): Work = {
      val turns = ready.entrySet.iterator
      if (turns.hasNext) {
        val turn = turns.next()
        turns.remove()
        val following = if (lastFirst) turn.getValue.pollLast() else turn.getValue.poll()
        lastFirst = !lastFirst
        if (!turn.getValue.isEmpty) waits(turn.getKey, turn.getValue)
        following
      } else {
        atWork -= 1
        null
      }
    }
  }

  /** So many bytes for bodies together; what is in it is used under the lock of `WholeBodies`. */
  private final class Room(most: Long, val lane: Lane) {
    /** Those that are read, in the order in which they were begun. */
    val begun = new util.LinkedHashSet[Body]()
    private val waiting = new util.ArrayDeque[Body]()
    private var held = 0L

    def takes(body: Body): Boolean = {
      val fits = held + body.size <= most
      if (fits) begins(body)
      fits
    }

    private def begins(body: Body): Unit = {
      begun.add(body)
      body.sinceNs = System.nanoTime
      held += body.size
    }

    def leaves(body: Body): Unit = {
      waiting.remove(body)
      begun.remove(body)
      if (body.sinceNs != 0) held -= body.size
    }

    /** Has it wait; the one that waits longest has to go where they are too many. */
    def queue(body: Body): Body = {
      waiting.addFirst(body)
      if (waiting.size > mostWaiting) waiting.pollLast() else null
    }

    /** It is whole, and may be shorter than it was to become. */
    def keeps(body: Body, size: Long): Unit = {
      begun.remove(body)
      if (!body.isReleased) held -= body.size - size
      body.size = size
    }

    /** The body that waits and now has room. */
    def next(): Body = {
      val first = waiting.peek
      if (first != null && takes(first)) waiting.poll() else null
    }

    /** A body that is slow while others wait. */
    def slow(): Body = {
      val all = begun.iterator
      var found: Body = null
      while (found == null && !waiting.isEmpty && all.hasNext) {
        val body = all.next()
        if (body.isSlow) found = body
      }
      found
    }
  }

  /** One body of at most `size` bytes. */
  private final class Body(handler: Handler[RoutingContext], context: RoutingContext, longest: Long, expected: Long, isOwn: Boolean) {
    private val request = context.request
    val vertx: Vertx = context.vertx
    var size: Long = Math.max(expected, leastOfBody)
    val room: Room = roomFor(size, isOwn)
    private val loop: Context = vertx.getOrCreateContext
    private var whole: Buffer = _
    private var parts = 0
    private var timer = -1L
    /** Nothing of it is read any more: it is whole, or given up. */
    private val isOver = new AtomicBoolean
    @volatile private var read = 0L
    /** Its request is with a thread, or waits for one; the client may be gone. */
    @volatile var isGiven = false
    /** When it had room; 0 before. */
    var sinceNs = 0L
    var isReleased = false

    def begin(): Unit = {
      request.pause()
      reads(request.connection, false)
      context.addEndHandler(new Handler[AsyncResult[Void]] {
        override def handle(end: AsyncResult[Void]): Unit = if (!isGiven) release(Body.this)
      })
      request.exceptionHandler(new Handler[Throwable] {
        override def handle(fault: Throwable): Unit = if (isFirst) over()
      })
      request.handler(new Handler[Buffer] {
        override def handle(part: Buffer): Unit = took(part)
      })
      request.endHandler(new Handler[Void] {
        override def handle(nothing: Void): Unit = ended()
      })
      timer = vertx.setTimer(longestMs, new Handler[java.lang.Long] {
        override def handle(id: java.lang.Long): Unit = giveUp()
      })
      arrived(this)
    }

    def resume(): Unit = loop.runOnContext(new Handler[Void] {
      override def handle(nothing: Void): Unit = if (!isOver.get) {
        reads(request.connection, true)
        request.resume()
      }
    })

    def isSlow: Boolean = {
      val tookNs = System.nanoTime - sinceNs
      tookNs > patienceNs && read < tookNs / 1000000L * leastPerS / 1000L
    }

    /** Close the connection, and let go what was read of it. */
    def giveUp(): Unit = if (isFirst) {
      over()
      UnreadAnswers.close(request.connection)
    }

    /** Whether nothing ended it before this. */
    private def isFirst: Boolean = isOver.compareAndSet(false, true)

    private def over(): Unit = {
      vertx.cancelTimer(timer)
      release(this)
    }

    private def took(part: Buffer): Unit = if (!isOver.get) {
      if (whole == null) whole = Buffer.buffer(expected.toInt)
      whole.appendBuffer(part)
      read = whole.length
      parts += 1
      if (read > longest) {
        if (isFirst) refuse()
      } else if (parts > freeParts + read / leastOfPart) giveUp()
    }

    private def refuse(): Unit = {
      over()
      context.response.putHeader("Connection", "close").setStatusCode(tooLarge).end()
      isAnswered(context)
    }

    private def ended(): Unit = if (isFirst) {
      vertx.cancelTimer(timer)
      isRead(this, Math.max(read, leastOfBody))
      context.setBody(if (whole == null) Buffer.buffer() else whole)
      current.set(this)
      try handler.handle(context)
      finally current.remove()
    }
  }

  private def roomFor(size: Long, isOwn: Boolean): Room =
    if (size <= mostOfSmall) { if (isOwn) ownSmall else small }
    else if (isOwn) ownLarge
    else large

  private def arrived(body: Body): Unit = {
    look(body.vertx)
    var surplus: Body = null
    val fits = synchronized {
      val found = body.room.takes(body)
      if (!found) surplus = body.room.queue(body)
      found
    }
    if (fits) body.resume()
    if (surplus != null) surplus.giveUp()
  }

  private def isRead(body: Body, size: Long): Unit = {
    synchronized(body.room.keeps(body, size))
    next(body.room)
  }

  private def release(body: Body): Unit = {
    val isFirst = synchronized {
      val first = !body.isReleased
      if (first) body.room.leaves(body)
      body.isReleased = true
      first
    }
    if (isFirst) next(body.room)
  }

  /** Begin those that wait, as far as there is room. */
  private def next(room: Room): Unit = {
    var body = synchronized(room.next())
    while (body != null) {
      body.resume()
      body = synchronized(room.next())
    }
  }

  /** Look again and again whether somebody waits for those that are slow, and what is not read. */
  private def look(vertx: Vertx): Unit = {
    val isFirst = synchronized {
      val first = !looks
      looks = true
      first
    }
    if (isFirst) vertx.setPeriodic(lookMs, new Handler[java.lang.Long] {
      override def handle(id: java.lang.Long): Unit = {
        val beforeNs = lookedNs
        val nowNs = System.nanoTime
        lookedNs = nowNs
        UnreadAnswers.look()
        // after it stood still, what came meanwhile is still to be read
        if (nowNs - beforeNs < 4 * lookMs * 1000000L) {
          makeRoom(small)
          makeRoom(large)
          makeRoom(ownSmall)
          makeRoom(ownLarge)
        }
      }
    })
  }

  private def makeRoom(room: Room): Unit = {
    var slowest = synchronized(room.slow())
    while (slowest != null) {
      slowest.giveUp()
      slowest = synchronized(room.slow())
    }
  }
}
