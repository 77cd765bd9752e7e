package mesh

import java.util
import java.util.concurrent.{ExecutionException, Future, TimeUnit, TimeoutException}

import org.apache.kafka.clients.admin.NewTopic
import org.apache.kafka.clients.producer.{Callback, KafkaProducer, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.header.Headers
import org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter.{
  ERROR_HEADER_EXCEPTION_MESSAGE,
  ERROR_HEADER_EXCEPTION_STACK_TRACE
}

/**
 * Keeps a sink from passing over a record that is not in its dead letters. Connect sends a record
 * there and goes on: what Kafka refuses, or has not taken when Connect dies, is lost, since the
 * position behind it is stored. And it sends at most 1 MiB, to a topic that takes no more.
 *
 * The sink waits for Kafka's acknowledgement, and fails where there is none: its position is not
 * stored, so that the record comes again. A topic that is made takes 16 MiB, which a record may have,
 * and the headers that Connect adds.
 *
 * [[PatchConnect]] has Connect's reporter of dead letters ask this.
 */
object DeadLetters {
  private val mebibyte = 1 << 20
  /** What Kafka's request may have in all, and the topic's batch of one record. */
  private val most = 17 * mebibyte
  /** Of a request, beside the record. */
  private val around = 16 << 10
  private val patienceMs = Integer.getInteger("mesh.dead.letters.ms", 60000).intValue
  /** Bytes of a header that tells of the failure: some quote the record. */
  private val longest = 64 << 10
  private val cut = Seq(ERROR_HEADER_EXCEPTION_MESSAGE, ERROR_HEADER_EXCEPTION_STACK_TRACE)

  /** The settings of the producer of dead letters, setting -> value. */
  def settings(given: util.Map[String, AnyRef]): util.Map[String, AnyRef] = {
    val found = new util.HashMap[String, AnyRef](given)
    found.put("max.request.size", Integer.valueOf(most - around))
    found.put("buffer.memory", java.lang.Long.valueOf(2L * most))
    // a letter is waited for
    found.put("linger.ms", java.lang.Long.valueOf(0L))
    found.put("max.block.ms", java.lang.Long.valueOf(patienceMs.longValue))
    found.put("delivery.timeout.ms", Integer.valueOf(patienceMs))
    found.put("request.timeout.ms", Integer.valueOf(patienceMs / 2))
    found
  }

  /** The topic as it is made, in the set that Connect has its administrator make. */
  def topics(topic: AnyRef): util.Set[AnyRef] =
    topic match {
      case made: NewTopic =>
        util.Set.of(made.configs(util.Map.of("max.message.bytes", most.toString)))
    }

  /** Sends a dead letter, and returns once Kafka has it; ends with RefusedException otherwise. */
  def send(
      producer: KafkaProducer[Array[Byte], Array[Byte]],
      letter: ProducerRecord[Array[Byte], Array[Byte]],
      told: Callback): Future[RecordMetadata] = {
    cut.foreach(shorten(letter.headers, _))
    try {
      val sent = producer.send(letter, told)
      // the producer gives up by itself before
      sent.get(2L * patienceMs, TimeUnit.MILLISECONDS)
      sent
    } catch {
      case error: ExecutionException => throw refused(letter.topic, error.getCause)
      case error @ (_: TimeoutException | _: RuntimeException) => throw refused(letter.topic, error)
      case error: InterruptedException =>
        Thread.currentThread.interrupt()
        throw refused(letter.topic, error)
    }
  }

  private def shorten(headers: Headers, name: String): Unit = {
    val header = headers.lastHeader(name)
    if (header != null && header.value != null && header.value.length > longest) {
      headers.remove(name)
      headers.add(name, util.Arrays.copyOf(header.value, longest))
    }
  }

  /** Names the topic and Kafka's error, without what it says, which may quote the record. */
  private def refused(topic: String, error: Throwable): RefusedException =
    new RefusedException(s"dead_letter_not_written: $topic: ${error.getClass.getSimpleName}: ")
}
