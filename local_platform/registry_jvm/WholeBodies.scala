package io.quarkus.undertow.runtime

import java.util

import io.vertx.core.{AsyncResult, Context, Handler, Vertx}
import io.vertx.core.buffer.Buffer
import io.vertx.ext.web.RoutingContext

/**
 * Reads the bodies of requests before a thread is taken for them. The registry has eight threads, and
 * each waited for a body, of which a client may send a byte a second.
 *
 * What bodies hold together is bounded, from their first byte to the end of the answer. Above that new
 * ones wait, and those that were begun some time ago are given up, their connections closed, so that
 * nobody holds the room by bodies that do not end. One that takes longer than `longestMs` is given up
 * anyway. A part of a body counts as `leastOfPart` at least: each takes the thread that reads for all some time, however
 * short it is.
 *
 * Nothing of Scala's own library is used, which the registry does not have.
 */
object WholeBodies {
  private val most = 32L << 20
  private val longestMs = 30000L
  private val leastOfPart = 16 << 10
  /** A body that was begun so long ago is given up where others wait. */
  private val patienceNs = 1000000000L
  private val lookMs = 250L
  private val limit = "io.quarkus.max-request-size"
  private val tooLarge = 413

  /** Those that are not whole yet, in the order in which they were begun. */
  private val begun = new util.LinkedHashSet[Body]()
  /** Those of which nothing is read now: not begun yet, or above the bound. */
  private val waiting = new util.ArrayDeque[Body]()
  private var held = 0L
  private var readers = 0
  private var looks = false

  /** Whether the request waits for its body; then `handler` is given it again when that is whole. */
  def waits(handler: Handler[RoutingContext], context: RoutingContext): Boolean = {
    val request = context.request
    val announced = request.getHeader("Transfer-Encoding") != null || length(request.getHeader("Content-Length"))
    if (!announced || context.getBody != null || request.isEnded) false
    else {
      new Body(handler, context).begin()
      true
    }
  }

  private def length(header: String): Boolean = header != null && header != "0"

  /** One body; its methods that end in a change of what is held are called in any thread. */
  private final class Body(handler: Handler[RoutingContext], context: RoutingContext) {
    private val request = context.request
    val vertx: Vertx = context.vertx
    private val loop: Context = vertx.getOrCreateContext
    private val whole = Buffer.buffer()
    private val longest = context.get[java.lang.Long](limit)
    private var timer = -1L
    /** Nothing of it is read any more: it is whole, or given up. */
    @volatile private var isOver = false
    var size = 0L
    var sinceNs = 0L
    var isReading, isReleased = false

    def begin(): Unit = {
      request.pause()
      context.addEndHandler(new Handler[AsyncResult[Void]] {
        override def handle(end: AsyncResult[Void]): Unit = release(Body.this)
      })
      request.exceptionHandler(new Handler[Throwable] {
        override def handle(fault: Throwable): Unit = over()
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
      override def handle(nothing: Void): Unit = if (!isOver) request.resume()
    })

    def pause(): Unit = request.pause()

    /** Close the connection, and let go what was read of it. */
    def giveUp(): Unit = if (!isOver) {
      over()
      request.connection.close()
    }

    private def over(): Unit = {
      isOver = true
      vertx.cancelTimer(timer)
      release(this)
    }

    private def took(part: Buffer): Unit = if (!isOver) {
      whole.appendBuffer(part)
      if (longest != null && whole.length > longest.longValue) {
        over()
        request.resume()
        context.response.putHeader("Connection", "close").setStatusCode(tooLarge).end()
      } else hold(this, Math.max(part.length, leastOfPart))
    }

    private def ended(): Unit = if (!isOver) {
      isOver = true
      vertx.cancelTimer(timer)
      isRead(this)
      context.setBody(whole)
      handler.handle(context)
    }
  }

  private def arrived(body: Body): Unit = {
    look(body)
    val goes = synchronized {
      val fits = hasRoom && waiting.isEmpty
      if (fits) goesOn(body) else waiting.addFirst(body)
      fits
    }
    if (goes) body.resume()
  }

  /** One is read in any case: those that wait may hold all of it. */
  private def hasRoom: Boolean = held < most || readers == 0

  private def goesOn(body: Body): Unit = {
    if (body.sinceNs == 0) body.sinceNs = System.nanoTime
    begun.add(body)
    body.isReading = true
    readers += 1
  }

  private def stops(body: Body): Unit = {
    if (body.isReading) readers -= 1
    body.isReading = false
  }

  /** So much was read of it; above the bound another one is given up, or it waits. */
  private def hold(body: Body, bytes: Int): Unit = {
    var waits = false
    val slowest = synchronized {
      if (!body.isReleased) {
        body.size += bytes
        held += bytes
      }
      val found = if (held > most) slow() else null
      if (held > most && found == null && body.isReading && readers > 1) {
        stops(body)
        waiting.addLast(body)
        waits = true
      }
      found
    }
    if (waits) body.pause()
    if (slowest != null) slowest.giveUp()
  }

  /** The one that was begun first, if that is long ago. */
  private def slow(): Body = {
    val all = begun.iterator
    val first = if (all.hasNext) all.next() else null
    if (first != null && System.nanoTime - first.sinceNs > patienceNs) first else null
  }

  private def isRead(body: Body): Unit = {
    val wasBegun = synchronized {
      stops(body)
      begun.remove(body)
    }
    if (wasBegun) next()
  }

  private def release(body: Body): Unit = {
    val isFirst = synchronized {
      stops(body)
      begun.remove(body)
      waiting.remove(body)
      val first = !body.isReleased
      if (first) held -= body.size
      body.isReleased = true
      first
    }
    if (isFirst) next()
  }

  /** Go on with those that wait, the newest first, as far as there is room. */
  private def next(): Unit = {
    var going = true
    while (going) {
      val body = synchronized {
        val found = if (hasRoom) waiting.poll() else null
        if (found != null) goesOn(found)
        found
      }
      if (body == null) going = false else body.resume()
    }
  }

  /** Look again and again whether somebody waits for those that are slow. */
  private def look(body: Body): Unit = {
    val isFirst = synchronized {
      val first = !looks
      looks = true
      first
    }
    if (isFirst) body.vertx.setPeriodic(lookMs, new Handler[java.lang.Long] {
      override def handle(id: java.lang.Long): Unit = makeRoom()
    })
  }

  private def makeRoom(): Unit = {
    var going = true
    while (going) {
      val slowest = synchronized(if (waiting.isEmpty || held < most) null else slow())
      if (slowest == null) going = false else slowest.giveUp()
    }
  }
}
