package mesh

/**
 * How long a fetch waits for records: one that waits was allowed when it came, and meanwhile its login's
 * right may end. (Sessions of consumers are not kept at all: `max.incremental.fetch.session.cache.slots`.)
 *
 * Property of the JVM:
 *   mesh.fetch.wait.ms=<n>   at most, whatever the client asks for
 */
object BoundedFetches {
  private val longest = Integer.getInteger("mesh.fetch.wait.ms", 2000).longValue

  /** How long a fetch that asks for so long waits. */
  def bounded(asked: Long): Long = math.min(asked, longest)
}
