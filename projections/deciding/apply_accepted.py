"""What each accepted intent does to the image: one small function per intent."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch

from mesh_events import connectors as connecting
from mesh_events import facts, intents
from mesh_events import statements as streaming
from mesh_events.errors import StateFaultError
from mesh_events.meta import Event, milliseconds
from mesh_events.rows import AccessRow, ConnectorRow, LinkRow, ProductRow, StatementRow
from projections import access, catalog, identity, links, statements
from projections.connectors import state
from projections.connectors.state import Connectors
from projections.image import Image, purge_policy, reading_place
from projections.lineage import steps
from projections.links import Links
from projections.statements import DESTINATION_FREE, STATEMENT_SOUND, Statement, Statements


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What an accepted intent is applied with: where it stood, what decided it, who said it."""

    offset: int
    checks: Mapping[str, facts.Check]
    generation: int
    time: int
    by_operator: bool = False


@singledispatch
def apply_accepted(event: Event, image: Image, at: Acceptance) -> Image:
    """Let an accepted intent take effect."""
    del image
    raise StateFaultError(
        f"the decision at offset {at.generation} accepts a {event.type_name()}, which has no effect"
    )


@apply_accepted.register
def _(event: intents.ClusterRegistered, image: Image, at: Acceptance) -> Image:
    after = identity.cluster_registered(image.identity, event, at.generation)
    return image._replace(identity=after)


@apply_accepted.register
def _(event: intents.DomainRegistered, image: Image, at: Acceptance) -> Image:
    return image._replace(identity=identity.domain_registered(image.identity, event, at.generation))


@apply_accepted.register
def _(event: intents.KeyRegistered, image: Image, at: Acceptance) -> Image:
    return image._replace(identity=identity.key_registered(image.identity, event, at.generation))


@apply_accepted.register
def _(event: intents.KeyRevoked, image: Image, at: Acceptance) -> Image:
    return image._replace(identity=identity.key_revoked(image.identity, event, at.generation))


@apply_accepted.register
def _(event: intents.DomainFrozen, image: Image, at: Acceptance) -> Image:
    until = milliseconds(event.until)
    if event.duration_ms is not None:
        until = image.latest(at.time) + event.duration_ms
    elif image.clocks_disagree:
        # whichever clock is wrong, the freeze lasts as long as the operator has asked for
        until = max(until, at.time + until - milliseconds(event.meta.time))
    after = identity.domain_frozen(image.identity, event, until, at.generation)
    return image._replace(identity=after)


@apply_accepted.register
def _(event: intents.DomainThawed, image: Image, at: Acceptance) -> Image:
    del at
    return image._replace(identity=identity.domain_thawed(image.identity, event))


@apply_accepted.register
def _(event: intents.DomainQuarantined, image: Image, at: Acceptance) -> Image:
    after = identity.domain_quarantined(image.identity, event, at.generation)
    return _regranted(image._replace(identity=after), event.domain, at, again=False)


@apply_accepted.register
def _(event: intents.DomainReleased, image: Image, at: Acceptance) -> Image:
    after = identity.domain_released(image.identity, event, at.generation)
    return _regranted(image._replace(identity=after), event.domain, at, again=True)


def _regranted(image: Image, domain: str, at: Acceptance, *, again: bool) -> Image:
    """What a domain reads is to be taken from it, or given again, under its grants."""
    found = [one for one in image.access.requests.values() if one.consumer == domain]
    after = access.suspended(image.access, found, at.generation, again=again)
    return _access_changed(image, after, [one.request for one in found], at)


@apply_accepted.register
def _(event: intents.ApplicationRegistered, image: Image, at: Acceptance) -> Image:
    after = identity.application_registered(image.identity, event, at.generation)
    return image._replace(identity=after)


@apply_accepted.register
def _(event: intents.CredentialsRequested, image: Image, at: Acceptance) -> Image:
    after = identity.credentials_requested(image.identity, event, at.generation)
    return image._replace(identity=after)


