"""How far an accepted intent has got, read off the image: pure.

`decided` is the governor's decision. `applied`: the rights and logins that it calls for exist on
the clusters, or are gone. `active`: all that follows is done too, the copy runs or is purged.
"""

from enum import Enum, auto

from mesh_events import intents
from mesh_events.connectors import ConnectorDeleted, ConnectorIntent, ConnectorStopped
from mesh_events.intents import Intent
from mesh_events.rows import AccessState, ConnectorState, LinkState, StatementState
from mesh_events.statements import StatementDeleted, StatementIntent, StatementStopped
from projections.access import ENTITLED
from projections.identity import LOGIN_TAKEN, Application, Credentials, Domain
from projections.image import Image
from projections.links import link_id
from self_service.cli.framework.options import Until
from spark_streams.errors import RETRIABLE, TABLE_FILLING, WITHHELD

_STANDS = "(it is on the log and does not run: update or delete it)"


class Progress(Enum):
    """What the image says about the wanted stage."""

    PENDING = auto()
    REACHED = auto()
    OVERTAKEN = auto()
    """Something else was decided meanwhile: the stage will not come."""


def progress(image: Image, intent: Intent, until: Until) -> Progress:
    """How far `intent`, which was accepted, is from the stage `until`."""
    if until is Until.DECIDED:
        return Progress.REACHED
    if _refused(image, intent) is not None:
        return Progress.OVERTAKEN
    match intent:
        case intents.DomainRegistered():
            return _domain_ready(image, intent.domain)
        case intents.ApplicationRegistered():
            return _application_ready(image, intent.application)
        case intents.DomainQuarantined():
            return _cut_off(image, intent.domain)
        case intents.DomainReleased():
            return _back(image, intent.domain)
        case intents.CredentialsRequested():
            return _of(_issued(image, intent.principal, intent.cluster))
        case _:
            return _access_or_link(image, intent, until)


def _access_or_link(image: Image, intent: Intent, until: Until) -> Progress:
    match intent:
        case intents.AccessRequested():
            return _requested(image, intent.meta.id, until)
        case intents.AccessGranted():
            return _granted(image, intent.request, until)
        case intents.AccessRevoked():
            return _revoked(image, intent.request, until)
        case intents.LinkIntent():
            return _linked(image, intent)
        case StatementIntent():
            return _stated(image, intent)
        case ConnectorIntent():
            return _connected(image, intent)
    return Progress.REACHED


def where(image: Image, intent: Intent) -> str:
    """The state of what the intent is about, in a word or two; empty where it has none."""
    match intent:
        case intents.AccessRequested():
            return image.access.requests[intent.meta.id].state.value
        case intents.AccessGranted() | intents.AccessDenied() | intents.AccessRevoked():
            return image.access.requests[intent.request].state.value
        case intents.LinkIntent():
            link = image.links[link_id(intent.product, intent.cluster)]
            return link.state.value + (f" ({link.failure})" if link.failure else "")
        case StatementIntent():
            statement = image.statements[intent.statement]
            return statement.state.value + (f" ({statement.failure})" if statement.failure else "")
        case ConnectorIntent():
            connector = image.connectors[intent.connector]
            return connector.state.value + (f" ({connector.failure})" if connector.failure else "")
        case intents.ProductPublished() | intents.ProductUpdated():
            return "PUBLISHED"
    return ""


def overtaken(image: Image, intent: Intent) -> str:
    """What became of what the intent is about, since something else was decided meanwhile."""
    match intent:
        case intents.DomainQuarantined() | intents.DomainReleased():
            is_cut_off = intent.domain in image.identity.quarantines
            state = "in quarantine" if is_cut_off else "not in quarantine"
        case _:
            state = where(image, intent)
    return f"{intent.key} is {state} meanwhile" if state else f"{intent.key} was changed meanwhile"


def awaited(image: Image, intent: Intent) -> str:
    """The link that a grant waits for, in words; empty where it waits for none."""
    if not isinstance(intent, intents.AccessGranted):
        return ""
    link = image.links.get(image.access.requests[intent.request].link or "")
    if link is None or link.is_active:
        return ""
    failed = f" ({link.failure})" if link.failure else ""
    return f", and the link {link.id} is {link.shown_state}{failed}"


def failure(image: Image, intent: Intent) -> tuple[str, str] | None:
    """(code, reason) where what the intent is about has failed for good, else None."""
    if (refused := _refused(image, intent)) is not None:
        return LOGIN_TAKEN, f"{refused.failure} ({refused.principal} stays registered)"
    if isinstance(intent, ConnectorIntent):
        connector = image.connectors[intent.connector]
        if connector.state is ConnectorState.FAILED:
            return connector.failure_code or "task_failed", f"{connector.failure or ''} {_STANDS}"
        return None
    if not isinstance(intent, StatementIntent):
        return None
    statement = image.statements[intent.statement]
    if statement.state is not StatementState.FAILED:
        return None
    return statement.failure_code or "query_failed", f"{statement.failure or ''} {_STANDS}"


def _refused(image: Image, intent: Intent) -> Credentials | None:
    """A login that the intent calls for and that only a person can make possible."""
    match intent:
        case intents.DomainRegistered():
            principals = {intent.domain, intents.intents_login(intent.domain)}
        case intents.ApplicationRegistered():
            principals = {intent.application}
        case intents.CredentialsRequested():
            principals = {intent.principal}
        case _:
            return None
    logins = (one for _, one in sorted(image.identity.credentials.items()))
    taken = (one for one in logins if one.principal in principals)
    return next((one for one in taken if one.failure_code == LOGIN_TAKEN), None)


