package mesh

import java.io.ByteArrayOutputStream
import java.util.Arrays

import scala.util.control.NonFatal

import org.apache.avro.Schema
import org.apache.avro.generic.{GenericDatumReader, GenericDatumWriter}
import org.apache.avro.io.{BinaryDecoder, DecoderFactory, EncoderFactory}
import org.apache.spark.sql.api.java.UDF2

/**
 * Whether keys have the bytes that Avro's writers give their values. Rows are told apart by the bytes
 * of keys, and Avro's readers take some others for the same value: numbers with more bytes than they
 * need, and bytes behind the last field. Used by one thread.
 */
class CanonicalKeys(schema: Schema) {
  private val reader = new GenericDatumReader[AnyRef](schema)
  private val writer = new GenericDatumWriter[AnyRef](schema)
  private var decoder: BinaryDecoder = _

  /** Of a key behind its schema's id, which takes five bytes. */
  def contain(wire: Array[Byte]): Boolean =
    try {
      decoder = DecoderFactory.get.binaryDecoder(wire, 5, wire.length - 5, decoder)
      val out = new ByteArrayOutputStream(wire.length)
      val encoder = EncoderFactory.get.directBinaryEncoder(out, null)
      writer.write(reader.read(null, decoder), encoder)
      encoder.flush()
      Arrays.equals(out.toByteArray, Arrays.copyOfRange(wire, 5, wire.length))
    } catch { case NonFatal(_) => false }
}

/** The SQL function (Avro schema of keys, key) -> whether it is canonical; null of what is no key. */
class IsCanonicalKey extends UDF2[String, Array[Byte], java.lang.Boolean] {
  @transient private var text: String = _
  @transient private var keys: CanonicalKeys = _

  override def call(schema: String, key: Array[Byte]): java.lang.Boolean =
    if (key == null || key.length < 5 || key(0) != 0) null
    else {
      if (keys == null || schema != text) {
        keys = new CanonicalKeys(new Schema.Parser().parse(schema))
        text = schema
      }
      keys.contain(key)
    }
}
