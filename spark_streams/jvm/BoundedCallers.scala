package mesh

import java.net.SocketAddress
import java.util

import io.netty.channel.{Channel, ChannelFuture, ChannelFutureListener, ChannelPromise}
import org.slf4j.LoggerFactory
import org.sparkproject.connect.grpc.{Grpc, Metadata, ServerCall, ServerCallHandler}

/**
 * How many connections a Spark Connect server has by which no call with its token has come: with one more, the first of them
 * is closed. gRPC accepts all that come, until the server has no file left for a query that runs. [[PatchSpark]] has it
 * call these methods.
 */
object BoundedCallers {
  private val most = 400
  private val pauseNs = 60L * 1000000000L
  private val log = LoggerFactory.getLogger("mesh.BoundedCallers")
  /** By their clients' addresses, the first one first; under the lock of this object, as what follows. */
  private val unknown = new util.LinkedHashMap[SocketAddress, Channel]()
  private var toldNs = System.nanoTime - pauseNs

  /** A connection was accepted, of whose end a promise tells. */
  def accepted(end: ChannelPromise): ChannelPromise = {
    val channel = end.channel
    val client = channel.remoteAddress
    val first = synchronized {
      unknown.remove(client)
      unknown.put(client, channel)
      if (unknown.size <= most) null else pollFirst()
    }
    channel.closeFuture.addListener(new ChannelFutureListener {
      // the address may be another client's by now
      override def operationComplete(done: ChannelFuture): Unit =
        BoundedCallers.synchronized(unknown.remove(client, channel))
    })
    if (first != null) close(first)
    end
  }

  /** From the first handler on: gRPC's own, behind it, would wait until calls have ended that may never. */
  private def close(channel: Channel): Unit = {
    val first = channel.pipeline.firstContext
    if (first != null) first.close()
  }

  private def pollFirst(): Channel = {
    val all = unknown.values.iterator
    val first = all.next()
    all.remove()
    val nowNs = System.nanoTime
    if (nowNs - toldNs >= pauseNs) {
      toldNs = nowNs
      log.warn("{} connections have shown no token: the first is closed for each that comes", most)
    }
    first
  }

  /** In place of `handler.startCall(call, metadata)`: the call has the token. */
  def begins[Q, A](handler: ServerCallHandler[Q, A], call: ServerCall[Q, A], metadata: Metadata): ServerCall.Listener[Q] = {
    val client = call.getAttributes.get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR)
    synchronized(unknown.remove(client))
    handler.startCall(call, metadata)
  }
}
