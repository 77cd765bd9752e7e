package mesh

import java.io.{IOException, OutputStream}
import java.util.concurrent.ConcurrentHashMap

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException
import org.apache.kafka.common.record.internal.{DefaultRecordBatch, MemoryRecords, RecordBatch}
import org.apache.kafka.common.requests.ProduceRequest
import org.apache.kafka.common.utils.BufferSupplier

/**
 * Holds logins that append intents to some times their quota of bytes, whatever connections they come
 * by. Kafka delays the connection whose request was too much, takes the next request from another one,
 * and counts bytes as they are sent. Here they count as the log keeps them, unpacked. [[PatchKafka]] has
 * Kafka ask before it appends.
 *
 * Properties of the JVM:
 *   mesh.appends.times=<n>     multiple of the quota that a login may append; Kafka's windows let a client
 *                              that honours its delays pass with up to twice the quota
 *   mesh.appends.late.ms=<n>   how far ahead of that a login may be; above it a request is refused
 */
object BoundedAppends {
  private val logins = ".intents"
  private val times = Integer.getInteger("mesh.appends.times", 4).intValue
  private val lateNs = Integer.getInteger("mesh.appends.late.ms", 3000).longValue * 1000000L
  private val longestS = 3600.0
  private val appenders = new ConcurrentHashMap[String, Appender]()

  /** Whether the request was answered with an error, and is not to be handled. */
  def refuses(apis: KafkaApis, request: RequestChannel.Request): Boolean = {
    val login = request.context.principal.getName
    login.endsWith(logins) && {
      val quota = apis.quotas.produce.quota(login, request.header.clientId).bound
      val seconds = math.min(size(request) / (quota * times), longestS)
      val appender = appenders.computeIfAbsent(login, _ => new Appender)
      val refused = !appender.takes((seconds * 1e9).toLong, lateNs)
      if (refused) {
        val text = s"$login has appended more than $times times its quota of ${quota.toLong} bytes a second"
        val error = new ThrottlingQuotaExceededException(text)
        apis.requestHelper.sendErrorResponseMaybeThrottle(request, error)
      }
      refused
    }
  }

  private def size(request: RequestChannel.Request): Long = {
    var found = 0L
    request.body[ProduceRequest].data.topicData.forEach(_.partitionData.forEach(_.records match {
      case records: MemoryRecords => records.batches.forEach(found += Unpacked.size(_))
      case _ => ()
    }))
    math.max(found, request.sizeInBytes)
  }
}

/** How large a batch is once it is unpacked, as the log keeps it. */
private object Unpacked {
  def size(batch: RecordBatch): Long = batch match {
    case packed: DefaultRecordBatch if packed.isCompressed =>
      try {
        val records = packed.recordInputStream(BufferSupplier.NO_CACHING)
        try records.transferTo(OutputStream.nullOutputStream) finally records.close()
      } catch {
        // it is refused when it is appended
        case _: RuntimeException | _: IOException => packed.sizeInBytes.toLong
      }
    case other => other.sizeInBytes.toLong
  }
}

/** What a login has appended, as the time that its quota needs for it. */
private class Appender {
  private var until = System.nanoTime

  /** Whether it is no further ahead of the time than `lateNs`; what it takes then counts. */
  def takes(costNs: Long, lateNs: Long): Boolean = synchronized {
    val now = System.nanoTime
    if (until - now < 0) until = now
    val fits = until - now <= lateNs
    if (fits) until += costNs
    fits
  }
}
