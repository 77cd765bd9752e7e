"""The state of the whole mesh after one record of the log, and the fold that makes the next.

`apply` is pure. Only decisions under the latest epoch change rights, ownership and existence;
facts under the keeper's key change status; anything else waits, undecided, for the governor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch

from immutables import Map

from mesh_events import facts, intents
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentAccepted,
    MeshFounded,
    SchemaIntroduced,
)
from mesh_events.errors import StateFaultError
from mesh_events.intents import Intent
from mesh_events.meta import Event
from mesh_events.record import Entry, Fault, FaultCode
from mesh_events.rows import AccessRow, LinkRow, ProductRow
from projections import access, catalog, identity, links
from projections import intents as pending
from projections.access import Accesses
from projections.catalog import Catalog
from projections.identity import Identity, Role
from projections.intents import Intents
from projections.links import Links

RowKey = tuple[str, str]
"""(row topic, row key)."""


@dataclass(frozen=True, slots=True)
class Image:
    """Everything the log has said up to and including `offset`.

    `time` is the running maximum of append times in ms. `epoch` is the offset of the latest
    GovernorStarted, -1 before the first, and `epoch_time` its append time; `starts` maps the ids
    of all of them to their offsets. `ignored` counts decisions that came under an old epoch or
    twice. `touched` names the rows that the last applied record may have changed.
    """

    offset: int = -1
    time: int = 0
    epoch: int = -1
    epoch_time: int = 0
    starts: Map[str, int] = field(default_factory=Map)
    ignored: int = 0
    schemas: Map[int, str] = field(default_factory=Map)
    identity: Identity = field(default_factory=Identity)
    catalog: Catalog = catalog.EMPTY
    access: Accesses = access.EMPTY
    links: Links = links.EMPTY
    intents: Intents = pending.EMPTY
    touched: tuple[RowKey, ...] = field(default=(), compare=False)


EMPTY = Image()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What an accepted intent is enacted with: where it stood, and what decided it."""

    offset: int
    checks: Mapping[str, facts.Check]
    generation: int
    time: int


def apply(image: Image, entry: Entry) -> Image:
    """The image after `entry`, which must be the next readable record of the log.

    Raises:
        StateFaultError: the entry stands at or before the image's offset, or a decision accepts
            what this version cannot read.
    """
    if entry.offset <= image.offset:
        raise StateFaultError(f"offset {entry.offset} was folded already, up to {image.offset}")
    image = replace(image, offset=entry.offset, time=max(image.time, entry.time), touched=())
    event = entry.event
    if event is None or isinstance(event, Intent):
        return _waiting(image, entry)
    if isinstance(event, SchemaIntroduced | MeshFounded):
        return _foundation(image, entry, event)
    needed = Role.KEEPER if isinstance(event, facts.Fact) else Role.GOVERNOR
    if not image.identity.has_role(entry.signer, needed):
        return _forged(image, entry, event, needed)
    if isinstance(event, GovernorStarted):
        return _started(image, entry, event)
    if isinstance(event, Decision):
        return _decided(image, entry, event)
    return _reported(image, entry, event)


def _waiting(image: Image, entry: Entry) -> Image:
    return replace(image, intents=pending.arrived(image.intents, entry))


def _forged(image: Image, entry: Entry, event: Event, needed: Role) -> Image:
    """Somebody spoke in the name of the governor or a keeper: it waits to be set aside."""
    reason = f"{event.type_name()} must be signed by the {needed}'s key"
    fault = Fault(FaultCode.FORGED, reason)
    return _waiting(image, replace(entry, event=None, fault=fault))


def _foundation(image: Image, entry: Entry, event: SchemaIntroduced | MeshFounded) -> Image:
    if image.identity.root is None and isinstance(event, SchemaIntroduced) and entry.signer:
        image = replace(image, identity=identity.rooted(image.identity, entry.signer))
    is_root = image.identity.has_role(entry.signer, Role.ROOT)
    if isinstance(event, SchemaIntroduced):
        if not is_root and not image.identity.has_role(entry.signer, Role.GOVERNOR):
            return _forged(image, entry, event, Role.GOVERNOR)
        if event.schema_id in image.schemas:
            return image
        return replace(image, schemas=image.schemas.set(event.schema_id, event.schema_text))
    if not is_root or image.identity.mesh:
        return _forged(image, entry, event, Role.ROOT)
    return replace(image, identity=identity.founded(image.identity, event, entry.offset))


