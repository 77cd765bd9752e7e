"""The fence around what a flow fills: who may write it, and the proof that nobody else still does.

Kafka cannot fence a producer without transactions, and an old one can land records after its
query was stopped or its server killed. So each incarnation of a flow writes as a principal of its
own, `mesh.link.<link>.<8 hex>` or `mesh.sql.<statement>.<8 hex>`, used once. Before the tail is
read, WRITE is taken from all of them and seen gone, and the end offsets have stood still for a
moment.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mesh_events.errors import InfrastructureError
from processors.clusters.kafka import ClusterAdmin
from processors.clusters.principals import LINKS, PREFIXES, STATEMENTS, flow_name
from processors.clusters.rights import Binding, Operation, Resource
from spark_streams.log import Bounds, PartitionLog

GONE_TIMEOUT_S = 10.0
SETTLE_TIMEOUT_S = 30.0
_POLL_S = 0.05

Check = Callable[[], None]
"""Raises unless this worker still may act; called before each effect."""


def fresh_writer(flow: str) -> str:
    """A principal that no incarnation of the link or statement has used before."""
    return f"{_stem(flow)}{secrets.token_hex(4)}"


def is_writer(principal: str, flow: str) -> bool:
    """Whether a principal is one of this flow's incarnations."""
    kind = LINKS if "@" in flow else STATEMENTS
    return flow_name(principal, kind) == flow


def _stem(flow: str) -> str:
    """What the principals of a flow begin with; a link's id has an @, a statement's never."""
    return f"{LINKS if '@' in flow else STATEMENTS}{flow}."


def _what(principal: str) -> str:
    return "link" if principal.startswith(LINKS) else "statement"


def writing(principal: str, topic: str) -> Binding:
    """The right to write the copy."""
    return Binding(principal, Operation.WRITE, Resource.TOPIC, topic)


def claim(principal: str, topic: str) -> Binding:
    """The mark of a topic that the mesh makes: given before the topic exists, and to no other."""
    return Binding(principal, Operation.DESCRIBE, Resource.TOPIC, topic)


def bindings_of(admin: ClusterAdmin, topic: str | None, flow: str) -> set[Binding]:
    """What the incarnations of a flow may do with a topic, or with all of them."""
    return {found for found in admin.rights(topic=topic) if is_writer(found.principal, flow)}


class Marks(NamedTuple):
    """Whether a flow has marked a topic's name as its own, and whether another one has."""

    ours: bool
    others: bool


def marks(admin: ClusterAdmin, topic: str, flow: str) -> Marks:
    """Who has marked a topic's name; with two, two flows would fill the same topic."""
    ours = {
        is_writer(found.principal, flow)
        for found in admin.rights(topic=topic)
        if found.principal.startswith(PREFIXES) and found == claim(found.principal, topic)
    }
    return Marks(True in ours, False in ours)


def withdraw(
    admin: ClusterAdmin,
    topic: str | None,
    unwanted: Callable[[], Iterable[Binding]],
    check: Check,
) -> None:
    """Withdraw what `unwanted` finds on the cluster, until it finds nothing.

    Raises:
        InfrastructureError: the rights are still there after GONE_TIMEOUT_S.
    """
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while found := sorted(unwanted()):
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"the {_what(found[0].principal)}'s right to {found[0].operation} "
                f"{topic or found[0].name} on cluster {admin.name} does not go away when it is "
                "withdrawn, so that it is not safe to continue",
                retriable=True,
            )
        check()
        admin.withdraw(found)


def close(admin: ClusterAdmin, topic: str, flow: str, check: Check) -> None:
    """Take WRITE from every incarnation of the flow and see it gone."""
    withdraw(
        admin,
        topic,
        lambda: [
            found
            for found in bindings_of(admin, topic, flow)
            if found.operation in (Operation.WRITE, Operation.ALL)
        ],
        check,
    )


def retire(
    admin: ClusterAdmin,
    topic: str | None,
    flow: str,
    check: Check,
    *,
    keep: str | None = None,
    keep_claims: bool = False,
) -> None:
    """Close logins and withdraw rights of a flow's incarnations at one end, but for `keep`'s.

    Without a topic, wherever on the cluster they are: also on what the flow once read or wrote.

    Logins go first: a principal without rights would not be found again.
    """
    found_there = {found.principal for found in bindings_of(admin, topic, flow)}
    for principal in sorted(found_there - {keep}):
        check()
        admin.retire_login(principal)

    def unwanted() -> set[Binding]:
        return {
            found
            for found in bindings_of(admin, topic, flow)
            if found.principal != keep
            and not (keep_claims and found == claim(found.principal, found.name))
        }

    withdraw(admin, topic, unwanted, check)


def settle(
    log: PartitionLog,
    topic: str,
    partitions: int,
    quiet_s: float,
    committed: PartitionLog | None = None,
) -> Bounds:
    """Wait until the end offsets have stood still for `quiet_s` seconds; return them.

    committed: the same as `read_committed` sees it, for a topic that is written in transactions.

    Raises:
        InfrastructureError: they still move after SETTLE_TIMEOUT_S, or a transaction is still
            open: somebody else writes there.
    """
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    last = _still(log, topic, partitions, quiet_s, deadline)
    if committed is None:
        return last
    while _ends(committed.bounds(topic, range(partitions))) != _ends(last):
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"a transaction is open in {topic} although nobody may write it for the mesh: "
                "find out who writes there",
                retriable=True,
            )
        time.sleep(_POLL_S)
        last = log.bounds(topic, range(partitions))
    return last


def _ends(bounds: Bounds) -> dict[int, int]:
    return {partition: end for partition, (_, end) in bounds.items()}


def _still(
    log: PartitionLog, topic: str, partitions: int, quiet_s: float, deadline: float
) -> Bounds:
    last, since = log.bounds(topic, range(partitions)), time.monotonic()
    while time.monotonic() - since < quiet_s:
        time.sleep(min(_POLL_S, quiet_s))
        now = log.bounds(topic, range(partitions))
        if _ends(now) != _ends(last):
            last, since = now, time.monotonic()
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"{topic} still grows although nobody may write it for the mesh: find out who "
                "writes there",
                retriable=True,
            )
    return last
