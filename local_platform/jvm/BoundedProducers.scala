package mesh

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.security.MessageDigest
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import kafka.network.RequestChannel
import org.apache.kafka.common.errors.{ApiException, PolicyViolationException}
import org.apache.kafka.common.record.internal.MemoryRecords
import org.apache.kafka.common.requests.{AddPartitionsToTxnRequest, ProduceRequest}
import org.slf4j.LoggerFactory

/**
 * How many ids of producers a domain may have Kafka keep, which has each one of a partition in its heap for
 * `producer.id.expiration.ms`. Clients choose them. A partition that is added to a transaction has one from the end
 * of the transaction on, whether anything was written. All logins of a domain count together, and what they
 * name counts before their rights are asked: no more is kept of it than a digest.
 *
 * For each partition that is added to a transaction Kafka writes all of it anew: a request is charged by those that
 * its transactional id had in the hour.
 *
 * Property of the JVM:
 *   mesh.producers=<n>   different ones (id or transactional id, topic, partition) of a domain in an hour
 */
object BoundedProducers {
  private val most = Integer.getInteger("mesh.producers", 50000).intValue
  // a partition of a transaction is some hundred bytes of the log of transactions
  private val ofWrittenNs = 250L
  // of a topic
  private val longestName = 249
  private val log = LoggerFactory.getLogger("mesh.BoundedProducers")
  private val domains = new ConcurrentHashMap[String, Recent]()

  /** Why a request that appends is to be refused. */
  def fault(request: RequestChannel.Request): Option[ApiException] =
    refused(request) { kept =>
      val sent = request.body[ProduceRequest]
      val id = sent.transactionalId
      val transaction = if (id == null) "" else digest(id)
      val fit = fits(kept, sent, transaction)
      if (id != null) charge(request, kept, transaction)
      fit
    }

  /** Why a request that adds partitions to transactions is to be refused. */
  def added(request: RequestChannel.Request): Option[ApiException] =
    fresh(request, partitions(request).map { case (id, topic, partition) => Seq(id, topic, partition.toString) })

  /** The same of one that adds the offsets of a group: a partition of the topic that keeps them. */
  def committed(request: RequestChannel.Request, id: String, group: String): Option[ApiException] =
    fresh(request, Iterator(Seq(id, "", group)))

  /** Kafka refuses a longer name. */
  private def fresh(request: RequestChannel.Request, added: Iterator[Seq[String]]): Option[ApiException] =
    if (BoundedWork.isOwn(request.context.principal.getName)) None
    else refused(request) { kept =>
      var transactions = Set.empty[String]
      val fit = added.forall { names =>
        names.exists(_.length > longestName) || {
          val transaction = digest(names.head)
          transactions += transaction
          kept.has(digest(names.mkString("transaction\n", "\n", "")), transaction)
        }
      }
      transactions.foreach(charge(request, kept, _))
      fit
    }

  private def charge(request: RequestChannel.Request, kept: Recent, transaction: String): Unit =
    BoundedWork.charge(request.context.principal.getName, ofWrittenNs * kept.count(transaction))

  /** (transactional id, topic, partition) of each partition that a request adds. */
  def partitions(request: RequestChannel.Request): Iterator[(String, String, Int)] = {
    val data = request.body[AddPartitionsToTxnRequest].data
    val several = data.transactions.iterator.asScala.map(one => (one.transactionalId, one.topics))
    (Iterator((data.v3AndBelowTransactionalId, data.v3AndBelowTopics)) ++ several).flatMap { case (id, topics) =>
      topics.iterator.asScala.flatMap(topic =>
        topic.partitions.iterator.asScala.map(partition => (id, topic.name, partition.intValue)))
    }
  }

  private def refused(request: RequestChannel.Request)(fits: Recent => Boolean): Option[ApiException] = {
    val owner = BoundedWork.owner(request.context.principal.getName)
    val kept = domains.computeIfAbsent(owner, _ => new Recent(most, Recent.hour))
    if (fits(kept)) None
    else {
      val text = s"the logins of $owner have $most ids of producers and partitions of an hour, and may have no other"
      if (kept.isLogged()) log.warn("{}: {} is denied one", text, request.context.principal)
      Some(new PolicyViolationException(text))
    }
  }

  private def fits(kept: Recent, request: ProduceRequest, transaction: String): Boolean =
    request.data.topicData.stream.allMatch { topic =>
      topic.name.length > longestName || topic.partitionData.stream.allMatch { one =>
        val place = if (topic.name.isEmpty) topic.topicId else topic.name
        producer(one.records).forall(id => kept.has(digest(s"$place\n${one.index}\n$id"), transaction))
      }
    }

  /** A text of sixteen characters, of a byte each. */
  private def digest(text: String): String =
    new String(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)), 0, 16, ISO_8859_1)

  /** That of the first batch; Kafka refuses a second one of a partition. */
  private def producer(records: Any): Option[Long] = records match {
    case found: MemoryRecords =>
      try {
        val batches = found.batches.iterator
        if (batches.hasNext) Some(batches.next()).filter(_.hasProducerId).map(_.producerId) else None
      } catch {
        // it is refused when it is appended
        case _: RuntimeException => None
      }
    case _ => None
  }
}
