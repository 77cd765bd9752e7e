package mesh

/**
 * Bounds what a Kafka client of Connect's takes for the length of an answer. A client that speaks to a
 * port of another protocol, as one without TLS to one with, reads the alert of TLS as 338 MiB, for which
 * the worker's heap has no room: it ended at each start, before its connectors could be changed.
 */
object BoundedReceives {
  /** As many as a broker takes of a request by default; the largest answer is one fetch, or one record. */
  private val mostBytes = 100 * 1024 * 1024
  private val unlimited = -1

  /** The bound of an answer's bytes where the client has this one. */
  def most(bytes: Int): Int = if (bytes == unlimited) mostBytes else bytes
}
