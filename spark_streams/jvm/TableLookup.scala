package mesh

import java.io.{ByteArrayOutputStream, StringReader}
import java.nio.ByteBuffer
import java.time.Duration
import java.util.{Arrays, HashMap, Properties}
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.hashing.MurmurHash3

import org.apache.avro.Schema
import org.apache.avro.generic.{GenericDatumReader, GenericDatumWriter, GenericRecord}
import org.apache.avro.io.{BinaryDecoder, DecoderFactory, EncoderFactory}
import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.serialization.ByteArrayDeserializer
import org.apache.spark.TaskContext
import org.apache.spark.sql.api.java.UDF3

/**
 * The SQL function (name of a table, key, partition) -> row: the latest row of a topic with that key,
 * or null. The partition is that of the record it is asked for: with a constant key and nothing else
 * Spark would ask once, before any task runs, and take the answer for a constant as well.
 *
 * Key and row are bare Avro, without a schema's id. The session names the table in its settings, as
 * `spark.mesh.table.secret.<name>`, in the form of a properties file:
 *
 *   kafka.*          of the consumer that reads the topic
 *   topic            the topic
 *   keys             ids of the schemas that keys begin with, which encode a key alike; separated by commas
 *   key              Avro schema of the keys
 *   change           true: a value is a change of a row, which stands in its field `after`
 *   reader           Avro schema that values are read with; the row is written with its own part of it
 *   schema.<id>      Avro schema of values that begin with this id
 *
 * Each executor reads the whole topic, once for all tasks that use the name. No row is given before
 * everything is read that the topic held when the table was opened: also what was committed behind a
 * transaction that was open then, for whose end the table waits. A record whose value cannot be
 * read fails every lookup of its key, until that key has a row that can: an older row, or none, would
 * be a wrong answer. A record without a key that a row could have is no row, and passed over. A key with
 * another schema's id ends the table: that schema may encode keys in another way. So does a key of other
 * bytes than Avro's writers give it, of which there may be several for one row, and a key in two
 * partitions, as after more were added: which of its records is the latest is not known. And so do keys of
 * two schemas in a topic of several partitions: the partition follows from the id, too.
 */
class TableLookup extends UDF3[String, Array[Byte], Integer, Array[Byte]] {
  // a task has an instance of its own, and all calls in it share that one, whatever they name
  @transient private lazy val tables = new HashMap[String, Table]()

  override def call(name: String, key: Array[Byte], partition: Integer): Array[Byte] = {
    val table = tables.computeIfAbsent(name, Table.ofThisTask(_))
    if (key == null) null else table(key)
  }
}

object Table {
  private val setting = "spark.mesh.table.secret."
  private val open = new ConcurrentHashMap[String, Table]()

  /** The loaded table; it is kept for as long as a task uses it, and a little longer. */
  def ofThisTask(name: String): Table = {
    val task = TaskContext.get()
    val table = open.compute(name, (_, known) =>
      if (known != null && known.join()) known
      else new Table(name, task.getLocalProperty(setting + name), closing => open.remove(name, closing)))
    task.addTaskCompletionListener[Unit](_ => table.leave())
    table.awaitLoaded()
    table
  }
}

class Table(name: String, text: String, closed: Table => Unit) {
  // between two batches of a query there is a moment without a task
  private val keptNs = 30L * 1000 * 1000 * 1000
  private val lookNs = 5L * 1000 * 1000 * 1000
  private val rows = new ConcurrentHashMap[Key, Array[Byte]]()
  private val unreadable = new ConcurrentHashMap[Key, String]()
  private var keyId: Option[Int] = None
  /** Key -> its partition; used by the table's thread. Until everything is read also of deleted rows. */
  private val places = new HashMap[Key, Integer]()
  private val loaded = new CountDownLatch(1)
  private var users = 1
  private var leftAt = 0L
  private var over = false
  @volatile private var fault: Throwable = _

  private val thread = new Thread(() => run(), s"table $name")
  thread.setDaemon(true)
  thread.start()

