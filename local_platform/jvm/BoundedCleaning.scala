package mesh

import java.util
import java.util.concurrent.ConcurrentHashMap
import java.util.function.Consumer
import java.util.stream.Stream

import scala.jdk.CollectionConverters._

import org.apache.kafka.common.TopicPartition
import org.apache.kafka.storage.internals.log.{Cleaner, CleanerStats, LogCleaningAbortedException, LogToClean}
import org.slf4j.LoggerFactory

/**
 * Which log a thread of a broker's cleaner takes next, and when it leaves one. Kafka takes the filthiest of all, and another
 * when it is through with that: batches that unpack to much would keep compaction from all topics of the broker. Here
 * domains have one log cleaned at a time, the one first whose logs took the least of late, and the other threads are for
 * topics of none. A log that takes longer than a slice while another domain waits is left, and has twice as long the next
 * time. [[PatchKafka]] has Kafka call these methods.
 *
 * Properties of the JVM:
 *   mesh.cleaner.slice.ms=<n>        how long a log is cleaned while another domain waits, the first time
 *   mesh.cleaner.slice.most.ms=<n>   and at most
 */
object BoundedCleaning {
  private val sliceNs = Integer.getInteger("mesh.cleaner.slice.ms", 10000).longValue * 1000000L
  private val mostNs = Integer.getInteger("mesh.cleaner.slice.most.ms", 600000).longValue * 1000000L
  // a thread that finds nothing to clean looks again after log.cleaner.backoff.ms, 15 s
  private val isWaitingNs = 60L * 1000000000L
  private val pauseMs = 15000L
  private val log = LoggerFactory.getLogger("mesh.BoundedCleaning")
  private val domains = new ConcurrentHashMap[String, Cleaned]
  private val checked = new ThreadLocal[Checked]
  // of the one log of a domain that is cleaned
  @volatile private var turn: Option[Turn] = None
  @volatile private var waiting: Option[Waiting] = None

  private case class Checked(check: Consumer[AnyRef], partition: AnyRef)

  private case class Waiting(domain: String, atNs: Long)

  private class Turn(val domain: String) {
    val thread: Thread = Thread.currentThread
    val beganNs: Long = System.nanoTime
    var isLeft = false
  }

  /** What the cleaner spent on a domain's logs, half of it forgotten every ten minutes. */
  private class Cleaned {
    private val halfNs = 600e9
    private var (spentNs, atNs) = (0.0, System.nanoTime)
    // logs that were left since one was not
    var left = 0

    def lately: Double = spentNs * math.pow(0.5, (System.nanoTime - atNs) / halfNs)

    def add(ns: Long): Unit = {
      spentNs = lately + ns
      atNs = System.nanoTime
    }

    def slice: Long = math.min(sliceNs << math.min(left, 20), mostNs)
  }

  /** In place of `dirty.toList`: the logs of which the thread cleans the filthiest. */
  def take(dirty: Stream[LogToClean]): util.List[LogToClean] = synchronized {
    val (ofNone, ofDomains) = dirty.toList.asScala.partition(one => isOfNone(one.topicPartition))
    val mine = turn match {
      case _ if ofNone.nonEmpty => ofNone
      case Some(other) =>
        waiting = ofDomains.map(domain).find(_ != other.domain).map(Waiting(_, System.nanoTime))
        Nil
      case None if ofDomains.isEmpty => Nil
      case None =>
        val next = ofDomains.map(domain).minBy(cleaned(_).lately)
        turn = Some(new Turn(next))
        waiting = None
        ofDomains.filter(domain(_) == next)
    }
    mine.asJava
  }

  /** In place of `cleaner.clean(log)`. An error would end the thread, and nothing would be cleaned any more. */
  def clean(cleaner: Cleaner, log: LogToClean): util.Map.Entry[java.lang.Long, CleanerStats] =
    try cleaner.clean(log)
    catch {
      case error: OutOfMemoryError =>
        this.log.error("{} is cleaned again later", log.topicPartition, error)
        Thread.sleep(pauseMs)
        throw new LogCleaningAbortedException
    } finally end()

  /** In place of `check.accept(partition)`, which fails where the cleaning is to end. */
  def check(check: Consumer[AnyRef], partition: AnyRef): Unit = {
    checked.set(Checked(check, partition))
    check.accept(partition)
    leave(partition)
  }

  /** A batch is unpacked, perhaps by the cleaner: Kafka checks once for all batches that fit into its buffer. */
  def again(): Unit = {
    val last = checked.get
    if (last != null) check(last.check, last.partition)
  }

  /** Leaves the log if that is due. */
  private def leave(partition: AnyRef): Unit =
    for (mine <- turn if mine.thread eq Thread.currentThread; other <- waiting) {
      val now = System.nanoTime
      if (now - other.atNs < isWaitingNs && now - mine.beganNs > cleaned(mine.domain).slice) {
        mine.isLeft = true
        log.info("{} is not cleaned to its end: topics of {} wait", partition, other.domain)
        throw new LogCleaningAbortedException
      }
    }

  private def end(): Unit = synchronized {
    checked.remove()
    for (mine <- turn if mine.thread eq Thread.currentThread) {
      val spent = cleaned(mine.domain)
      spent.add(System.nanoTime - mine.beganNs)
      spent.left = if (mine.isLeft) spent.left + 1 else 0
      turn = None
    }
  }

  private def cleaned(domain: String) = domains.computeIfAbsent(domain, _ => new Cleaned)

  private def isOfNone(partition: TopicPartition) = !partition.topic.contains('.') || BoundedWork.isOwn(partition.topic)

  private def domain(one: LogToClean) = one.topicPartition.topic.takeWhile(_ != '.')
}
