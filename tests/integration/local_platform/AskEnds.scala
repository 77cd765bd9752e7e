package mesh

import java.util.{LinkedHashMap, Optional}

import kafka.network.RequestChannel
import kafka.server.{DelayedFetch, KafkaApis}
import org.apache.kafka.server.common.RequestLocal
import org.apache.kafka.server.storage.log.{FetchIsolation, FetchParams}

/** Whether a thread is done with what it began where that ends by an error: `<what> <yes or no>`, a line each. */
object AskEnds {
  def main(arguments: Array[String]): Unit = {
    val waits = fetch()
    // nothing of a broker is there to look at
    say("answers", isFree("BoundedWork", "visit")(waits.onComplete()))
    say("looks", isFree("BoundedWork", "visit")(waits.tryComplete()))
    say("handles", isFree("BoundedHandlers", "current") {
      begin()
      BoundedRequests.handle(broker(), null, null)
    })
    say("permits", occupied == 0)
  }

  private def say(what: String, is: Boolean): Unit = println(s"$what ${if (is) "yes" else "no"}")

  private def isFree(bounds: String, kept: String)(act: => Unit): Boolean = {
    val failed = try { act; false } catch { case _: Throwable => true }
    failed && of(bounds, kept).asInstanceOf[ThreadLocal[AnyRef]].get == null
  }

  /** A broker that was never made, and has no memory left. */
  private class Full
      extends KafkaApis(
        null, null, null, null, null, null, null, 0, null, null, null, null, null, null, null, null, null, null, null,
        null, null, null, null) {
    override def handle(request: RequestChannel.Request, local: RequestLocal): Unit = throw new OutOfMemoryError
  }

  /** A fetch of east's that waits for what is not there. */
  private def fetch(): DelayedFetch = {
    val params = new FetchParams(0, 0L, 0L, 0, 0, FetchIsolation.LOG_END, Optional.empty)
    val find = BoundedWork.getClass.getDeclaredMethods.find(_.getName.endsWith("of")).get
    find.setAccessible(true)
    val work = find.invoke(BoundedWork, "east").asInstanceOf[Option[AnyRef]].get
    classOf[FetchParams].getField("whose").set(params, work)
    new DelayedFetch(params, new LinkedHashMap, null, null, null)
  }

  /** East's request occupies a handler. */
  private def begin(): Unit = {
    val pool = of("BoundedHandlers", "requests")
    val enter = pool.getClass.getDeclaredMethods.find(_.getName == "enter").get
    enter.setAccessible(true)
    enter.invoke(pool, "east", null)
  }

  private def occupied: Int = {
    val pool = of("BoundedHandlers", "requests")
    val field = pool.getClass.getDeclaredFields.find(_.getName.endsWith("occupied")).get
    field.setAccessible(true)
    field.getInt(pool)
  }

  private def broker(): KafkaApis = {
    val field = classOf[sun.misc.Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    field.get(null).asInstanceOf[sun.misc.Unsafe].allocateInstance(classOf[Full]).asInstanceOf[KafkaApis]
  }

  private def of(bounds: String, name: String): AnyRef = {
    val kind = Class.forName(s"mesh.$bounds$$")
    val field = kind.getDeclaredFields.find(one => one.getName == name || one.getName.endsWith(s"$$$name")).get
    field.setAccessible(true)
    field.get(kind.getField("MODULE$").get(null))
  }
}
