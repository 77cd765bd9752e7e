package mesh

import java.io.File
import java.util.concurrent.ConcurrentHashMap

import org.apache.kafka.storage.internals.log.{LogSegment, RollParams}

/**
 * How often the time that a record says begins a new segment of its partition, which is a file that a broker has open.
 * Kafka takes the time of records for its own: one a week after the one before has the segment closed, and three
 * thousand of them are some kilobytes. [[PatchKafka]] has Kafka call this. What is above stays in the segment until
 * that is full, or there is room in the hour.
 *
 * Properties of the JVM:
 *   mesh.segments=<n>         of the topics below a domain's prefix, in an hour and at once, for the time alone
 *   mesh.segments.young=<n>   of them, where the segment is not ten minutes old
 *   mesh.segments.kept=<n>    that there are of those topics: with as many, none begins for the time alone
 */
object BoundedSegments {
  private val ofAll = Recent.hour / Integer.getInteger("mesh.segments", 1000).intValue
  private val ofYoung = Recent.hour / Integer.getInteger("mesh.segments.young", 200).intValue
  // the least `segment.ms` of a domain's topic
  private val youngMs = 600000L
  private val mostKept = Integer.getInteger("mesh.segments.kept", 6000).intValue
  private val minuteNs = 60L * 1000000000L
  private val domains = new ConcurrentHashMap[String, Domain]()

  private class Domain(name: String) {
    val all, young = new Spent
    private var kept = 0
    private var counted = System.nanoTime - minuteNs

    def takes(isYoung: Boolean, logs: File): Boolean =
      hasRoom(logs) && (!isYoung || young.takes(ofYoung, Recent.hour - ofYoung)) &&
        all.takes(ofAll, Recent.hour - ofAll) && begins()

    private def begins(): Boolean = synchronized {
      kept += 1
      true
    }

    /** Counted once a minute: Kafka deletes them as well. */
    private def hasRoom(logs: File): Boolean = synchronized {
      if (System.nanoTime - counted >= minuteNs) {
        kept = names(logs, _.startsWith(s"$name.")).map(one => names(new File(logs, one), _.endsWith(".log")).length).sum
        counted = System.nanoTime
      }
      kept < mostKept
    }

    private def names(folder: File, are: String => Boolean): Array[String] =
      Option(folder.list((_, one) => are(one))).getOrElse(Array.empty[String])
  }

  /** Whether a segment that Kafka wants to close is closed; it was made, or loaded, at a time in ms. */
  def rolls(wanted: Boolean, createdMs: Long, segment: LogSegment, params: RollParams): Boolean =
    wanted && (isFull(segment, params) || {
      val folder = segment.log.file.getParentFile
      val topic = folder.getName
      val dot = topic.indexOf('.')
      dot <= 0 || BoundedWork.isOwn(topic) || domains
        .computeIfAbsent(topic.substring(0, dot), new Domain(_))
        .takes(params.now - createdMs < youngMs, folder.getParentFile)
    })

  private def isFull(segment: LogSegment, params: RollParams): Boolean = {
    val offsets = params.maxOffsetInMessages - segment.baseOffset
    segment.size > params.maxSegmentBytes - params.messagesSize || offsets < 0 || offsets > Int.MaxValue ||
    segment.offsetIndex.isFull || segment.timeIndex.isFull
  }
}
