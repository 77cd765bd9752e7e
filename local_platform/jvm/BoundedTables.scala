package mesh

import java.util

import org.apache.kafka.common.errors.InvalidRequestException

/**
 * What the tables cost that Kafka keeps names of requests and answers in. One that grows took its elements out
 * of itself one by one, which costs the cube of how many have the same hash. [[PatchKafka]] has Kafka's tables call
 * these methods.
 *
 * Property of the JVM:
 *   mesh.tables.steps=<n>       places that are looked at to read a domain's request; a connection with one
 *                               above that is closed. An answer has no bound: it may name what others have made
 *   mesh.tables.steps.own=<n>   the same for the platform's and the mesh's own logins
 */
object BoundedTables {
  private val steps = Integer.getInteger("mesh.tables.steps", 100000).intValue
  private val stepsOfOwn = Integer.getInteger("mesh.tables.steps.own", 5000000).intValue
  private val left = new ThreadLocal[Array[Int]]

  /** The thread begins to read a request, of a login that is not a domain's if it is an `own` one. */
  def begin(own: Boolean): Unit = left.set(Array(if (own) stepsOfOwn else steps))

  /** It has read it. */
  def end(): Unit = left.remove()

  /** A place is taken, and the next one is looked at. */
  def step(): Unit = {
    val mine = left.get
    if (mine != null) {
      mine(0) -= 1
      if (mine(0) < 0) throw new InvalidRequestException("a request names too much of the same hash")
    }
  }

  /** The elements of a table that is given up: they need not be taken out of it. */
  def all(elements: util.Iterator[AnyRef]): util.Iterator[AnyRef] = {
    val found = new util.ArrayList[AnyRef]
    elements.forEachRemaining(one => found.add(one))
    val each = found.iterator
    new util.Iterator[AnyRef] {
      override def hasNext: Boolean = each.hasNext
      override def next(): AnyRef = each.next()
      override def remove(): Unit = ()
    }
  }
}
