package mesh

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
 */
object BoundedSegments {
  private val ofAll = Recent.hour / Integer.getInteger("mesh.segments", 1000).intValue
  private val ofYoung = Recent.hour / Integer.getInteger("mesh.segments.young", 200).intValue
  // the least `segment.ms` of a domain's topic
  private val youngMs = 600000L
  private val domains = new ConcurrentHashMap[String, Domain]()

  private class Domain {
    val all, young = new Spent

    def takes(isYoung: Boolean): Boolean =
      (!isYoung || young.takes(ofYoung, Recent.hour - ofYoung)) && all.takes(ofAll, Recent.hour - ofAll)
  }

  /** Whether a segment that Kafka wants to close is closed; it was made, or loaded, at a time in ms. */
  def rolls(wanted: Boolean, createdMs: Long, segment: LogSegment, params: RollParams): Boolean =
    wanted && (isFull(segment, params) || {
      val topic = segment.log.file.getParentFile.getName
      val dot = topic.indexOf('.')
      dot <= 0 || BoundedWork.isOwn(topic) || domains
        .computeIfAbsent(topic.substring(0, dot), _ => new Domain).takes(params.now - createdMs < youngMs)
    })

  private def isFull(segment: LogSegment, params: RollParams): Boolean = {
    val offsets = params.maxOffsetInMessages - segment.baseOffset
    segment.size > params.maxSegmentBytes - params.messagesSize || offsets < 0 || offsets > Int.MaxValue ||
    segment.offsetIndex.isFull || segment.timeIndex.isFull
  }
}