@apply_accepted.register
def _(event: intents.ProductPublished, image: Image, at: Acceptance) -> Image:
    home = image.identity.domains[intents.domain_of(event.product)].cluster
    after = catalog.published(image.catalog, event, home, at.checks, at.generation, at.time)
    return image._replace(
        catalog=after,
        carried=image.carried.set(event.topic, event.product),
        touched=((ProductRow.topic, event.product),),
    )


@apply_accepted.register
def _(event: intents.ProductUpdated, image: Image, at: Acceptance) -> Image:
    after = catalog.updated(image.catalog, event, at.checks, at.generation, at.time)
    return image._replace(catalog=after, touched=((ProductRow.topic, event.product),))


@apply_accepted.register
def _(event: intents.AccessRequested, image: Image, at: Acceptance) -> Image:
    place = reading_place(image, event.product, event.application)
    after = access.requested(image.access, event, place, at.offset, at.generation, at.time)
    return image._replace(access=after, touched=((AccessRow.topic, event.meta.id),))


@apply_accepted.register
def _(event: intents.AccessGranted, image: Image, at: Acceptance) -> Image:
    after = access.granted(image.access, event, at.generation, at.time)
    return image._replace(access=after, touched=((AccessRow.topic, event.request),))


@apply_accepted.register
def _(event: intents.AccessDenied, image: Image, at: Acceptance) -> Image:
    after = access.denied(image.access, event, at.generation, at.time)
    return image._replace(access=after, touched=((AccessRow.topic, event.request),))


@apply_accepted.register
def _(event: intents.AccessRevoked, image: Image, at: Acceptance) -> Image:
    after = access.revoked(image.access, event, at.generation, at.time)
    return image._replace(access=after, touched=((AccessRow.topic, event.request),))


@apply_accepted.register
def _(event: intents.LinkCreated, image: Image, at: Acceptance) -> Image:
    product = image.catalog[event.product]
    after = links.created(
        image.links, event, product, at.generation, at.time, by_operator=at.by_operator
    )
    return _linked(image, after, event)


@apply_accepted.register
def _(event: intents.LinkPaused, image: Image, at: Acceptance) -> Image:
    name = links.link_id(event.product, event.cluster)
    image = image._replace(links=links.paused(image.links, name, event.meta.domain))
    return _redirected(image, event, links.Desired.PAUSED, at)


@apply_accepted.register
def _(event: intents.LinkResumed, image: Image, at: Acceptance) -> Image:
    if event.engine is not None:
        name = links.link_id(event.product, event.cluster)
        image = image._replace(links=links.taken_over(image.links, name, event.engine))
    return _redirected(image, event, links.Desired.RUNNING, at)


@apply_accepted.register
def _(event: intents.LinkDeleted, image: Image, at: Acceptance) -> Image:
    image = _redirected(image, event, links.Desired.DELETED, at)
    name = links.link_id(event.product, event.cluster)
    found = image.access.of_link(name)
    after = access.suspended(image.access, found, at.generation)
    return _access_changed(image, after, [one.request for one in found], at)


@apply_accepted.register
def _(event: streaming.StatementAdded, image: Image, at: Acceptance) -> Image:
    home = image.identity.domains[intents.domain_of(event.statement)].cluster
    sound, free = (
        found.evidence if (found := at.checks.get(check)) is not None else {}
        for check in (STATEMENT_SOUND, DESTINATION_FREE)
    )
    after = statements.added(image.statements, event, home, sound, free, at.generation, at.time)
    added = after[event.statement]
    image = _reworded(image, image.statements.get(event.statement), added)
    if added.destination_topic_id is None:
        # the check found no topic there: the one that it filled before was deleted
        place = (added.cluster, added.destination)
        image = image._replace(replaced=steps.emptied(image.replaced, place))
    return _stated(image, after, event)


@apply_accepted.register
def _(event: streaming.StatementUpdated, image: Image, at: Acceptance) -> Image:
    after = statements.updated(image.statements, event, at.generation, at.time)
    image = _reworded(image, image.statements[event.statement], after[event.statement])
    return _stated(image, after, event)


