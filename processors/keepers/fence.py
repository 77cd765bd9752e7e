"""The fence around a copy: who may write it, and the proof that nobody else still does.

Kafka cannot fence a producer without transactions, and an old one can land records after its
query was stopped or its server killed. So each incarnation of a link writes as a principal of its
own, `mesh.link.<link>.<8 hex>`, used once. Before the tail is read, WRITE is taken from all of
them and seen gone, and the end offsets have stood still for a moment.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mesh_events.errors import InfrastructureError
from processors.clusters import ClusterAdmin
from processors.rights import Binding, Operation, Resource
from spark_streams.log import Bounds, PartitionLog

PREFIX = "mesh.link."
GONE_TIMEOUT_S = 10.0
SETTLE_TIMEOUT_S = 30.0
_POLL_S = 0.05

Check = Callable[[], None]
"""Raises unless this worker still may act; called before each effect."""


def fresh_writer(link: str) -> str:
    """A principal that no incarnation has used before."""
    return f"{PREFIX}{link}.{secrets.token_hex(4)}"


def is_writer(principal: str, link: str) -> bool:
    """Whether a principal is one of this link's incarnations."""
    return re.fullmatch(re.escape(f"{PREFIX}{link}.") + "[0-9a-f]{8}", principal) is not None


def writing(principal: str, topic: str) -> Binding:
    """The right to write the copy."""
    return Binding(principal, Operation.WRITE, Resource.TOPIC, topic)


def claim(principal: str, topic: str) -> Binding:
    """The mark of a topic that the mesh makes: given before the topic exists, and to no other."""
    return Binding(principal, Operation.DESCRIBE, Resource.TOPIC, topic)


def bindings_of(admin: ClusterAdmin, topic: str, link: str) -> set[Binding]:
    """What the incarnations of a link may do with a topic."""
    return {found for found in admin.rights(topic=topic) if is_writer(found.principal, link)}


class Marks(NamedTuple):
    """Whether a link has marked a topic's name as its own, and whether another one has."""

    ours: bool
    others: bool


def marks(admin: ClusterAdmin, topic: str, link: str) -> Marks:
    """Who has marked a topic's name; with two, two links would write the same copy."""
    ours = {
        is_writer(found.principal, link)
        for found in admin.rights(topic=topic)
        if found.principal.startswith(PREFIX) and found == claim(found.principal, topic)
    }
    return Marks(True in ours, False in ours)


def withdraw(
    admin: ClusterAdmin,
    topic: str,
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
                f"the link's right to {found[0].operation} {topic} on cluster {admin.name} does "
                "not go away when it is withdrawn, so that it is not safe to continue",
                retriable=True,
            )
        check()
        admin.withdraw(found)


def close(admin: ClusterAdmin, topic: str, link: str, check: Check) -> None:
    """Take WRITE from every incarnation of the link and see it gone."""
    withdraw(
        admin,
        topic,
        lambda: [
            found
            for found in bindings_of(admin, topic, link)
            if found.operation in (Operation.WRITE, Operation.ALL)
        ],
        check,
    )


def retire(
    admin: ClusterAdmin,
    topic: str,
    link: str,
    check: Check,
    *,
    keep: str | None = None,
    keep_claims: bool = False,
) -> None:
    """Close logins and withdraw rights of a link's incarnations at one end, but for `keep`'s.

    Logins go first: a principal without rights would not be found again.
    """
    found_there = {found.principal for found in bindings_of(admin, topic, link)}
    for principal in sorted(found_there - {keep}):
        check()
        admin.retire_login(principal)

    def unwanted() -> set[Binding]:
        return {
            found
            for found in bindings_of(admin, topic, link)
            if found.principal != keep
            and not (keep_claims and found == claim(found.principal, topic))
        }

    withdraw(admin, topic, unwanted, check)


def settle(log: PartitionLog, topic: str, partitions: int, quiet_s: float) -> Bounds:
    """Wait until the end offsets have stood still for `quiet_s` seconds; return them.

    Raises:
        InfrastructureError: they still move after SETTLE_TIMEOUT_S: somebody else writes there.
    """
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    last, since = log.bounds(topic, range(partitions)), time.monotonic()
    while time.monotonic() - since < quiet_s:
        time.sleep(min(_POLL_S, quiet_s))
        now = log.bounds(topic, range(partitions))
        if {p: end for p, (_, end) in now.items()} != {p: end for p, (_, end) in last.items()}:
            last, since = now, time.monotonic()
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"the copy {topic} still grows although the link may not write: find out who "
                "writes there",
                retriable=True,
            )
    return last
