"""The counts after a record: only the rows that the record may have changed are looked at."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mesh_events.decisions import MeshKeyRevoked
from mesh_events.intents import (
    ApplicationRegistered,
    DomainRegistered,
    KeyRegistered,
    KeyRevoked,
    domain_of,
)
from mesh_events.meta import Event
from mesh_events.rows import AccessRow, ConnectorRow, LinkRow, ProductRow, StatementRow
from projections.access import OPEN
from projections.identity import Role
from projections.image import Image
from projections.quotas.kinds import Counts, Kind, Used
from projections.table import Table


class _Counted(NamedTuple):
    """Where the things of a kind are, whose each is, and whether it stands."""

    table: Callable[[Image], Table[str, Any]]
    domain: Callable[[Any], str]
    stands: Callable[[Any], bool]


def _always(_: object) -> bool:
    return True


_COUNTED: Mapping[Kind, _Counted] = {
    Kind.APPLICATIONS: _Counted(
        lambda image: image.identity.applications, lambda one: domain_of(one.id), _always
    ),
    Kind.PRODUCTS: _Counted(lambda image: image.catalog, lambda one: one.domain, _always),
    Kind.KEYS: _Counted(
        lambda image: image.identity.keys,
        # keys of the mesh's own parts are the root's, and have no bound
        lambda one: one.domain if one.role is Role.DOMAIN else "",
        lambda one: one.revoked is None,
    ),
    Kind.REQUESTS: _Counted(
        lambda image: image.access.requests,
        lambda one: one.consumer,
        lambda one: one.state in OPEN,
    ),
    Kind.STATEMENTS: _Counted(
        lambda image: image.statements, lambda one: one.domain, lambda one: not one.is_over
    ),
    Kind.CONNECTORS: _Counted(
        lambda image: image.connectors, lambda one: one.domain, lambda one: not one.is_over
    ),
    Kind.LINKS: _Counted(
        lambda image: image.links,
        lambda one: domain_of(one.product),
        lambda one: not one.is_over,
    ),
}
_KIND_OF_ROW = {
    ProductRow.topic: Kind.PRODUCTS,
    AccessRow.topic: Kind.REQUESTS,
    StatementRow.topic: Kind.STATEMENTS,
    ConnectorRow.topic: Kind.CONNECTORS,
    LinkRow.topic: Kind.LINKS,
}


def counted(before: Image, after: Image, event: Event | None = None) -> Image:
    """The image after a record, with the things counted that it may have changed.

    Args:
        before: the image without them.
        after: the image with them, whose `touched` names the changed rows.
        event: what took effect; what an event of identity changes has no row.
    """
    counts = after.counts
    for kind, key in {*_named(event), *_touched(after)}:
        of_kind = _COUNTED[kind]
        counts = _moved(counts, kind, _place(of_kind, before, key), _place(of_kind, after, key))
    return after if counts is after.counts else after._replace(counts=counts)


def _named(event: Event | None) -> Iterator[tuple[Kind, str]]:
    match event:
        case ApplicationRegistered():
            yield Kind.APPLICATIONS, event.application
        case DomainRegistered() | KeyRegistered() | KeyRevoked() | MeshKeyRevoked():
            yield Kind.KEYS, event.public_key


def _touched(image: Image) -> Iterator[tuple[Kind, str]]:
    return ((_KIND_OF_ROW[topic], key) for topic, key in image.touched)


def _place(of_kind: _Counted, image: Image, key: str) -> tuple[str, bool] | None:
    """Whose a thing is, and whether it stands; None where there is none that counts."""
    found = of_kind.table(image).get(key)
    domain = of_kind.domain(found) if found is not None else ""
    return (domain, of_kind.stands(found)) if domain else None


def _moved(
    counts: Counts, kind: Kind, old: tuple[str, bool] | None, new: tuple[str, bool] | None
) -> Counts:
    if old == new:
        return counts
    for place, by in ((old, -1), (new, 1)):
        if place is not None:
            domain, stands = place
            used = counts.get((domain, kind), Used())
            changed = Used(used.standing + by * stands, used.kept + by)
            counts = counts.set((domain, kind), changed)
    return counts
