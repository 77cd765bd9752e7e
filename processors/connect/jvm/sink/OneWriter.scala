package mesh

import java.util

import io.debezium.connector.jdbc.JdbcChangeEventSink
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.connect.errors.ConnectException
import org.apache.kafka.connect.sink.{SinkRecord, SinkTask}

/**
 * Has each partition of a sink written by one task at a time, the one that it was assigned to last. A
 * task that waits for the database, as for a row that is locked, outlives its connector's stop and a
 * rebalance: Connect starts another one, which reads on from the stored position, and the first would
 * write its older rows over newer ones once it goes on.
 *
 * A task waits until the one before has ended its batch, whose rows it then writes again in their
 * order. One that has lost a partition fails before it writes. It holds within one worker; a domain
 * has one. [[PatchSink]] has the sink ask this. Nothing of Scala's own library is used.
 */
object OneWriter {
  private val lookMs = 1000L
  private val names = new util.WeakHashMap[SinkTask, String]()
  /** Partition of a connector -> whose it is, and who is writing its records. */
  private val owners = new util.HashMap[String, SinkTask]()
  private val writing = new util.HashMap[String, SinkTask]()

  def start(task: SinkTask, settings: util.Map[String, String]): Unit = synchronized {
    names.put(task, settings.get("name"))
  }

  def open(task: SinkTask, partitions: util.Collection[TopicPartition]): Unit = synchronized {
    val all = partitions.iterator
    while (all.hasNext) {
      val one = all.next()
      owners.put(place(task, one.topic, one.partition), task)
    }
    notifyAll()
  }

  def stop(task: SinkTask): Unit = synchronized {
    val all = owners.values.iterator
    while (all.hasNext) if (all.next() eq task) all.remove()
    notifyAll()
  }

  /** In the place of the sink's own, which writes the records and returns once they are committed. */
  def execute(
      sink: JdbcChangeEventSink, records: util.Collection[SinkRecord], task: SinkTask): Unit = {
    val places = new util.HashSet[String]()
    val all = records.iterator
    while (all.hasNext) {
      val one = all.next()
      places.add(place(task, one.originalTopic, one.originalKafkaPartition.intValue))
    }
    begin(task, places)
    try sink.execute(records)
    finally end(task)
  }

  private[mesh] def begin(task: SinkTask, places: util.Set[String]): Unit = synchronized {
    while (isWritten(task, places)) wait(lookMs)
    val all = places.iterator
    while (all.hasNext) writing.put(all.next(), task)
  }

  private[mesh] def end(task: SinkTask): Unit = synchronized {
    val all = writing.values.iterator
    while (all.hasNext) if (all.next() eq task) all.remove()
    notifyAll()
  }

  /** Whether another task writes one of them; throws where one belongs to another task by now. */
  private def isWritten(task: SinkTask, places: util.Set[String]): Boolean = {
    var found = false
    val all = places.iterator
    while (all.hasNext) {
      val one = all.next()
      if (!(owners.get(one) eq task))
        throw new ConnectException("another task has got the partition " + one)
      val other = writing.get(one)
      if (other != null && !(other eq task)) found = true
    }
    found
  }

  private[mesh] def place(task: SinkTask, topic: String, partition: Int): String =
    names.get(task) + " " + topic + "-" + partition
}