  def apply(key: Array[Byte]): Array[Byte] = {
    check()
    val wanted = new Key(key)
    // the row first: what is written again is there before it is readable no more
    val row = rows.get(wanted)
    val why = if (row == null && !unreadable.isEmpty) unreadable.get(wanted) else null
    if (why != null) throw new IllegalStateException(s"the table $name: $why")
    // between the two a row may have become readable again
    if (row == null) rows.get(wanted) else row
  }

  def awaitLoaded(): Unit = { loaded.await(); check() }

  /** One more task; false if the table is closed already. */
  def join(): Boolean = synchronized { if (!over) users += 1; !over }

  def leave(): Unit = synchronized { users -= 1; leftAt = System.nanoTime() }

  private def check(): Unit =
    if (fault != null) throw new IllegalStateException(s"the table $name: ${why(fault)}", fault)

  private def run(): Unit =
    try follow(Config(text))
    catch { case error: Throwable => fault = error } // also out of memory: a table that stands still is told
    finally { synchronized { over = true }; loaded.countDown(); closed(this) }

  private def follow(config: Config): Unit = {
    val consumer = new KafkaConsumer(config.kafka, new ByteArrayDeserializer, new ByteArrayDeserializer)
    try {
      val partitions = partitionsOf(consumer, config.topic)
      consumer.assign(partitions.asJava)
      // not to wherever it begins once it is asked: rows may be deleted meanwhile
      partitions.foreach(consumer.seek(_, 0L))
      val begins = consumer.beginningOffsets(partitions.asJava).asScala
      require(begins.values.forall(_ == 0), s"${config.topic} does not have its first records any more")
      val ends = endsOf(config, partitions)
      var looked = System.nanoTime()
      while (isUsed) {
        consumer.poll(Duration.ofMillis(500)).forEach(record => put(record, config, partitions.size))
        if (loaded.getCount > 0 && ends.forall { case (at, end) => consumer.position(at) >= end }) {
          places.keySet.removeIf(key => !rows.containsKey(key) && !unreadable.containsKey(key))
          loaded.countDown()
        }
        if (System.nanoTime() - looked > lookNs) {
          looked = System.nanoTime()
          val now = partitionsOf(consumer, config.topic).size
          require(now == partitions.size, s"${config.topic} has $now partitions now, and had ${partitions.size}")
        }
      }
    } finally consumer.close(Duration.ofSeconds(1))
  }

  /** Where the partitions end, whatever isolation the table is read with. */
  private def endsOf(config: Config, partitions: Seq[TopicPartition]): Map[TopicPartition, Long] = {
    val all = new Properties()
    all.putAll(config.kafka)
    all.put("isolation.level", "read_uncommitted")
    val consumer = new KafkaConsumer(all, new ByteArrayDeserializer, new ByteArrayDeserializer)
    try consumer.endOffsets(partitions.asJava).asScala.map { case (at, end) => at -> end.longValue }.toMap
    finally consumer.close(Duration.ofSeconds(1))
  }

  private def partitionsOf(consumer: KafkaConsumer[_, _], topic: String): Seq[TopicPartition] =
    consumer.partitionsFor(topic).asScala.map(one => new TopicPartition(topic, one.partition)).toSeq

  private def put(
      record: ConsumerRecord[Array[Byte], Array[Byte]], config: Config, partitions: Int): Unit = {
    val wire: Array[Byte] = record.key
    if (wire == null || wire.length < 5 || wire(0) != 0) return
    val id = ByteBuffer.wrap(wire, 1, 4).getInt
    require(config.keys(id),
      s"the key at ${record.topic}/${record.partition} offset ${record.offset} has the schema $id, " +
        "which was not registered for keys when the statement was planned")
    require(config.canonical.contain(wire),
      s"the key at ${record.topic}/${record.partition} offset ${record.offset} has not the bytes that Avro's " +
        "writers give it: it is not known of which row it is")
    if (partitions > 1) {
      require(keyId.forall(_ == id),
        s"the keys of ${record.topic} have the schemas ${keyId.getOrElse(id)} and $id, and it has $partitions " +
          "partitions: rows of one key may stand in two of them")
      keyId = Some(id)
    }
    val key = new Key(Arrays.copyOfRange(wire, 5, wire.length))
    if (partitions > 1) {
      val before = places.put(key, record.partition)
      require(before == null || before == record.partition,
        s"the key at ${record.topic}/${record.partition} offset ${record.offset} stands in partition $before " +
          "too, as after partitions were added: which of its rows is the latest is not known")
    }
    try {
      val row = config.row(record.value)
      if (row == null) rows.remove(key) else rows.put(key, row)
      if (row == null && loaded.getCount == 0) places.remove(key)
      unreadable.remove(key)
    } catch {
      case NonFatal(error) =>
        val place = s"the record at ${record.topic}/${record.partition} offset ${record.offset}"
        unreadable.put(key, s"$place cannot be read: ${why(error)}; write the row with this key again, and it goes on")
        rows.remove(key)
    }
  }

