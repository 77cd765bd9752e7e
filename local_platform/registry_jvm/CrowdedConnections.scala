package io.quarkus.vertx.http.runtime

import java.util

import io.netty.channel.ChannelOutboundInvoker
import io.vertx.core.Handler
import io.vertx.core.http.HttpConnection
import io.vertx.core.net.impl.ConnectionBase

/**
 * How many connections the registry has by which no request with a login has come: with one more, the one that asked
 * nothing for longest is closed. Quarkus refuses whoever comes when there are as many.
 *
 * Nothing of Scala's own library is used, which the registry does not have.
 */
object CrowdedConnections {
  private val most = 500
  /** The one that asked nothing for longest is the first; under the lock of this object. */
  private val open = new util.LinkedHashSet[HttpConnection]()

  /** In place of `connection.closeHandler(handler)`, when it is accepted. */
  def accepted(connection: HttpConnection, handler: Handler[Void]): HttpConnection = {
    val first = synchronized {
      open.add(connection)
      if (open.size <= most) null
      else {
        val all = open.iterator
        val found = all.next()
        all.remove()
        found
      }
    }
    if (first != null) close(first)
    connection.closeHandler(new Handler[Void] {
      override def handle(nothing: Void): Unit = {
        ends(connection)
        handler.handle(nothing)
      }
    })
  }

  /** The head of a request has come by it. */
  def asks(connection: HttpConnection): Unit = if (ends(connection)) begins(connection)

  /** At once, as `UnreadAnswers` does. */
  private def close(connection: HttpConnection): Unit = {
    val first = connection.asInstanceOf[ConnectionBase].channel.pipeline.firstContext
    if (first != null) end(first)
  }

  private def end(whole: ChannelOutboundInvoker): Unit = whole.close()

  /** A request with a login has come by it: it is no more one of those that are bounded. */
  def isOwn(connection: HttpConnection): Unit = ends(connection)

  private def begins(connection: HttpConnection): Boolean = synchronized(open.add(connection))

  private def ends(connection: HttpConnection): Boolean = synchronized(open.remove(connection))
}
