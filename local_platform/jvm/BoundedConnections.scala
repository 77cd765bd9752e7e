package mesh

import java.io.IOException
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap

import org.apache.kafka.common.memory.MemoryPool
import org.apache.kafka.common.network.{KafkaChannel, NetworkReceive}
import org.slf4j.LoggerFactory

/**
 * How many connections the logins of a domain have at a broker, together, and how much room is made for what they
 * announce. Kafka bounds the connections of an address and of a listener, does for each what it does for one, and
 * makes room for a request when its size has come. [[PatchKafka]] has Kafka call these methods.
 *
 * Properties of the JVM:
 *   mesh.connections=<n>         of one domain; one more is closed when it has logged in
 *   mesh.connections.bytes=<n>   of the requests of one domain, of more than 16 KiB each, that come, wait and are
 *                                handled; one more closes its connection
 */
object BoundedConnections {
  private val most = Integer.getInteger("mesh.connections", 2000).intValue
  private val mostBytes = Integer.getInteger("mesh.connections.bytes", 192 << 20).longValue
  private val small = 16384
  private val log = LoggerFactory.getLogger("mesh.BoundedConnections")
  private val owners = new ConcurrentHashMap[String, Owner]()
  private val open = new ConcurrentHashMap[String, Opened]()

  private class Owner(val name: String) {
    // under the lock of this object
    var connections = 0
    var bytes = 0L
    val crowded, laden = new Pause

    def refuse(fault: String, pause: Pause): Nothing = {
      val text = s"the logins of $name have $fault"
      if (pause.isOver()) log.warn("{}: the next connection is closed", text)
      // Kafka closes the connection without a line of its own
      throw new IOException(text)
    }
  }

  /** A connection, and the bytes of its request; one of the platform's and the mesh's own logins has no owner. */
  private class Opened(val owner: Owner) {
    // under the lock of the owner
    var bytes = 0
  }

  /** Something came by a connection; IOException where its domain has too many, or is above a bound of its work. */
  def reads(channel: KafkaChannel): Unit = {
    logs(channel)
    val connection = open.get(channel.id)
    if (connection != null && connection.owner != null) BoundedWork.receives(connection.owner.name)
  }

  /** It was read, or a part of it: that counts as well, since a request that never is whole is never handled. */
  def hasRead(channel: KafkaChannel): Unit = {
    val connection = open.get(channel.id)
    if (connection != null && connection.owner != null) BoundedWork.received(connection.owner.name)
  }

  /** A connection has logged in; IOException where its domain has too many. */
  private def logs(channel: KafkaChannel): Unit =
    // the broker's own connections to others have none
    if (!open.containsKey(channel.id) && channel.principalSerde.isPresent) opens(channel)

  private def opens(channel: KafkaChannel): Unit = {
    val login = channel.principal.getName
    val owner = if (BoundedWork.isOwn(login)) null else {
      val name = BoundedWork.owner(login)
      owners.computeIfAbsent(name, new Owner(_))
    }
    if (owner != null) {
      val fits = owner.synchronized {
        val fits = owner.connections < most
        if (fits) owner.connections += 1
        fits
      }
      if (!fits) owner.refuse(s"$most connections", owner.crowded)
    }
    open.put(channel.id, new Opened(owner))
  }

  /** It may have logged in: who never sends anything has a connection, too. */
  def prepared(channel: KafkaChannel): Unit = if (channel.ready) logs(channel)

  /** Why a connection is closed whose texts are too deep for the stack of its thread. */
  def tooDeep(error: StackOverflowError): IOException = new IOException("a text of a login is too deep", error)

  /** In place of `pool.tryAllocate(size)`, for a request that is announced. */
  def room(pool: MemoryPool, size: Int, request: NetworkReceive): ByteBuffer = {
    val connection = open.get(request.source)
    if (connection != null && connection.owner != null && !takes(connection, if (size > small) size else 0)) {
      connection.owner.refuse(s"requests of $mostBytes bytes", connection.owner.laden)
    }
    pool.tryAllocate(size)
  }

  private def takes(connection: Opened, size: Int): Boolean = connection.owner.synchronized {
    val fits = connection.owner.bytes - connection.bytes + size <= mostBytes
    if (fits) {
      connection.owner.bytes += size - connection.bytes
      connection.bytes = size
    }
    fits
  }

  /** The request of a connection was answered. */
  def answered(id: String): Unit = {
    val connection = open.get(id)
    if (connection != null && connection.owner != null) takes(connection, 0)
  }

  /** It was closed, by whichever side. */
  def closed(channel: KafkaChannel): Unit = {
    BoundedWork.forget(channel.id)
    val connection = open.remove(channel.id)
    if (connection != null && connection.owner != null) {
      takes(connection, 0)
      connection.owner.synchronized(connection.owner.connections -= 1)
    }
  }
}