  /** What an exception says; some say nothing but their name. */
  private def why(error: Throwable): String =
    Option(error.getMessage).getOrElse(error.getClass.getSimpleName)

  private def isUsed: Boolean = synchronized {
    over = users == 0 && System.nanoTime() - leftAt > keptNs
    !over
  }
}

/** What the session says of a table, and how a value becomes a row. Used by one thread. */
class Config(
    val kafka: Properties, val topic: String, val keys: Set[Int], key: Schema,
    isChange: Boolean, reader: Schema, schemas: Map[Int, Schema]) {
  val canonical = new CanonicalKeys(key)
  private val rowSchema =
    if (isChange) reader.getField("after").schema.getTypes.asScala.find(_.getType == Schema.Type.RECORD).get
    else reader
  private val readers = schemas.map { case (id, schema) => id -> new GenericDatumReader[GenericRecord](schema, reader) }
  private val writer = new GenericDatumWriter[GenericRecord](rowSchema)
  private var decoder: BinaryDecoder = _

  /** The row that a record's value stands for, null if it says that there is none any more. */
  def row(value: Array[Byte]): Array[Byte] = if (value == null) null else {
    require(value.length >= 5 && value(0) == 0, "its value does not begin with a schema's id")
    val id = ByteBuffer.wrap(value, 1, 4).getInt
    require(readers.contains(id), s"its schema $id is not known to the statement")
    decoder = DecoderFactory.get.binaryDecoder(value, 5, value.length - 5, decoder)
    val read = readers(id).read(null, decoder)
    val row = if (isChange) Config.after(read) else read
    if (row == null) null else {
      val out = new ByteArrayOutputStream(128)
      val encoder = EncoderFactory.get.directBinaryEncoder(out, null)
      writer.write(row, encoder)
      encoder.flush()
      out.toByteArray
    }
  }
}

object Config {
  /** The row after a change, null behind a delete; sinks go by `op`. */
  private def after(change: GenericRecord): GenericRecord = {
    val row = change.get("after").asInstanceOf[GenericRecord]
    val op = String.valueOf(change.get("op"))
    require(
      if (row == null) op == "d" else Set("c", "r", "u")(op),
      "its op and its after contradict each other: no insert, update or delete is so")
    row
  }

  def apply(text: String): Config = {
    require(text != null, "the session says nothing of it")
    val all = new Properties()
    all.load(new StringReader(text))
    val kafka = new Properties()
    all.asScala.foreach { case (name, value) => if (name.startsWith("kafka.")) kafka.put(name.drop(6), value) }
    val schemas = all.asScala.collect {
      case (name, value) if name.startsWith("schema.") => name.drop(7).toInt -> new Schema.Parser().parse(value)
    }.toMap
    val keys = all.getProperty("keys", "").split(",").filter(_.nonEmpty).map(_.toInt).toSet
    new Config(
      kafka, all.getProperty("topic"), keys, new Schema.Parser().parse(all.getProperty("key")),
      all.getProperty("change").toBoolean,
      new Schema.Parser().parse(all.getProperty("reader")), schemas)
  }
}

/** Bytes that are compared by what they hold. */
final class Key(private val bytes: Array[Byte]) {
  override val hashCode: Int = MurmurHash3.bytesHash(bytes)
  override def equals(other: Any): Boolean = other match {
    case key: Key => Arrays.equals(bytes, key.bytes)
    case _ => false
  }
}
