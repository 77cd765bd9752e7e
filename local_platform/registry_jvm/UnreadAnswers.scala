package io.quarkus.undertow.runtime

import java.util

import io.netty.channel.{Channel, ChannelOutboundInvoker}
import io.vertx.core.http.{HttpConnection, HttpServerResponse}
import io.vertx.core.net.impl.ConnectionBase

/**
 * Keeps answers that their clients have not read. A thread of the registry writes without waiting for that; where together they
 * are more than `most` bytes, the connection that has some for longest is closed, and so is one that has some for
 * `longestMs`.
 *
 * Nothing of Scala's own library is used, which the registry does not have.
 */
object UnreadAnswers {
  private val most = 32L << 20
  private val longestMs = 30000L
  /** What Netty counts for the end of an answer, and more. */
  private val end = 4L << 10
  /** Of one answer; with more, a thread waits. */
  private val mostOfOne = 4 << 20
  /** Since when they have some (System.nanoTime), the longest first; under the lock of this object. */
  private val unread = new util.LinkedHashMap[Channel, java.lang.Long]()

  /** All of it may be written before any of it is read. */
  def keeps(answer: HttpServerResponse): Unit = answer.setWriteQueueMaxSize(mostOfOne)

  /** Whether some of what it was answered before is not read yet, beyond the end that comes behind its last byte. */
  def has(connection: HttpConnection): Boolean = bytes(channel(connection)) > end

  /** An answer was written: what the thread wrote comes to the connection before this. */
  def written(connection: HttpConnection): Unit = {
    val its = channel(connection)
    its.eventLoop.execute(new Runnable {
      override def run(): Unit = if (bytes(its) > 0) UnreadAnswers.synchronized {
        unread.putIfAbsent(its, java.lang.Long.valueOf(System.nanoTime))
        look()
      }
    })
  }

  /** Close a connection at once. */
  def close(connection: HttpConnection): Unit = close(channel(connection))

  /** From the first handler on: Vert.x's own, behind it, would wait until what was written is read. */
  private def close(channel: Channel): Unit = {
    val first = channel.pipeline.firstContext
    if (first == null) closeAt(channel) else closeAt(first)
  }

  private def closeAt(place: ChannelOutboundInvoker): Unit = place.close()

  /** Close those that have too much for too long. */
  def look(): Unit = synchronized {
    var held = 0L
    val nowNs = System.nanoTime
    var all = unread.entrySet.iterator
    while (all.hasNext) {
      val one = all.next()
      val its = bytes(one.getKey)
      if (its == 0) all.remove()
      else if (nowNs - one.getValue.longValue > longestMs * 1000000L) {
        close(one.getKey)
        all.remove()
      } else held += its
    }
    all = unread.entrySet.iterator
    while (held > most && all.hasNext) {
      val first = all.next().getKey
      held -= bytes(first)
      close(first)
      all.remove()
    }
  }

  private def bytes(channel: Channel): Long = {
    val waiting = channel.unsafe.outboundBuffer
    // it is closed
    if (waiting == null) 0 else waiting.totalPendingWriteBytes
  }

  private def channel(connection: HttpConnection): Channel = connection.asInstanceOf[ConnectionBase].channel
}