def _started(image: Image, entry: Entry, event: GovernorStarted) -> Image:
    """A governor starts its epoch, once: anybody can append a copy of a signed record."""
    if event.meta.id in image.starts:
        return replace(image, ignored=image.ignored + 1)
    starts = image.starts.set(event.meta.id, entry.offset)
    return replace(image, epoch=entry.offset, epoch_time=entry.time, starts=starts)


def _decided(image: Image, entry: Entry, event: Decision) -> Image:
    decided = image.intents.undecided.get(event.offset)
    if image.epoch < 0 or event.epoch != image.epoch or decided is None:
        return replace(image, ignored=image.ignored + 1)
    checks = image.intents.checks.get(event.offset, Map())
    image = replace(image, intents=pending.decided(image.intents, event.offset))
    if not isinstance(event, IntentAccepted):
        return image
    if decided.event is None:
        raise StateFaultError(
            f"the decision at offset {entry.offset} accepts the record at {event.offset}, which "
            f"this version cannot read ({decided.fault and decided.fault.reason}): "
            "replay with the version that wrote it or a newer one"
        )
    acceptance = Acceptance(event.offset, checks, entry.offset, entry.time)
    try:
        return _enact(decided.event, image, acceptance)
    except KeyError as missing:
        raise StateFaultError(
            f"the decision at offset {entry.offset} accepts the {decided.event.type_name()} at "
            f"{event.offset}, but {missing} does not exist there: the log contradicts itself"
        ) from missing


@singledispatch
def _enact(event: Event, image: Image, at: Acceptance) -> Image:
    """Let an accepted intent take effect."""
    del image
    raise StateFaultError(
        f"the decision at offset {at.generation} accepts a {event.type_name()}, which has no effect"
    )


@_enact.register
def _(event: intents.ClusterRegistered, image: Image, at: Acceptance) -> Image:
    after = identity.cluster_registered(image.identity, event, at.generation)
    return replace(image, identity=after)


@_enact.register
def _(event: intents.DomainRegistered, image: Image, at: Acceptance) -> Image:
    return replace(image, identity=identity.domain_registered(image.identity, event, at.generation))


@_enact.register
def _(event: intents.KeyRegistered, image: Image, at: Acceptance) -> Image:
    return replace(image, identity=identity.key_registered(image.identity, event, at.generation))


@_enact.register
def _(event: intents.KeyRevoked, image: Image, at: Acceptance) -> Image:
    return replace(image, identity=identity.key_revoked(image.identity, event, at.generation))


@_enact.register
def _(event: intents.ApplicationRegistered, image: Image, at: Acceptance) -> Image:
    after = identity.application_registered(image.identity, event, at.generation)
    return replace(image, identity=after)


@_enact.register
def _(event: intents.CredentialsRequested, image: Image, at: Acceptance) -> Image:
    after = identity.credentials_requested(image.identity, event, at.generation)
    return replace(image, identity=after)


@_enact.register
def _(event: intents.ProductPublished, image: Image, at: Acceptance) -> Image:
    home = image.identity.domains[intents.domain_of(event.product)].cluster
    after = catalog.published(image.catalog, event, home, at.checks, at.generation, at.time)
    return replace(image, catalog=after, touched=((ProductRow.topic, event.product),))


@_enact.register
def _(event: intents.ProductUpdated, image: Image, at: Acceptance) -> Image:
    after = catalog.updated(image.catalog, event, at.generation, at.time)
    return replace(image, catalog=after, touched=((ProductRow.topic, event.product),))


@_enact.register
def _(event: intents.AccessRequested, image: Image, at: Acceptance) -> Image:
    place = reading_place(image, event.product, event.application)
    after = access.requested(image.access, event, place, at.offset, at.generation, at.time)
    return replace(image, access=after, touched=((AccessRow.topic, event.meta.id),))


