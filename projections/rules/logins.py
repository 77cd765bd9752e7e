"""Rules that keep the logins of domains and applications apart from those of administrators."""

from mesh_events.intents import domain_of, intents_login
from mesh_events.meta import MESH_DOMAIN
from projections.deciding.verdict import DecisionContext, require

_MESH = f"{MESH_DOMAIN}."


def not_an_administrator(context: DecisionContext, principal: str) -> None:
    """Refuse a principal with whose name the mesh administers a cluster.

    The mesh sets the password of every principal that it issues credentials to, and hands it out.
    """
    clusters = sorted(
        cluster.name
        for cluster in context.image.identity.clusters.values()
        if cluster.admin_user == principal
    )
    require(
        not clusters,
        "administrator_login",
        f"{principal!r} is the login of the administrator of cluster {', '.join(clusters)}: "
        "choose another name",
    )


def no_principal_of_the_mesh(context: DecisionContext, admin_user: str) -> None:
    """Refuse an administrator's login with the name of a principal that the mesh issues."""
    identity = context.image.identity
    domain = domain_of(admin_user)
    issued = (
        admin_user in identity.domains
        or admin_user in identity.applications
        or (domain in identity.domains and admin_user == intents_login(domain))
    )
    require(
        not issued and not admin_user.startswith(_MESH),
        "administrator_login",
        f"admin_user is {admin_user!r}, whose password the mesh issues: administer the cluster "
        f"with a login that is no domain, no application and does not begin with '{_MESH}'",
    )
