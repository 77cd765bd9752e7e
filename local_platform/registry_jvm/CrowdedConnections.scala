package io.quarkus.vertx.http.runtime

import java.util

import io.vertx.core.Handler
import io.vertx.core.http.HttpConnection
import io.vertx.core.net.impl.ConnectionBase

/**
 * How many connections the registry has: with one more, the one that asked nothing for longest is closed. Quarkus refuses
 * whoever comes when there are as many.
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

  /** At once: Vert.x would wait until what is written to it is read. */
  private def close(connection: HttpConnection): Unit = connection.asInstanceOf[ConnectionBase].channel.close()

  private def begins(connection: HttpConnection): Boolean = synchronized(open.add(connection))

  private def ends(connection: HttpConnection): Boolean = synchronized(open.remove(connection))
}
