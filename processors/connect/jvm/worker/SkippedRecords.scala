package mesh

import java.util

import org.apache.kafka.common.TopicPartition

/**
 * Ends the reading of a consumer whose next record was deleted before it was read, by the topic's
 * retention or by whoever may delete its records. A sink's consumer would go on at the topic's first
 * record, and its table would lack those between.
 *
 * A position behind the topic's end is that of an earlier topic of the name; the consumer then goes on
 * from the first record.
 *
 * [[PatchConsumer]] has Kafka's consumer ask this. The error begins with a code, and names the
 * partition. Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object SkippedRecords {
  /** Of each consumer the positions that its topics do not have. */
  private val missed = util.Collections.synchronizedMap(
    new util.WeakHashMap[Object, util.Map[TopicPartition, java.lang.Long]]())

  /** Where records are missing behind the last one that a consumer has read. */
  private val gaps = util.Collections.synchronizedMap(new util.WeakHashMap[Object, String]())

  /** A consumer is to find another position, since the topic does not have the one that it is at. */
  def miss(consumer: Object, partition: TopicPartition, offset: Long): Unit = {
    val before = missed.get(consumer)
    val places =
      if (before == null) new util.HashMap[TopicPartition, java.lang.Long]() else before
    places.put(partition, java.lang.Long.valueOf(offset))
    missed.put(consumer, places)
  }

  /** It has found one; what is thrown here would end in another error. */
  def find(consumer: Object, partition: TopicPartition, offset: Long): Unit = {
    val places = missed.get(consumer)
    val before = if (places == null) null else places.remove(partition)
    if (before != null && before.longValue < offset)
      gaps.put(consumer, partition.topic + "-" + partition.partition + " at offset " + before)
  }

  /** Called before records are taken of what was fetched. */
  def require(consumer: Object): Unit = {
    val gap = gaps.get(consumer)
    if (gap != null)
      throw new RefusedException(
        "source_gap: " + gap + ": records were deleted before they were read")
  }
}
