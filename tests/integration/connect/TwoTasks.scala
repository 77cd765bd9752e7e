package mesh

import java.util

import org.apache.kafka.common.TopicPartition
import org.apache.kafka.connect.sink.{SinkRecord, SinkTask}

/** Two tasks of a sink that write one partition: what each did, in the order in which it was done. */
object TwoTasks {
  private class Task extends SinkTask {
    override def version: String = ""
    override def start(settings: util.Map[String, String]): Unit = ()
    override def put(records: util.Collection[SinkRecord]): Unit = ()
    override def stop(): Unit = ()
  }

  private def task(connector: String): SinkTask = {
    val made = new Task
    OneWriter.start(made, util.Map.of("name", connector))
    OneWriter.open(made, util.List.of(new TopicPartition("east.users", 0)))
    made
  }

  private def batch(task: SinkTask): util.Set[String] = util.Set.of(OneWriter.place(task, "east.users", 0))

  def main(words: Array[String]): Unit = {
    val first = task("east.out")
    OneWriter.begin(first, batch(first))
    val other = task("east.other")
    OneWriter.begin(other, batch(other))
    println("another connector writes")
    // as when the first one waits for the database, and its connector is stopped and started
    val second = task("east.out")
    val waiting = new Thread(() => {
      OneWriter.begin(second, batch(second))
      println("the second writes")
      OneWriter.end(second)
    })
    waiting.start()
    while (waiting.getState != Thread.State.TIMED_WAITING) Thread.onSpinWait()
    println("the first ends")
    OneWriter.end(first)
    waiting.join()
    try OneWriter.begin(first, batch(first))
    catch { case error: Exception => println("the first is refused: " + error.getMessage) }
  }
}
