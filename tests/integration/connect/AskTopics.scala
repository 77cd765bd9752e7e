package mesh

import java.nio.charset.StandardCharsets
import java.util

import org.apache.kafka.connect.data.Schema
import org.apache.kafka.connect.source.SourceRecord

/** Where the domain east's records for topics go, in Base64: a line "topic value header" for each. */
object AskTopics {
  def main(words: Array[String]): Unit = {
    val asked = new OwnTopics
    asked.configure(util.Map.of("domain", "east"))
    for (word <- words) {
      val topic = new String(util.Base64.getDecoder.decode(word), StandardCharsets.UTF_8)
      val record = new SourceRecord(util.Map.of, util.Map.of, topic, Schema.STRING_SCHEMA, "paid")
      record.headers.addString("id", "7")
      try {
        val led = asked.apply(record)
        println(led.topic + " " + led.value + " " + led.headers.lastWithName("id").value)
      } catch { case error: RefusedException => println("refused " + error.getMessage) }
    }
  }
}
