package mesh

import java.util

/**
 * What a login used in the last `windowNs` and in that before, `most` at a time. It is kept as texts: a set
 * finds one among many of the same hash by their order, which what has none would be looked through for.
 */
class Recent(most: Int, windowNs: Long) {
  private var now, before = new util.HashSet[String]()
  private var counts, countsBefore = new util.HashMap[String, Int]()
  private var began = System.nanoTime
  private val denials = new Pause

  /** Whether it is one of them, or there is room for it; it counts for the name that it is `of`. */
  def has(one: String, of: String = ""): Boolean = synchronized {
    val age = System.nanoTime - began
    if (age > windowNs) {
      before = if (age > 2 * windowNs) new util.HashSet[String]() else now
      now = new util.HashSet[String]()
      countsBefore = if (age > 2 * windowNs) new util.HashMap[String, Int]() else counts
      counts = new util.HashMap[String, Int]()
      began = System.nanoTime
    }
    val fits = now.contains(one) || before.remove(one) || now.size + before.size < most
    if (fits && now.add(one)) counts.merge(of, 1, _ + _)
    fits
  }

  /** How many of a name were used in both windows, at most: one of both is counted twice. */
  def count(of: String): Int = synchronized(counts.getOrDefault(of, 0) + countsBefore.getOrDefault(of, 0))

  /** How many there are. */
  def size: Int = synchronized(now.size + before.size)

  /** Whether a denial is to be logged. */
  def isLogged(): Boolean = denials.isOver()
}

object Recent {
  val hour: Long = 3600L * 1000000000L
  val week: Long = 7 * 24 * hour
}

/** What a login has used of something, as the time that it may take for it. */
class Spent {
  private var until = System.nanoTime

  /** It took so much, whatever it may. */
  def add(costNs: Long): Unit = synchronized {
    val now = System.nanoTime
    until = (if (until - now < 0) now else until) + costNs
  }

  /** Whether it is no further ahead of the time than `lateNs`; what it takes then counts. */
  def takes(costNs: Long, lateNs: Long): Boolean = synchronized {
    val now = System.nanoTime
    if (until - now < 0) until = now
    val fits = until - now <= lateNs
    if (fits) until += costNs
    fits
  }
}

/** A minute between two lines of a log. */
class Pause {
  private val pauseNs = 60L * 1000000000L
  private var last = System.nanoTime - pauseNs

  /** Whether it is over; then the next one begins. */
  def isOver(): Boolean = synchronized {
    val now = System.nanoTime
    val over = now - last >= pauseNs
    if (over) last = now
    over
  }
}
