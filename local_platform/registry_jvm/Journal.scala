package io.quarkus.undertow.runtime

import io.apicurio.registry.storage.impl.kafkasql.KafkaSqlRegistryStorage
import io.quarkus.arc.Arc
import io.vertx.ext.web.RoutingContext

/**
 * The topic that the registry keeps its schemas in. One that has just started has read nothing of it, and
 * one whose reader has ended reads no more: both would answer that they do not know schemas which they have, and who
 * asks for the schema of a record would take the record for an unreadable one.
 */
object Journal {
  private val retryAfterS = "1"

  /** Whether what it has is read, and what comes will be. */
  def isRead: Boolean =
    try Arc.container.instance(classOf[KafkaSqlRegistryStorage]).get.isAlive
    catch {
      // it is about to start, or to end
      case _: Exception => false
    }

  /** Answer that it is to be asked again. */
  def unavailable(context: RoutingContext): Unit =
    context.response.setStatusCode(503).putHeader("Connection", "close").putHeader("Retry-After", retryAfterS).end()
}
