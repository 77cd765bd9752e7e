package mesh

import java.io.{IOException, OutputStream}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.errors.{
  ApiException, InvalidRequestException, RecordTooLargeException, ThrottlingQuotaExceededException
}
import org.apache.kafka.common.record.internal.{DefaultRecordBatch, MemoryRecords, RecordBatch}
import org.apache.kafka.common.requests.ProduceRequest
import org.apache.kafka.common.utils.BufferSupplier

/**
 * Holds logins that append intents to some times their quota of bytes, whatever connections they come
 * by. Kafka delays the connection whose request was too much, takes the next request from another one,
 * and counts bytes as they are sent. Here they count as the log keeps them, unpacked, and of each
 * record a least number: who reads the log has work with each, and one can have seven bytes.
 *
 * Properties of the JVM:
 *   mesh.appends.times=<n>     multiple of the quota that a login may append; Kafka's windows let a client
 *                              that honours its delays pass with up to twice the quota
 *   mesh.appends.late.ms=<n>   how far ahead of that a login may be; above it a request is refused
 *   mesh.appends.records=<n>   records of a batch; above it RecordTooLargeException
 *   mesh.appends.record.bytes=<n>   what a smaller record counts
 */
object BoundedAppends {
  private val logins = ".intents"
  private val times = Integer.getInteger("mesh.appends.times", 4).intValue
  private val lateNs = Integer.getInteger("mesh.appends.late.ms", 3000).longValue * 1000000L
  private val records = Integer.getInteger("mesh.appends.records", 2000).intValue
  private val leastOfRecord = Integer.getInteger("mesh.appends.record.bytes", 8192).longValue
  private val longestS = 3600.0
  private val appenders = new ConcurrentHashMap[String, Spent]()

  /** Why the request is to be refused. */
  def fault(apis: KafkaApis, request: RequestChannel.Request): Option[ApiException] = {
    val login = request.context.principal.getName
    if (!login.endsWith(logins)) None
    else batches(request.body[ProduceRequest]) match {
      case batch :: Nil if count(batch) > records =>
        Some(new RecordTooLargeException(s"a batch of $login may have $records records"))
      case batch :: Nil =>
        val quota = apis.quotas.produce.quota(login, request.header.clientId).bound
        val appender = appenders.computeIfAbsent(login, _ => new Spent)
        def bytes = Unpacked.size(batch) max request.sizeInBytes.toLong max count(batch) * leastOfRecord
        def cost = bytes / (quota * times)
        // nothing is unpacked for one that is late already
        val fits = appender.takes(0, lateNs) &&
          appender.takes((math.min(cost, longestS) * 1e9).toLong, lateNs)
        if (fits) None
        else {
          val text = s"$login has appended more than $times times its quota of ${quota.toLong} bytes a second"
          Some(new ThrottlingQuotaExceededException(text))
        }
      case _ => Some(new InvalidRequestException(s"$login is to send one batch in a request"))
    }
  }

  /** Records of a batch, which says so itself; Kafka refuses one that says it wrongly. */
  private def count(batch: RecordBatch): Int = Option(batch.countOrNull).fold(Int.MaxValue)(_.intValue)

  /** Those of the request, two at most. */
  private def batches(request: ProduceRequest): List[RecordBatch] =
    request.data.topicData.asScala.iterator
      .flatMap(_.partitionData.asScala.iterator)
      .flatMap(_.records match {
        case records: MemoryRecords => records.batches.asScala.iterator
        case _ => Iterator.empty
      })
      .take(2)
      .toList
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
