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
 * topics of none. A log that takes longer than a slice while a domain waits that took less is left, and has twice as long
 * the next time. [[PatchKafka]] has Kafka call these methods.
 *
 * Properties of the JVM:
 *   mesh.cleaner.slice.ms=<n>        how long a log is cleaned while another domain waits, the first time
 *   mesh.cleaner.slice.most.ms=<n>   and at most
 */
object BoundedCleaning {
  private val sliceNs = Integer.getInteger("mesh.cleaner.slice.ms", 10000).longValue * 1000000L
  private val mostNs = Integer.getInteger("mesh.cleaner.slice.most.ms", 3600000).longValue * 1000000L
  // a thread that finds nothing to clean looks again after log.cleaner.backoff.ms, 15 s
  private val isWaitingNs = 60L * 1000000000L
  private val skipsNs = 300L * 1000000000L
  private val mostLeft = 5000
  private val log = LoggerFactory.getLogger("mesh.BoundedCleaning")
  private val domains = new ConcurrentHashMap[String, Cleaned]
  private val checked = new ThreadLocal[Checked]
  // those for which there was no memory, and until when
  private val skipped = new ConcurrentHashMap[TopicPartition, Long]
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
    // how often a log was left since it was cleaned
    private val left = new util.HashMap[TopicPartition, Int]
    val leaves = new Pause

    def lately: Double = spentNs * math.pow(0.5, (System.nanoTime - atNs) / halfNs)

    def add(ns: Long): Unit = {
      spentNs = lately + ns
      atNs = System.nanoTime
    }

    def slice(log: TopicPartition): Long =
      math.min(sliceNs << math.min(left.getOrDefault(log, 0), 20), mostNs)

    /** It is done with a log, or has left it. */
    def ends(log: TopicPartition, isLeft: Boolean): Unit =
      if (!isLeft) left.remove(log)
      else {
        if (left.size >= mostLeft) left.clear()
        left.merge(log, 1, _ + _)
      }
  }

  /** In place of `dirty.toList`: the logs of which the thread cleans the filthiest. */
  def take(dirty: Stream[LogToClean]): util.List[LogToClean] = synchronized {
    val now = System.nanoTime
    skipped.values.removeIf(_ - now < 0)
    val (ofNone, ofDomains) =
      dirty.toList.asScala.filterNot(one => skipped.containsKey(one.topicPartition)).partition(isOfNone)
    // a thread may have ended between
    val mine = turn.filter(other => other.thread.isAlive && (other.thread ne Thread.currentThread)) match {
      case _ if ofNone.nonEmpty => ofNone
      case Some(other) =>
        waiting = ofDomains.map(domain).filter(_ != other.domain).minByOption(cleaned(_).lately).map(Waiting(_, now))
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
        skipped.put(log.topicPartition, System.nanoTime + skipsNs)
        this.log.error("{} is cleaned later", log.topicPartition, error)
        throw new LogCleaningAbortedException
    } finally end(log.topicPartition)

  /** In place of `check.accept(partition)`, which fails where the cleaning is to end. */
  def check(check: Consumer[AnyRef], partition: AnyRef): Unit = {
    checked.set(Checked(check, partition))
    check.accept(partition)
    leave(partition.asInstanceOf[TopicPartition])
  }

  /** A batch is unpacked, perhaps by the cleaner: Kafka checks once for all batches that fit into its buffer. */
  def again(): Unit = {
    val last = checked.get
    if (last != null) check(last.check, last.partition)
  }

  /** Leaves the log if that is due. */
  private def leave(partition: TopicPartition): Unit =
    for (mine <- turn if mine.thread eq Thread.currentThread; other <- waiting) {
      val now = System.nanoTime
      val (spent, tookNs) = (cleaned(mine.domain), now - mine.beganNs)
      // else its own domain would be the next again
      val isNext = cleaned(other.domain).lately < spent.lately + tookNs
      if (isNext && now - other.atNs < isWaitingNs && tookNs > spent.slice(partition)) {
        mine.isLeft = true
        if (spent.leaves.isOver()) log.warn("{} is not cleaned to its end: topics of {} wait", partition, other.domain)
        throw new LogCleaningAbortedException
      }
    }

  private def end(partition: TopicPartition): Unit = synchronized {
    checked.remove()
    for (mine <- turn if mine.thread eq Thread.currentThread) {
      val spent = cleaned(mine.domain)
      spent.add(System.nanoTime - mine.beganNs)
      spent.ends(partition, mine.isLeft)
      turn = None
    }
  }

  private def cleaned(domain: String) = domains.computeIfAbsent(domain, _ => new Cleaned)

  private def isOfNone(one: LogToClean) = {
    val topic = one.topicPartition.topic
    !topic.contains('.') || BoundedWork.isOwn(topic)
  }

  private def domain(one: LogToClean) = one.topicPartition.topic.takeWhile(_ != '.')
}
