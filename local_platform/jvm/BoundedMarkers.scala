package mesh

import java.util
import java.util.concurrent.BlockingQueue

import scala.jdk.CollectionConverters._

import kafka.coordinator.transaction.PendingCompleteTxnAndMarkerEntry

/**
 * How much of the markers that end transactions a broker sends at a time. Kafka sends all that there are in one request:
 * above what a broker reads at once, `socket.request.max.bytes`, it is refused, sent again as it was, and no transaction of
 * the cluster ends any more. [[PatchKafka]] has Kafka call this.
 *
 * Property of the JVM:
 *   mesh.markers.bytes=<n>   of one partition of the log of transactions: one marker more may come to a megabyte
 */
object BoundedMarkers {
  private val most = Integer.getInteger("mesh.markers.bytes", 512 << 10).intValue
  // ids and epochs of a marker, and the number of each partition
  private val (ofMarker, ofPartition) = (32, 8)

  /** In place of `queue.drainTo(markers)`; what is left is sent next. */
  def drain(
      queue: BlockingQueue[PendingCompleteTxnAndMarkerEntry],
      markers: util.Collection[PendingCompleteTxnAndMarkerEntry]
  ): Int = {
    var (count, bytes) = (0, 0)
    var next = queue.poll()
    while (next != null) {
      markers.add(next)
      count += 1
      bytes += size(next)
      next = if (bytes < most) queue.poll() else null
    }
    count
  }

  private def size(one: PendingCompleteTxnAndMarkerEntry): Int =
    ofMarker + one.txnMarkerEntry.partitions.asScala.iterator.map(_.topic.length + ofPartition).sum
}
