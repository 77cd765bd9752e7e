"""Who may register under a subject: the domain whose name it begins with, with its own login."""

from mesh_events.errors import RefusedError
from mesh_events.intents import domain_of
from mesh_events.meta import MESH_DOMAIN
from projections.deciding.verdict import Refusal
from projections.image import Image
from projections.rules import names
from self_service.cli.mesh import brokers, lookup
from self_service.cli.mesh.callers import Caller
from self_service.cli.mesh.context import Mesh
from self_service.cli.schema.subjects import topic_of


def require_owner(mesh: Mesh, image: Image, who: Caller, subject: str) -> bool:
    """Refuse a subject that is not below the own prefix, `<domain>.`.

    Returns whether the topic exists.

    The registry has one login for all who write. So Kafka is asked with the domain's own login
    whether the topic of that name is the domain's: that needs its password, and is refused while
    the domain is in quarantine.

    Raises:
        RefusedError: `not_your_domain`, or Kafka's refusal.
        InvalidValueError: no topic can have that name.
        NotFoundError: the domain is not registered.
    """
    topic = topic_of(subject)
    owner = domain_of(topic)
    if who.domain in (MESH_DOMAIN, "") or owner != who.domain:
        whose = (
            f"subjects that begin with '{owner}.' belong to the domain {owner}: act as it with "
            f"`-d {owner}`, or ask it"
            if owner in image.identity.domains
            else f"its own subjects begin with '{who.domain}.'"
            if who.domain != MESH_DOMAIN
            else "choose the domain with -d"
        )
        raise RefusedError(
            "not_your_domain", f"{who.domain} may not register under {subject}: {whose}"
        )
    home = lookup.domain(image, who.domain).cluster
    try:
        names.topic(topic, who.domain)
    except Refusal as refusal:
        raise RefusedError(refusal.rejected.code, refusal.rejected.reason) from refusal
    return brokers.admin(mesh.login(image, home, who.principal)).topic(topic) is not None
