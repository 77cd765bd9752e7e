package mesh

import org.apache.kafka.connect.data.Schema

/**
 * Refuses times that TimestampConverter would make others of: it takes a number for milliseconds, and
 * those of Debezium have microseconds by default. A timestamp of 2026 came as one of the year 58054.
 * [[PatchConnect]] has it ask this where it asks the schema of a field for its name.
 */
object Milliseconds {
  private val times = "io.debezium.time."
  private val finer =
    Array("MicroDuration", "MicroTime", "MicroTimestamp", "NanoDuration", "NanoTime", "NanoTimestamp")

  /** The name of a schema; ends with RefusedException where it is that of a finer time. */
  def nameOf(schema: Schema): String = {
    val name = schema.name
    for (one <- finer)
      if (name == times + one)
        throw new RefusedException(
          s"time_not_milliseconds: $one: TimestampConverter would take it for milliseconds")
    name
  }
}
