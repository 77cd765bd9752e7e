"""The counts after a record: only the rows that the record may have changed are looked at."""

from collections.abc import Callable, Mapping
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
from projections.lineage import steps
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


_NAMED: Mapping[type, tuple[Kind, str]] = {
    ApplicationRegistered: (Kind.APPLICATIONS, "application"),
    DomainRegistered: (Kind.KEYS, "public_key"),
    KeyRegistered: (Kind.KEYS, "public_key"),
    KeyRevoked: (Kind.KEYS, "public_key"),
    MeshKeyRevoked: (Kind.KEYS, "public_key"),
}
"""Events that change what has no row: its kind, and the field that names it."""


def counted(before: Image, after: Image, event: Event | None = None) -> Image:
    """The image after a record, with the things counted that it may have changed.

    Args:
        before: the image without them.
        after: the image with them, whose `touched` names the changed rows.
        event: what took effect; what an event of identity changes has no row.
    """
    counts, touched = after.counts, after.touched
    if after.replaced is not before.replaced:
        counts = _replaced(counts, before, after)
    for topic, key in touched if len(touched) < 2 else set(touched):
        counts = _recounted(counts, _KIND_OF_ROW[topic], key, before, after)
    named = _NAMED.get(type(event))
    if named is not None:
        kind, field = named
        counts = _recounted(counts, kind, getattr(event, field), before, after)
    return after if counts is after.counts else after._replace(counts=counts)


def _recounted(counts: Counts, kind: Kind, key: str, before: Image, after: Image) -> Counts:
    table, domain_of_row, stands = _COUNTED[kind]
    old, new = table(before).get(key), table(after).get(key)
    if old is new or new is None:
        return counts
    domain, now = domain_of_row(new), stands(new)
    if old is None:
        return _changed(counts, kind, domain, now, 1)
    was_of, was = domain_of_row(old), stands(old)
    if was_of != domain:
        return _changed(_changed(counts, kind, was_of, -was, -1), kind, domain, now, 1)
    return _changed(counts, kind, domain, now - was, 0) if now != was else counts


def _replaced(counts: Counts, before: Image, after: Image) -> Counts:
    """What an earlier text or config has read is kept beside the one that replaced it."""
    for topic, key in after.touched:
        kind = _KIND_OF_ROW[topic]
        table, domain, _ = _COUNTED[kind]
        old, new = table(before).get(key), table(after).get(key)
        if old is not None and new is not None:
            left = steps.leaves(before.replaced, old, new)
            counts = _changed(counts, kind, domain(new), 0, left) if left else counts
    return counts


def _changed(counts: Counts, kind: Kind, domain: str, standing: int, kept: int) -> Counts:
    if not domain:
        return counts
    used = counts.get((domain, kind), Used())
    return counts.set((domain, kind), Used(used.standing + standing, used.kept + kept))
