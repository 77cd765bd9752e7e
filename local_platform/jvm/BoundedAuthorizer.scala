package mesh

import java.util
import java.util.concurrent.ConcurrentHashMap

import org.apache.kafka.common.acl.AclOperation
import org.apache.kafka.common.resource.{ResourcePattern, ResourceType}
import org.apache.kafka.metadata.authorizer.StandardAuthorizer
import org.apache.kafka.server.authorizer.{Action, AuthorizableRequestContext, AuthorizationResult}
import org.slf4j.LoggerFactory

/**
 * The standard authorizer, with bounds for names that Kafka keeps for the logins that use them: those of
 * consumer groups and of transactional ids. Kafka bounds neither how long such a name is nor how
 * many a login uses, keeps offsets and ids for seven days.
 *
 * Settings of the broker:
 *   mesh.authorizer.characters=<n>   of a name of a group or transactional id
 *   mesh.authorizer.names=<n>        new ones of a login in seven days, of each of both kinds
 *
 * What is above a bound is denied, as without an ACL. Counting begins anew with the broker.
 */
class BoundedAuthorizer extends StandardAuthorizer {
  private var longest, most = Int.MaxValue
  private var privileged = Set.empty[String]
  private val log = LoggerFactory.getLogger(classOf[BoundedAuthorizer])
  private val logins = new ConcurrentHashMap[(String, String), Recent]()

  override def configure(settings: util.Map[String, _]): Unit = {
    super.configure(settings)
    longest = number(settings, "mesh.authorizer.characters")
    most = number(settings, "mesh.authorizer.names")
    val named = settings.get(StandardAuthorizer.SUPER_USERS_CONFIG)
    if (named != null) privileged = named.toString.split(";").map(_.trim).toSet
  }

  private def number(settings: util.Map[String, _], name: String): Int = {
    val found = settings.get(name)
    if (found == null) Int.MaxValue else found.toString.toInt
  }

  override def authorize(
      request: AuthorizableRequestContext, actions: util.List[Action]): util.List[AuthorizationResult] = {
    val results = super.authorize(request, actions)
    // nearly every request names none
    if (!actions.stream.anyMatch(isKept(_)) || privileged(request.principal.toString)) results
    else {
      val bounded = new util.ArrayList[AuthorizationResult](results)
      for (at <- 0 until actions.size) {
        val action = actions.get(at)
        if (isKept(action) && results.get(at) == AuthorizationResult.ALLOWED &&
            !fits(request.principal.toString, action.resourcePattern)) {
          bounded.set(at, AuthorizationResult.DENIED)
        }
      }
      bounded
    }
  }

  /** Whether Kafka keeps the name when this is allowed: who joins or commits reads, a transaction writes. */
  private def isKept(action: Action): Boolean = action.resourcePattern.resourceType match {
    case ResourceType.GROUP => action.operation == AclOperation.READ
    case ResourceType.TRANSACTIONAL_ID => action.operation == AclOperation.WRITE
    case _ => false
  }

  private def fits(login: String, resource: ResourcePattern): Boolean = {
    val (kind, name) = (resource.resourceType.toString, resource.name)
    val names = logins.computeIfAbsent((kind, login), _ => new Recent(most, Recent.week))
    val fault =
      if (name.length > longest) s"a name has $longest characters at most"
      else if (!names.has(name)) s"it has $most of seven days"
      else ""
    if (fault.nonEmpty && names.isLogged()) {
      log.warn("{} is denied a name of a {}: {}", login, kind, fault)
    }
    fault.isEmpty
  }
}
