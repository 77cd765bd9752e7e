package mesh

/**
 * How long a fetch waits for records. One that waits was allowed when it came: while it waits, its login's
 * right may end. [[PatchKafka]] has Kafka ask when a fetch begins.
 *
 * Property of the JVM:
 *   mesh.fetch.wait.ms=<n>   at most, whatever the client asks for
 */
object BoundedWaits {
  private val most = Integer.getInteger("mesh.fetch.wait.ms", 2000).longValue

  def bounded(asked: Long): Long = math.min(asked, most)
}
