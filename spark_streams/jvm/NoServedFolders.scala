package org.apache.spark.mesh

import java.io.File
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.scheduler.SparkListener

/**
 * Makes a driver serve no file of its folders at the port for executors' calls.
 *
 * Spark 4.2 joins a folder with whatever name is asked for, `..` among it, and does not ask who
 * asks, also with `spark.authenticate`: every file that the server can read would be public. In
 * local mode nobody needs one of them, except for a session's classes, which no session brings.
 *
 * A server where this cannot be done does not start: the constructor's error ends its context.
 */
class NoServedFolders(conf: SparkConf) extends SparkListener {
  NoServedFolders.install(SparkEnv.get.rpcEnv.fileServer)
}

object NoServedFolders {
  def install(server: AnyRef): Unit = {
    val field = server.getClass.getDeclaredField("dirs")
    field.setAccessible(true)
    val folders = new NoServedFolders.Folders
    folders.putAll(field.get(server).asInstanceOf[ConcurrentHashMap[String, File]])
    field.set(server, folders)
  }

  /** Folders by name, each of which is handed out as a file: no path through it leads anywhere. */
  private class Folders extends ConcurrentHashMap[String, File] {
    override def get(name: Any): File = if (super.get(name) == null) null else Nowhere
  }

  private val Nowhere = new File("/dev/null")
}
