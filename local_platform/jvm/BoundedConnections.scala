package mesh

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import java.util
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import org.apache.kafka.common.memory.MemoryPool
import org.apache.kafka.common.network.{KafkaChannel, NetworkReceive}
import org.slf4j.LoggerFactory

/**
 * How many connections the logins of a domain have at a broker, together, how many have no login yet, and how much room
 * is made for what domains announce. Kafka bounds the connections of an address and of a listener, and refuses or keeps
 * waiting whoever comes when there are as many; it does for each connection what it does for one, and makes room for a
 * request when its size has come. [[PatchKafka]] has Kafka call these methods.
 *
 * Properties of the JVM:
 *   mesh.connections=<n>         of one domain; one more is closed when it has logged in
 *   mesh.connections.domains=<n> of all domains; with one more, the last one of the domain that has most is closed
 *   mesh.connections.new=<n>     that have not logged in; with one more, the first of them is closed
 *   mesh.connections.bytes=<n>   of the requests of one domain, of more than 16 KiB each, that come, wait and are
 *                                handled; one more closes its connection
 */
object BoundedConnections {
  private val most = Integer.getInteger("mesh.connections", 2000).intValue
  private val mostOfDomains = Integer.getInteger("mesh.connections.domains", 3500).intValue
  private val mostNew = Integer.getInteger("mesh.connections.new", 1500).intValue
  private val mostBytes = Integer.getInteger("mesh.connections.bytes", 192 << 20).longValue
  private val small = 16384
  private val log = LoggerFactory.getLogger("mesh.BoundedConnections")
  private val owners = new ConcurrentHashMap[String, Owner]()
  private val open = new ConcurrentHashMap[String, Opened]()
  private val ofDomains = new AtomicInteger
  private val numbers = new AtomicLong
  /** Those that have not logged in by their ids, the first one first; under its own lock. */
  private val begun = new util.LinkedHashMap[String, KafkaChannel]()
  private val full = new Pause

  private class Owner(val name: String) {
    // under the lock of this object
    val channels = new util.TreeMap[Long, KafkaChannel]()
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
  private class Opened(val owner: Owner, val number: Long) {
    // under the lock of the owner
    var bytes = 0
  }

  /** A connection was accepted. */
  def accepted(channel: KafkaChannel): Unit =
    // the broker's own connections to others have none
    if (channel.principalSerde.isPresent) {
      val first = begun.synchronized {
        begun.put(channel.id, channel)
        if (begun.size <= mostNew) null
        else {
          val all = begun.values.iterator
          val found = all.next()
          all.remove()
          found
        }
      }
      if (first != null) {
        if (full.isOver()) log.warn("{} connections have not logged in: the first is closed for each that comes", mostNew)
        end(first)
      }
    }

  /**
   * Its network thread closes it then, as if the client had: no other thread may. Nothing is read while an answer is not
   * written, or its request handled, so that it ends for what writes as well.
   */
  private def end(channel: KafkaChannel): Unit = {
    val socket = channel.selectionKey.channel.asInstanceOf[SocketChannel]
    try {
      socket.shutdownInput()
      socket.shutdownOutput()
    } catch {
      // it was closed meanwhile
      case _: IOException =>
    }
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
    if (!open.containsKey(channel.id) && channel.principalSerde.isPresent) opens(channel)

  private def opens(channel: KafkaChannel): Unit = {
    begun.synchronized(begun.remove(channel.id))
    val login = channel.principal.getName
    val number = numbers.getAndIncrement()
    val owner = if (BoundedWork.isOwn(login)) null else {
      val name = BoundedWork.owner(login)
      owners.computeIfAbsent(name, new Owner(_))
    }
    if (owner != null) {
      val fits = owner.synchronized {
        val fits = owner.channels.size < most
        if (fits) owner.channels.put(number, channel)
        fits
      }
      if (!fits) owner.refuse(s"$most connections", owner.crowded)
    }
    open.put(channel.id, new Opened(owner, number))
    if (owner != null && ofDomains.incrementAndGet() > mostOfDomains) endOne()
  }

  /** End the last connection of the domain that has most. */
  private def endOne(): Unit = {
    var found: Owner = null
    var size = 0
    owners.values.forEach { owner =>
      val its = owner.synchronized(owner.channels.size)
      if (its > size) {
        found = owner
        size = its
      }
    }
    if (found != null) {
      val last = found.synchronized(found.channels.pollLastEntry())
      if (last != null) {
        ofDomains.decrementAndGet()
        val text = "the logins of domains have {} connections, most of them {}: its last one is closed"
        if (full.isOver()) log.warn(text, mostOfDomains, found.name)
        end(last.getValue)
      }
    }
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
    begun.synchronized(begun.remove(channel.id))
    val connection = open.remove(channel.id)
    if (connection != null && connection.owner != null) {
      takes(connection, 0)
      val owner = connection.owner
      if (owner.synchronized(owner.channels.remove(connection.number)) != null) ofDomains.decrementAndGet()
    }
  }
}
