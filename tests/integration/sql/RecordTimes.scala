package org.apache.spark.sql.kafka010

import java.util.Optional

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.header.internals.RecordHeaders
import org.apache.kafka.common.record.TimestampType

/** Prints each argument, milliseconds, as Spark's Kafka source has it, microseconds. */
object RecordTimes {
  def main(arguments: Array[String]): Unit = for (ms <- arguments) {
    val record = new ConsumerRecord[Array[Byte], Array[Byte]](
      "topic", 0, 0L, ms.toLong, TimestampType.CREATE_TIME, 0, 0, null, null,
      new RecordHeaders(), Optional.empty[Integer]())
    println(new KafkaRecordToRowConverter().toInternalRowWithoutHeaders(record).getLong(5))
  }
}
