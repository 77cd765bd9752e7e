package mesh

import java.nio.charset.StandardCharsets
import java.util
import java.util.Base64

import javax.security.auth.callback.{Callback, CallbackHandler, NameCallback, PasswordCallback}
import javax.security.auth.callback.UnsupportedCallbackException
import javax.security.auth.login.{Configuration, LoginContext, LoginException}

import jakarta.servlet.{DispatcherType, Filter, FilterChain, ServletContext}
import jakarta.servlet.{ServletRequest, ServletResponse}
import jakarta.servlet.http.{HttpServletRequest, HttpServletResponse}
import jakarta.ws.rs.core.{Context, Feature, FeatureContext}

import org.apache.kafka.common.utils.AppInfoParser
import org.apache.kafka.connect.rest.{ConnectRestExtension, ConnectRestExtensionContext}
import org.eclipse.jetty.ee10.servlet.{FilterHolder, ServletContextHandler, ServletContextRequest}
import org.eclipse.jetty.io.Connection
import org.eclipse.jetty.server.Server

/**
 * Adds `LoginFilter` in front of Connect's REST API, the paths between workers among them, and a
 * bound of its connections: Kafka's own extension asks for no login there. So it is for Connect clusters of one worker, which sends
 * no request to another one.
 *
 * Nothing of Scala's own library is used, so that Connect needs no more jars for it.
 */
class LoginFilterExtension extends ConnectRestExtension {
  private var logins: Configuration = null

  // as early as Kafka's own extension: connectors can alter what the JVM has
  override def configure(settings: util.Map[String, _]): Unit =
    logins = Configuration.getConfiguration

  override def register(context: ConnectRestExtensionContext): Unit =
    context.configurable.register(new LoginFilterFeature(logins))

  override def version: String = AppInfoParser.getVersion

  override def close(): Unit = ()
}

/** Adds the filter while the servlet starts; without it the worker does not start. */
class LoginFilterFeature(logins: Configuration) extends Feature {
  @Context private var servlets: ServletContext = null

  override def configure(features: FeatureContext): Boolean = {
    val added = new FilterHolder(new LoginFilter(logins))
    added.setAsyncSupported(true)
    // the servlet's own interface takes no filter any more when its servlets are made
    val handler = ServletContextHandler.getServletContextHandler(servlets)
    handler.addFilter(added, "/*", util.EnumSet.of(DispatcherType.REQUEST))
    added.start()
    added.initialize()
    Connections.bound(handler.getServer)
    true
  }
}

/**
 * Bounds the connections of Connect's REST API by which no login has come, which Jetty accepts without an end: each holds
 * memory for a head that may never be complete. With one more, the first of them is closed, so that whoever has a
 * login finds a place.
 */
object Connections extends Connection.Listener {
  private val most = 500
  /** The first one first; under its own lock. */
  private val unknown = new util.LinkedHashSet[Connection]()

  def bound(server: Server): Unit = {
    // connections ask their connectors, which run by now, for who listens when they open
    val connectors = server.getConnectors
    var index = 0
    while (index < connectors.length) {
      connectors(index).addEventListener(this)
      // who came before this
      val open = connectors(index).getConnectedEndPoints.iterator
      while (open.hasNext) {
        val connection = open.next().getConnection
        if (connection != null) onOpened(connection)
      }
      index += 1
    }
  }

  override def onOpened(connection: Connection): Unit = {
    val first = unknown.synchronized {
      unknown.add(connection)
      if (unknown.size <= most) null
      else {
        val all = unknown.iterator
        val found = all.next()
        all.remove()
        found
      }
    }
    if (first != null) first.getEndPoint.close()
  }

  override def onClosed(connection: Connection): Unit = hasLogin(connection)

  /** It is no more one of those that are bounded; whether it was. */
  def hasLogin(connection: Connection): Boolean = unknown.synchronized(unknown.remove(connection))
}

/**
 * Refuses a request without a login of Connect's users (401), one with a body of unknown length
 * (411) and one with a body above a mebibyte (413), and closes its connection.
 *
 * It looks at the head alone. Nothing of the body is read, and no thread waits for it: Jersey reads
 * forms before its own filters run, and what is between workers before their signature is checked.
 */
class LoginFilter(logins: Configuration) extends Filter {
  // as Kafka's own extension, whose users these are
  private val entry = "KafkaConnect"
  private val scheme = "Basic "
  private val longest = 1L << 20

  override def doFilter(
      request: ServletRequest, response: ServletResponse, chain: FilterChain): Unit = {
    val asked = request.asInstanceOf[HttpServletRequest]
    val answer = response.asInstanceOf[HttpServletResponse]
    if (!knows(asked.getHeader("Authorization")))
      refuse(answer, HttpServletResponse.SC_UNAUTHORIZED, "give a user and a password of Connect")
    else if (asked.getHeader("Transfer-Encoding") != null)
      refuse(answer, HttpServletResponse.SC_LENGTH_REQUIRED, "give the Content-Length")
    else if (asked.getContentLengthLong > longest)
      refuse(answer, HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE, "a body has 1 MiB at most")
    else {
      Connections.hasLogin(ServletContextRequest.getServletContextRequest(request).getConnectionMetaData.getConnection)
      chain.doFilter(request, response)
    }
  }

  private def refuse(answer: HttpServletResponse, status: Int, text: String): Unit = {
    answer.setStatus(status)
    answer.setHeader("Connection", "close")
    answer.setContentType("text/plain")
    answer.getOutputStream.write(text.getBytes(StandardCharsets.UTF_8))
  }

  private def knows(header: String): Boolean = {
    val login = decoded(header)
    val colon = login.indexOf(':')
    colon > 0 && {
      val handler = new LoginHandler(login.substring(0, colon), login.substring(colon + 1))
      try {
        new LoginContext(entry, null, handler, logins).login()
        true
      } catch {
        case _: LoginException => false
      }
    }
  }

  private def decoded(header: String): String =
    if (header == null || !header.regionMatches(true, 0, scheme, 0, scheme.length)) ""
    else
      try new String(Base64.getDecoder.decode(header.substring(scheme.length)), StandardCharsets.UTF_8)
      catch {
        case _: IllegalArgumentException => ""
      }
}

/** Gives user and password to the login module. */
class LoginHandler(user: String, password: String) extends CallbackHandler {
  override def handle(callbacks: Array[Callback]): Unit = {
    var index = 0
    while (index < callbacks.length) {
      val callback = callbacks(index)
      if (callback.isInstanceOf[NameCallback])
        callback.asInstanceOf[NameCallback].setName(user)
      else if (callback.isInstanceOf[PasswordCallback])
        callback.asInstanceOf[PasswordCallback].setPassword(password.toCharArray)
      else throw new UnsupportedCallbackException(callback)
      index += 1
    }
  }
}
