package org.apache.kafka.common.utils

import java.nio.channels.FileChannel
import java.nio.channels.FileChannel.MapMode
import java.nio.file.{Path, StandardOpenOption}
import java.util.function.Supplier

import org.apache.kafka.common.errors.TimeoutException

/** Kafka's clock, shifted by the milliseconds in the file that `mesh.clock.offset` names.
  *
  * The file holds one big-endian long. Only the time of day is shifted, as by a wrong clock: what
  * counts by `nanoTime` goes on. Stands before Kafka's own class on a broker's class path.
  */
class SystemTime private () extends Time {
  private val offset = {
    val path = Path.of(System.getProperty("mesh.clock.offset"))
    FileChannel.open(path, StandardOpenOption.READ).map(MapMode.READ_ONLY, 0L, 8L)
  }

  override def milliseconds(): Long = System.currentTimeMillis() + offset.getLong(0)

  override def nanoseconds(): Long = System.nanoTime()

  override def sleep(millis: Long): Unit = if (millis > 0) Thread.sleep(millis)

  override def waitObject(lock: Object, done: Supplier[java.lang.Boolean], deadline: Long): Unit =
    lock.synchronized {
      while (!done.get()) {
        val left = deadline - milliseconds()
        if (left <= 0) throw new TimeoutException("Condition not satisfied before deadline")
        lock.wait(left)
      }
    }
}

object SystemTime {
  private val instance = new SystemTime()

  def getSystemTime(): SystemTime = instance
}
