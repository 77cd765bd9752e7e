package mesh

import java.util

/** What a login used in the last seven days and in the seven before, `most` at a time. */
class Recent(most: Int) {
  private val week = 7L * 24 * 3600 * 1000000000L
  private val pause = 60L * 1000000000L
  private var now, before = new util.HashSet[Any]()
  private var began = System.nanoTime
  private var logged = began - pause

  /** Whether it is one of them, or there is room for it. */
  def has(one: Any): Boolean = synchronized {
    val age = System.nanoTime - began
    if (age > week) {
      before = if (age > 2 * week) new util.HashSet[Any]() else now
      now = new util.HashSet[Any]()
      began = System.nanoTime
    }
    val fits = now.contains(one) || before.remove(one) || now.size + before.size < most
    if (fits) now.add(one)
    fits
  }

  /** Whether a denial is to be logged: one a minute. */
  def isLogged(): Boolean = synchronized {
    val time = System.nanoTime
    val due = time - logged >= pause
    if (due) logged = time
    due
  }
}
