package mesh

import java.util

import kafka.network.RequestChannel
import kafka.server.KafkaApis
import org.apache.kafka.common.protocol.ApiKeys
import org.apache.kafka.server.common.RequestLocal

/**
 * How many of a broker's request handlers (`num.io.threads`) the requests of one domain occupy at a time, and
 * those of all domains together: whatever a request takes, handlers are left for everybody else. What is above
 * waits here and is handled by the next handler of a domain that is free, domain by domain in turn.
 *
 * Fetches are counted apart: what one reads can be seconds of work, and nobody else's request waits for them. So are
 * records: those for one partition are appended one after the other, and whoever waits for that occupies a handler.
 *
 * Records of a transaction are appended once its coordinator has answered, by another handler: that occupies one of
 * these again, and is ahead of the domain's requests that wait.
 *
 * Not of these: what is asked of a transaction, with which Kafka goes on in the handler that it began in; and what goes to the controller
 * as it came, whose buffer the handler releases.
 *
 * Properties of the JVM:
 *   mesh.handlers.domain=<n>    of one domain
 *   mesh.handlers.domains=<n>   of all domains
 *   mesh.handlers.fetches=<n>   of all domains' fetches, beside these; those of one domain as above
 *   mesh.handlers.appends=<n>   of all domains' records, likewise
 *   mesh.handlers.waiting=<n>   requests of one domain that wait; one more closes its connection
 *   mesh.handlers.bytes=<n>     of the requests of one domain that wait, likewise; other than records they count
 *                               sixteen times, fetches eight
 */
object BoundedHandlers {
  private val mostOfOne = Integer.getInteger("mesh.handlers.domain", 2).intValue
  private val mostWaiting = Integer.getInteger("mesh.handlers.waiting", 1000).intValue
  private val mostBytes = Integer.getInteger("mesh.handlers.bytes", 32 << 20).longValue
  private val unbounded = Set(ApiKeys.TXN_OFFSET_COMMIT, ApiKeys.ADD_OFFSETS_TO_TXN, ApiKeys.END_TXN)
  // a text of no characters has a byte in a request; a partition of a fetch has some thirty
  private val (ofObjects, ofPlaces) = (16L, 8L)
  private val requests = new Pool(Integer.getInteger("mesh.handlers.domains", 4).intValue)
  private val fetches = new Pool(Integer.getInteger("mesh.handlers.fetches", 3).intValue)
  private val appends = new Pool(Integer.getInteger("mesh.handlers.appends", 3).intValue)
  private val current = new ThreadLocal[Begun]
  private val isHandlingWaiting = ThreadLocal.withInitial[Boolean](() => false)

  @volatile private var broker: KafkaApis = _

  private class Domain {
    var occupied = 0
    var bytes = 0L
    val waiting = new util.ArrayDeque[Waiting]
  }

  /** A request that is to begin, or the rest of one, by whichever handler does it. */
  private case class Waiting(request: RequestChannel.Request, rest: Option[RequestLocal => Unit] = None)

  private case class Begun(pool: Pool, domain: Domain, request: RequestChannel.Request)

  /** Whether the request may be handled now; else it waits, or its connection was closed. */
  def begins(apis: KafkaApis, request: RequestChannel.Request): Boolean = {
    broker = apis
    val login = request.context.principal.getName
    val before = current.get
    if (BoundedWork.isOwn(login) || !isBounded(request)) true
    else if (before != null && (before.request eq request)) true
    else {
      // a handler that ended by an error, as for want of memory, has not told its end
      leave()
      val pool = request.header.apiKey match {
        case ApiKeys.FETCH => fetches
        case ApiKeys.PRODUCE => appends
        case _ => requests
      }
      val (begins, isRefused) = pool.enter(BoundedWork.owner(login), request)
      if (isRefused) apis.requestChannel.closeConnection(request, util.Map.of())
      begins
    }
  }

