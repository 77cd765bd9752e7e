"""What follows from the state by itself: the governor's own intents.

A grant to another cluster needs a link, and ends a pause of another reader; a link without grants
ends. The ids are derived from the cause, so an intent that is written twice counts once.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from mesh_events.intents import Intent, LinkCreated, LinkDeleted, LinkResumed
from mesh_events.meta import MESH_DOMAIN, Meta, derived_id
from mesh_events.rows import AccessRow, LinkRow
from projections.access import ENTITLED, Access, State
from projections.identity import Role
from projections.image import Image
from projections.links import Desired, Link

ACTOR = "mesh.governor"
DERIVED = (LinkCreated, LinkDeleted, LinkResumed)
"""All that a governor's key may ask for."""
ALL = ""
"""Stands for all links."""


def derived_intents(image: Image, producer: str) -> list[Intent]:
    """Intents that the state calls for and that are not on the log yet, in a stable order."""
    found = (of_link(image, name, producer) for name in sorted(image.access.by_link))
    return [intent for intent in found if intent is not None and not is_on_log(image, intent)]


def changed_links(before: Image, image: Image) -> Iterator[str]:
    """Links of which one record may have changed what follows; `ALL` for all of them."""
    if image.identity.quarantines is not before.identity.quarantines:
        yield ALL
    for topic, name in image.touched:
        if topic == LinkRow.topic:
            yield name
        elif topic == AccessRow.topic and (link := image.access.requests[name].link) is not None:
            yield link


def is_on_log(image: Image, intent: Intent) -> bool:
    """Whether a governor's key has put this intent on the log."""
    return any(
        image.intents.first_offset(key.public, intent.meta.id) is not None
        for key in image.identity.keys.values()
        if key.role is Role.GOVERNOR
    )


def of_link(image: Image, name: str, producer: str) -> Intent | None:
    """What the state calls for of one link, whether it is on the log or not."""
    link = image.links.get(name)
    accesses = image.access.of_link(name)
    entitled = [access for access in accesses if access.state in ENTITLED]
    if entitled:
        # nobody fills a copy for readers who are cut off; one that is there stays
        reading = [one for one in entitled if one.consumer not in image.identity.quarantines]
        latest = max(reading, key=lambda one: one.granted_generation, default=None)
        resuming = resumption(image, link) if link is not None else None
        if link is not None and resuming is not None:
            return _resumption(image, link, resuming, producer)
        return _creation(image, link, latest, producer) if latest else None
    settled = bool(accesses) and all(one.state is State.REVOKED for one in accesses)
    if link is not None and link.desired is not Desired.DELETED and settled:
        last = max(accesses, key=lambda access: access.changed)
        meta = _meta(image, last, "remove-link", last.generation, producer)
        return LinkDeleted(
            meta=meta, product=link.product, cluster=link.cluster, reason="no grant needs it"
        )
    return None


def resumption(image: Image, link: Link) -> Access | None:
    """The grant that ends a reader's pause: a newer one of another reader.

    Who is the only reader may pause a copy, and speaks for nobody who comes later.
    """
    if not link.is_paused_by_reader or link.held:
        return None
    later = (
        access
        for access in image.access.of_link(link.id)
        if access.state in ENTITLED
        and access.consumer != link.paused_by
        and access.consumer not in image.identity.quarantines
        and access.granted_generation > link.generation
    )
    return max(later, key=lambda one: one.granted_generation, default=None)


def _resumption(image: Image, link: Link, grant: Access, producer: str) -> Intent:
    meta = _meta(image, grant, "resume-link", grant.granted_generation, producer)
    reason = f"{grant.consumer} reads it, and {link.paused_by} had paused it"
    return LinkResumed(meta=meta, product=link.product, cluster=link.cluster, reason=reason)


def _creation(image: Image, link: Link | None, grant: Access, producer: str) -> Intent | None:
    """A link is due if there is none, or if the grant is newer than the link's removal."""
    removed = link is not None and link.desired is Desired.DELETED and not link.held
    if link is not None and not (removed and grant.granted_generation > link.generation):
        return None
    if link is not None and not link.is_over and link.engine is not grant.engine:
        # the engine that still removes it has to let go first
        return None
    meta = _meta(image, grant, "create-link", grant.granted_generation, producer)
    place = {"product": grant.product, "cluster": grant.cluster}
    return LinkCreated(meta=meta, **place, engine=grant.engine)


def _meta(image: Image, cause: Access, step: str, generation: int, producer: str) -> Meta:
    return Meta(
        id=derived_id(cause.request, step, generation),
        time=datetime.fromtimestamp(image.clock / 1000, UTC),
        actor=ACTOR,
        domain=MESH_DOMAIN,
        correlation=cause.request,
        causation=cause.request,
        producer=producer,
    )