def _reworded(image: Image, before: Statement | None, after: Statement) -> Image:
    """What an earlier text of a statement read stands in what it filled."""
    if before is None:
        return image
    known = steps.replaced(
        image.replaced, [steps.of_statement(before)], [steps.of_statement(after)]
    )
    return image._replace(replaced=known)


@apply_accepted.register
def _(event: streaming.StatementStopped, image: Image, at: Acceptance) -> Image:
    return _directed(image, event, links.Desired.PAUSED, at)


@apply_accepted.register
def _(event: streaming.StatementStarted, image: Image, at: Acceptance) -> Image:
    return _directed(image, event, links.Desired.RUNNING, at)


@apply_accepted.register
def _(event: streaming.StatementDeleted, image: Image, at: Acceptance) -> Image:
    return _directed(image, event, links.Desired.DELETED, at)


def _directed(
    image: Image, event: streaming.StatementIntent, desired: links.Desired, at: Acceptance
) -> Image:
    by_operator = at.by_operator
    after = statements.redirected(
        image.statements, event, desired, at.generation, at.time, by_operator=by_operator
    )
    return _stated(image, after, event)


def _stated(image: Image, after: Statements, event: streaming.StatementIntent) -> Image:
    return image._replace(statements=after, touched=((StatementRow.topic, event.statement),))


@apply_accepted.register
def _(event: connecting.ConnectorAdded, image: Image, at: Acceptance) -> Image:
    home = image.identity.domains[intents.domain_of(event.connector)].cluster
    after = state.added(image.connectors, event, home, at.generation, at.time)
    return _connected(_reconfigured(image, after, event), after, event)


@apply_accepted.register
def _(event: connecting.ConnectorUpdated, image: Image, at: Acceptance) -> Image:
    after = state.updated(image.connectors, event, at.generation, at.time)
    return _connected(_reconfigured(image, after, event), after, event)


def _reconfigured(image: Image, after: Connectors, event: connecting.ConnectorIntent) -> Image:
    """What an earlier config of a connector read stands in what it filled."""
    before = image.connectors.get(event.connector)
    if before is None:
        return image
    known = steps.replaced(
        image.replaced, steps.of_connector(before), steps.of_connector(after[event.connector])
    )
    return image._replace(replaced=known)


@apply_accepted.register
def _(event: connecting.ConnectorStopped, image: Image, at: Acceptance) -> Image:
    return _steered(image, event, links.Desired.PAUSED, at)


@apply_accepted.register
def _(event: connecting.ConnectorStarted, image: Image, at: Acceptance) -> Image:
    return _steered(image, event, links.Desired.RUNNING, at)


@apply_accepted.register
def _(event: connecting.ConnectorDeleted, image: Image, at: Acceptance) -> Image:
    return _steered(image, event, links.Desired.DELETED, at)


def _steered(
    image: Image, event: connecting.ConnectorIntent, desired: links.Desired, at: Acceptance
) -> Image:
    by_operator = at.by_operator
    after = state.redirected(
        image.connectors, event, desired, at.generation, at.time, by_operator=by_operator
    )
    return _connected(image, after, event)


def _connected(image: Image, after: Connectors, event: connecting.ConnectorIntent) -> Image:
    return image._replace(connectors=after, touched=((ConnectorRow.topic, event.connector),))


def _access_changed(
    image: Image, after: access.Accesses, requests: list[str], at: Acceptance
) -> Image:
    changed = [one for one in requests if after.requests[one].changed == at.generation]
    rows = tuple((AccessRow.topic, request) for request in changed)
    return image._replace(access=after, touched=image.touched + rows)


def _redirected(
    image: Image, event: intents.LinkIntent, desired: links.Desired, at: Acceptance
) -> Image:
    name = links.link_id(event.product, event.cluster)
    policy = purge_policy(image, name)
    after = links.redirected(
        image.links, name, desired, at.generation, at.time, policy, by_operator=at.by_operator
    )
    return _linked(image, after, event)


def _linked(image: Image, after: Links, event: intents.LinkIntent) -> Image:
    name = links.link_id(event.product, event.cluster)
    return image._replace(links=after, touched=((LinkRow.topic, name),))
