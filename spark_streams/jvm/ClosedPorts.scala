package org.apache.spark.mesh

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.network.netty.NettyBlockTransferService
import org.apache.spark.network.server.TransportServer
import org.apache.spark.scheduler.SparkListener

/**
 * Closes the two ports that a driver opens for executors. In local mode there are none, and calls and
 * blocks of its own go through memory. Whoever reaches such a port could read each file that the server
 * can read (Spark 4.2 joins a folder with whatever name is asked for), and hold its open files and memory
 * by connections, also with `spark.authenticate`.
 *
 * A server where this cannot be done does not start: the constructor's error ends its context.
 */
class ClosedPorts(conf: SparkConf) extends SparkListener {
  if (!conf.get("spark.master").startsWith("local[")) {
    throw new IllegalStateException("executors of their own need the ports that would be closed")
  }
  ClosedPorts.close(SparkEnv.get.rpcEnv)
  SparkEnv.get.blockManager.blockTransferService match {
    case blocks: NettyBlockTransferService => ClosedPorts.close(blocks)
  }
}

object ClosedPorts {
  private def close(owner: AnyRef): Unit = {
    // Scala gives a private field of a class with inner classes a longer name
    val field = owner.getClass.getDeclaredFields
      .find(one => one.getName == "server" || one.getName.endsWith("$$server"))
      .getOrElse(throw new NoSuchFieldException(s"server of ${owner.getClass.getName}"))
    field.setAccessible(true)
    field.get(owner).asInstanceOf[TransportServer].close()
  }
}