def _of(condition: object) -> Progress:
    return Progress.REACHED if condition else Progress.PENDING


def _issued(image: Image, principal: str, cluster: str) -> bool:
    found = image.identity.credentials.get((principal, cluster))
    return found is not None and found.issued == found.generation


def _domain_ready(image: Image, name: str) -> Progress:
    domain = image.identity.domains[name]
    governance = image.identity.governance_cluster
    places = {domain.cluster, governance}
    logins = {*((name, place) for place in places), (intents.intents_login(name), governance)}
    issued = all(_issued(image, principal, place) for principal, place in logins)
    return _of(issued and places <= set(domain.rights))


def _application_ready(image: Image, name: str) -> Progress:
    application = image.identity.applications[name]
    home = image.identity.domains[intents.domain_of(name)].cluster
    return _of(home in application.rights and _issued(image, name, home))


def _own(image: Image, name: str) -> list[Domain | Application]:
    """A domain and its applications."""
    identity = image.identity
    found = [one for id_, one in identity.applications.items() if intents.domain_of(id_) == name]
    return [identity.domains[name], *found]


def _cut_off(image: Image, name: str) -> Progress:
    if name not in image.identity.quarantines:
        return Progress.OVERTAKEN
    left = any(one.rights for one in _own(image, name))
    reads = any(
        one.is_enforced or one.withdrawing
        for one in image.access.requests.values()
        if one.consumer == name
    )
    jobs = (*image.statements.values(), *image.connectors.values())
    runs = any(
        one.domain == name
        and one.stands
        and not one.is_at_rest
        # what fails for want of a right has none, and does not run
        and one.failure_code not in WITHHELD
        for one in jobs
    )
    return _of(not left and not reads and not runs)


def _back(image: Image, name: str) -> Progress:
    """The rights of its own are back; those by grants come with what they are granted on."""
    if name in image.identity.quarantines:
        return Progress.OVERTAKEN
    domain = image.identity.domains[name]
    places = {domain.cluster, image.identity.governance_cluster}
    back = all(domain.rights.get(place) == domain.generation for place in places)
    theirs = [one for one in _own(image, name) if isinstance(one, Application)]
    return _of(back and all(one.rights.get(domain.cluster) == one.generation for one in theirs))


def _requested(image: Image, request: str, until: Until) -> Progress:
    """A request is applied when it stands in the image, active when the consumer can read."""
    state = image.access.requests[request].state
    if until is Until.APPLIED or state is AccessState.ACTIVE:
        return Progress.REACHED
    ended = (AccessState.DENIED, AccessState.REVOKING, AccessState.REVOKED)
    return Progress.OVERTAKEN if state in ended else Progress.PENDING


def _granted(image: Image, request: str, until: Until) -> Progress:
    access = image.access.requests[request]
    if access.state not in ENTITLED:
        return Progress.OVERTAKEN
    if until is Until.APPLIED or access.link is None:
        return _of(access.state is AccessState.ACTIVE)
    link = image.links.get(access.link)
    copying = link is not None and link.state is LinkState.ACTIVE
    return _of(copying and access.state is AccessState.ACTIVE)


def _revoked(image: Image, request: str, until: Until) -> Progress:
    access = image.access.requests[request]
    if until is Until.APPLIED or access.link is None:
        return _of(access.state is AccessState.REVOKED)
    others = any(one.state in ENTITLED for one in image.access.of_link(access.link))
    link = image.links.get(access.link)
    gone = link is None or link.state is LinkState.DELETED
    return _of(access.state is AccessState.REVOKED and (others or gone))


def _linked(image: Image, intent: intents.LinkIntent) -> Progress:
    wanted = {
        intents.LinkCreated: LinkState.ACTIVE,
        intents.LinkResumed: LinkState.ACTIVE,
        intents.LinkPaused: LinkState.PAUSED,
        intents.LinkDeleted: LinkState.DELETED,
    }[type(intent)]
    return _of(image.links[link_id(intent.product, intent.cluster)].state is wanted)


def _stated(image: Image, intent: StatementIntent) -> Progress:
    """A statement that only a person can mend will not become active by itself."""
    statement = image.statements[intent.statement]
    match intent:
        case StatementStopped():
            return _of(statement.state is StatementState.STOPPED)
        case StatementDeleted():
            return _of(statement.state is StatementState.DELETED)
    failed = statement.state is StatementState.FAILED
    if failed and statement.failure_code not in RETRIABLE | {TABLE_FILLING}:
        return Progress.OVERTAKEN
    return _of(statement.state is StatementState.ACTIVE)


def _connected(image: Image, intent: ConnectorIntent) -> Progress:
    """A connector that has failed is told at once, though it is started again by itself."""
    connector = image.connectors[intent.connector]
    match intent:
        case ConnectorStopped():
            return _of(connector.state is ConnectorState.STOPPED)
        case ConnectorDeleted():
            return _of(connector.state is ConnectorState.DELETED)
    if connector.state is ConnectorState.FAILED:
        return Progress.OVERTAKEN
    return _of(connector.state is ConnectorState.ACTIVE)