  /** Do the rest of a request that appends, now or as soon as it may. */
  def goesOn(request: RequestChannel.Request, local: RequestLocal)(rest: RequestLocal => Unit): Unit = {
    // as above
    leave()
    val owner = BoundedWork.owner(request.context.principal.getName)
    if (appends.enterAgain(owner, Waiting(request, Some(rest)))) {
      try rest(local) finally ends(broker, local)
    }
  }

  /** The request cannot be answered any more. */
  def closes(request: RequestChannel.Request): Unit = broker.requestChannel.closeConnection(request, util.Map.of())

  private def isBounded(request: RequestChannel.Request): Boolean = {
    val kind = request.header.apiKey
    !unbounded(kind) && !kind.forwardable
  }

  /** Records are kept as they came; of all else objects are made. */
  private def held(request: RequestChannel.Request): Long = request.sizeInBytes * (request.header.apiKey match {
    case ApiKeys.PRODUCE => 1L
    case ApiKeys.FETCH => ofPlaces
    case _ => ofObjects
  })

  /** The handler is done with the request that it began; it goes on with those that wait. */
  def ends(apis: KafkaApis, local: RequestLocal): Unit = {
    leave()
    if (!isHandlingWaiting.get) {
      isHandlingWaiting.set(true)
      try {
        var next = take()
        while (next != null) {
          try next.rest match {
            case None => BoundedRequests.handle(apis, next.request, local)
            case Some(rest) => try rest(local) finally apis.tryCompleteActions()
          } finally leave()
          next = take()
        }
      } finally isHandlingWaiting.set(false)
    }
  }

  private def leave(): Unit = {
    val done = current.get
    if (done != null) {
      current.remove()
      done.pool.leave(done.domain)
    }
  }

  private def take(): Waiting = {
    var found = requests.take()
    if (found == null) found = appends.take()
    if (found != null) found else fetches.take()
  }

  /** Handlers of a number, which domains share; all under its lock. */
  private class Pool(mostOfAll: Int) {
    private val domains = new util.HashMap[String, Domain]
    private val waiting = new util.ArrayDeque[Domain]
    private var occupied = 0

    /** Whether the request begins, or else is refused. */
    def enter(name: String, request: RequestChannel.Request): (Boolean, Boolean) = synchronized {
      val domain = domains.computeIfAbsent(name, _ => new Domain)
      if (isFree(domain)) {
        occupy(domain, request)
        (true, false)
      } else if (domain.waiting.size >= mostWaiting || domain.bytes + held(request) > mostBytes) (false, true)
      else {
        if (domain.waiting.isEmpty) waiting.add(domain)
        domain.waiting.add(Waiting(request))
        domain.bytes += held(request)
        (false, false)
      }
    }

    /** Whether the rest of a request goes on. It has begun, so it is never refused; there is one of a connection. */
    def enterAgain(name: String, rest: Waiting): Boolean = synchronized {
      val domain = domains.computeIfAbsent(name, _ => new Domain)
      val free = isFree(domain)
      if (free) occupy(domain, rest.request)
      else {
        if (domain.waiting.isEmpty) waiting.add(domain)
        domain.waiting.addFirst(rest)
      }
      free
    }

    /** A request that waits, of the domain whose turn it is; null where none may begin. */
    def take(): Waiting = synchronized {
      var found: Waiting = null
      var left = waiting.size
      while (found == null && left > 0) {
        val domain = waiting.poll()
        if (isFree(domain)) {
          found = domain.waiting.poll()
          if (found.rest.isEmpty) domain.bytes -= held(found.request)
          occupy(domain, found.request)
        }
        if (!domain.waiting.isEmpty) waiting.add(domain)
        left -= 1
      }
      found
    }

    def leave(domain: Domain): Unit = synchronized {
      domain.occupied -= 1
      occupied -= 1
    }

    private def isFree(domain: Domain): Boolean = domain.occupied < mostOfOne && occupied < mostOfAll

    private def occupy(domain: Domain, request: RequestChannel.Request): Unit = {
      domain.occupied += 1
      occupied += 1
      current.set(Begun(this, domain, request))
    }
  }
}
