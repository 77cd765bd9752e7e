package mesh

import java.time.{DateTimeException, LocalDate, OffsetDateTime, OffsetTime}

/**
 * What no table has of the times that a topic may have, by the types that Debezium and Connect have
 * for them.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
object Times {
  private val noMidnight = "a JDBC sink has no 24:00"
  private val tooFine = "a table has no time finer than a microsecond"
  private val tooEarly = "PostgreSQL's driver writes -infinity for what is before 4713 BC"
  private val noTime = "a JDBC sink reads no time in it, nor 24:00"
  private val tooLate = "PostgreSQL has no day after the year 5874897, and no time after 294276"
  private val dayMs = 86400000L
  private val dayUs = 86400000000L
  private val dayNs = 86400000000000L
  /** Of the first year that is written as it is, in days. */
  private val firstYear = -4712
  private val firstDay = LocalDate.of(firstYear, 1, 1).toEpochDay
  private val lastDay = LocalDate.of(5874897, 12, 31).toEpochDay
  /** Of the last year with times of day. */
  private val lastYear = 294276
  private val lastMs = (LocalDate.of(lastYear, 12, 31).toEpochDay + 1) * dayMs - 1
  /** What Debezium's captures have for -infinity, in microseconds. */
  private val noBegin = -9223372036832400000L
  /** The same in days. */
  private val noFirstDay = -2147472691L
  private val usOfNs = 1000L
  private val usDigits = 6

  /** Why a number of a type cannot be written; null if it can. */
  def fault(kind: String, number: Long): String =
    kind match {
      case "io.debezium.time.Time" | "org.apache.kafka.connect.data.Time" => ofDay(number, dayMs)
      case "io.debezium.time.MicroTime" => ofDay(number, dayUs)
      case "io.debezium.time.NanoTime" =>
        if (number % usOfNs != 0) tooFine else ofDay(number, dayNs)
      case "io.debezium.time.NanoTimestamp" => if (number % usOfNs != 0) tooFine else null
      case "io.debezium.time.Date" => if (number == noFirstDay) null else within(number, 1, lastDay)
      case "org.apache.kafka.connect.data.Date" => within(number, dayMs, lastDay * dayMs)
      case "org.apache.kafka.connect.data.Timestamp" => within(number, dayMs, lastMs)
      case "io.debezium.time.Timestamp" =>
        if (number == noBegin / usOfNs) null else within(number, dayMs, lastMs)
      case "io.debezium.time.MicroTimestamp" =>
        if (number == noBegin) null else within(number, dayUs, Long.MaxValue)
      case _ => null
    }

  /** Why a text of a type cannot be written; null if it can, or if the type is no time. */
  def fault(kind: String, text: String): String =
    kind match {
      case "io.debezium.time.ZonedTime" =>
        if (isFine(text)) tooFine else if (!isTime(text)) noTime else null
      case "io.debezium.time.ZonedTimestamp" =>
        if (text.equals("infinity") || text.equals("-infinity")) null
        else if (isFine(text)) tooFine
        else if (!isMoment(text)) noTime
        else if (text.startsWith("-") && yearOf(text) < firstYear) tooEarly
        else if (text.startsWith("+") && yearOf(text) > lastYear) tooLate
        else null
      case _ => null
    }

  private def ofDay(number: Long, day: Long): String =
    if (number < 0 || number >= day) noMidnight else null

  private def within(number: Long, day: Long, last: Long): String =
    if (number < firstDay * day) tooEarly else if (number > last) tooLate else null

  /** Whether it has more behind the point than microseconds. */
  private def isFine(text: String): Boolean = {
    val point = text.indexOf('.')
    var index = point + 1 + usDigits
    var found = false
    while (point >= 0 && index < text.length && Character.isDigit(text.charAt(index))) {
      found = found || text.charAt(index) != '0'
      index += 1
    }
    found
  }

  private def yearOf(text: String): Int = OffsetDateTime.parse(text).getYear

  private def isMoment(text: String): Boolean =
    try {
      OffsetDateTime.parse(text)
      true
    } catch { case _: DateTimeException => false }

  private def isTime(text: String): Boolean =
    try {
      OffsetTime.parse(text)
      true
    } catch { case _: DateTimeException => false }
}