@_enact.register
def _(event: intents.AccessGranted, image: Image, at: Acceptance) -> Image:
    after = access.granted(image.access, event, at.generation, at.time)
    return replace(image, access=after, touched=((AccessRow.topic, event.request),))


@_enact.register
def _(event: intents.AccessDenied, image: Image, at: Acceptance) -> Image:
    after = access.denied(image.access, event, at.generation, at.time)
    return replace(image, access=after, touched=((AccessRow.topic, event.request),))


@_enact.register
def _(event: intents.AccessRevoked, image: Image, at: Acceptance) -> Image:
    after = access.revoked(image.access, event, at.generation, at.time)
    return replace(image, access=after, touched=((AccessRow.topic, event.request),))


@_enact.register
def _(event: intents.LinkCreated, image: Image, at: Acceptance) -> Image:
    product = image.catalog[event.product]
    after = links.created(image.links, event, product, at.generation, at.time)
    return _linked(image, after, event)


@_enact.register
def _(event: intents.LinkPaused, image: Image, at: Acceptance) -> Image:
    return _redirected(image, event, links.Desired.PAUSED, at)


@_enact.register
def _(event: intents.LinkResumed, image: Image, at: Acceptance) -> Image:
    return _redirected(image, event, links.Desired.RUNNING, at)


@_enact.register
def _(event: intents.LinkRemoved, image: Image, at: Acceptance) -> Image:
    return _redirected(image, event, links.Desired.REMOVED, at)


def _redirected(
    image: Image, event: intents.LinkIntent, desired: links.Desired, at: Acceptance
) -> Image:
    name = links.link_id(event.product, event.cluster)
    policy = purge_policy(image, name)
    after = links.redirected(image.links, name, desired, at.generation, at.time, policy)
    return _linked(image, after, event)


def _linked(image: Image, after: Links, event: intents.LinkIntent) -> Image:
    name = links.link_id(event.product, event.cluster)
    return replace(image, links=after, touched=((LinkRow.topic, name),))


def _reported(image: Image, entry: Entry, event: Event) -> Image:
    """Facts: they change status only."""
    match event:
        case facts.Check():
            return replace(image, intents=pending.checked(image.intents, event))
        case facts.CredentialsIssued():
            return replace(image, identity=identity.credentials_issued(image.identity, event))
        case facts.AclApplied():
            after = access.applied(image.access, event, entry.offset, entry.time)
            own = identity.rights_applied(image.identity, event)
            return _access_reported(replace(image, identity=own), after, event)
        case facts.AclRemoved():
            after = access.removed(image.access, event, entry.offset, entry.time)
            return _access_reported(image, after, event)
        case facts.LinkFact():
            moved = links.reported(image.links, event, entry.offset, entry.time)
            touched = ((LinkRow.topic, event.link),) if moved is not image.links else ()
            return replace(image, links=moved, touched=touched)
    return image


def _access_reported(image: Image, after: Accesses, event: facts.RightsFact) -> Image:
    touched = ((AccessRow.topic, event.subject),) if after is not image.access else ()
    return replace(image, access=after, touched=touched)


def reading_place(image: Image, product_id: str, application: str) -> access.Place:
    """Where `application` would read the product: at home, over a link if the product is elsewhere.

    Both must exist in the image.
    """
    product = image.catalog[product_id]
    home = image.identity.domains[intents.domain_of(application)].cluster
    if home == product.cluster:
        return access.Place(home, product.topic, None)
    return access.Place(home, links.destination_topic(product), links.link_id(product_id, home))


def purge_policy(image: Image, link: str) -> intents.OnRevoke:
    """PURGE if one grant since the link was made said so, or if none said anything."""
    since = image.links[link].created_generation if link in image.links else 0
    policies = {
        found.on_revoke
        for found in image.access.of_link(link)
        # a grant of an earlier life of the link has not changed since; it has no say
        if found.granted_generation and (found.state in access.ENTITLED or found.changed > since)
    }
    purge, retain = intents.OnRevoke.PURGE, intents.OnRevoke.RETAIN
    return purge if purge in policies or not policies else retain
