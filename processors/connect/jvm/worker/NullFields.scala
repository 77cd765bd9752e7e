package mesh

import org.apache.kafka.connect.data.Schema

/**
 * Lets null be the value of a field that may be null. Kafka Connect gives the default of such a field
 * instead to converters, transforms and sinks: NULL in a column with a DEFAULT came as that default.
 * [[PatchConnect]] has Connect ask this where it asked the schema.
 */
object NullFields {
  /** What stands for a value that is not there; null where the field may be null. */
  def defaultOf(schema: Schema): Object = if (schema.isOptional) null else schema.defaultValue
}
