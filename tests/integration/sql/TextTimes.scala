package mesh

import java.time.ZoneOffset

import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.unsafe.types.UTF8String

/** What Spark reads of texts as times: microseconds of each argument, or `none`. */
object TextTimes {
  def main(texts: Array[String]): Unit = texts.foreach { text =>
    val found = DateTimeUtils.stringToTimestamp(UTF8String.fromString(text), ZoneOffset.UTC)
    println(found.fold("none")(_.toString))
  }
}
