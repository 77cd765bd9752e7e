"""Requests for access and the grants that came of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter

from immutables import Map

from mesh_events.facts import AclApplied, AclRemoved
from mesh_events.intents import (
    AccessDenied,
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    Engine,
    OnRevoke,
    domain_of,
)
from mesh_events.rows import AccessState
from projections.table import Table, with_entry

State = AccessState
ENTITLED = frozenset({State.GRANTED, State.ACTIVE})
"""States in which the consumer has the right to read, applied or not."""
OPEN = frozenset({State.REQUESTED, State.GRANTED, State.ACTIVE, State.REVOKING})
"""States in which the same application cannot ask for the same product again."""


@dataclass(frozen=True, slots=True)
class Access:
    """One request and its life; times in ms of the log.

    The audit's answers: entitled from `decided_at` to `revoked_at`, enforced in each of the periods
    `enforced`, (from, to), the last one without an end while rights apply; how long a copy existed
    stands with the link. A grant whose link was deleted is GRANTED again: entitled, and enforced
    once the link is back. `applying` and `removing` hold the generations at which rights were to
    be there, or gone, and were not reported so yet: a report counts once, also an overtaken one.
    While it is `withdrawing`, the rights of a GRANTED one may be there, until they are seen gone.
    """

    request: str
    offset: int
    product: str
    application: str
    cluster: str
    topic: str
    link: str | None
    reason: str
    requested_by: str
    requested_at: int
    state: State
    generation: int
    changed: int
    granted_generation: int = 0
    on_revoke: OnRevoke = OnRevoke.PURGE
    engine: Engine = Engine.SPARK
    decided_by: str | None = None
    decided_at: int | None = None
    decision_reason: str | None = None
    active_at: int | None = None
    revoked_by: str | None = None
    revoked_at: int | None = None
    revoke_reason: str | None = None
    removed_at: int | None = None
    applying: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    withdrawing: bool = False
    enforced: tuple[tuple[int, int | None], ...] = ()

    @property
    def is_enforced(self) -> bool:
        """Whether the log says that the reader's rights are there."""
        return bool(self.enforced) and self.enforced[-1][1] is None

    @property
    def consumer(self) -> str:
        """The domain whose application reads."""
        return domain_of(self.application)


@dataclass(frozen=True, slots=True)
class Accesses:
    """Every access that was asked for.

    Args:
        requests: request id -> access.
        open: (product, application) -> the request that is open now.
        by_link: link id -> request id -> its offset, of those whose data comes over a link, from
            their first grant on. There may be any number of requests that nobody grants.
        standing: the same without those that are REVOKED, but for the last one of each policy:
            there may be any number of those, too.
        entitled: (application, cluster, topic) -> request id -> its offset, of those that give the
            application the right to read that topic now.
    """

    requests: Table[str, Access] = field(default_factory=Map)
    open: Table[tuple[str, str], str] = field(default_factory=Map)
    by_link: Table[str, Map[str, int]] = field(default_factory=Map)
    standing: Table[str, Map[str, int]] = field(default_factory=Map)
    entitled: Table[tuple[str, str, str], Map[str, int]] = field(default_factory=Map)

    def of_link(self, link: str) -> list[Access]:
        """Every access over `link` that is granted and not over, oldest first.

        With the last one that has ended for each policy: what follows from the end of a grant
        follows from it.
        """
        return self._in_order(self.standing.get(link))

    def ever_of_link(self, link: str) -> list[Access]:
        """Every access that was granted and whose data comes over `link`, oldest first."""
        return self._in_order(self.by_link.get(link))

    def _in_order(self, found: Map[str, int] | None) -> list[Access]:
        offsets = sorted((found or Map()).items(), key=itemgetter(1))
        return [self.requests[request] for request, _ in offsets]

    def of_reader(self, application: str, cluster: str, topic: str) -> list[Access]:
        """Every access that gives an application the right to read a topic now."""
        found: Map[str, int] = self.entitled.get((application, cluster, topic)) or Map()
        return [self.requests[request] for request in found]

    def open_for(self, product: str, application: str) -> Access | None:
        """The open request of an application for a product."""
        request = self.open.get((product, application))
        return self.requests[request] if request is not None else None


EMPTY = Accesses()


@dataclass(frozen=True, slots=True)
class Place:
    """Where an application reads a product: cluster, topic there, and the link that fills it."""

    cluster: str
    topic: str
    link: str | None


def requested(
    accesses: Accesses,
    event: AccessRequested,
    place: Place,
    offset: int,
    generation: int,
    time: int,
) -> Accesses:
    """An application asks to read a product."""
    return put(
        accesses,
        Access(
            request=event.meta.id,
            offset=offset,
            product=event.product,
            application=event.application,
            cluster=place.cluster,
            topic=place.topic,
            link=place.link,
            reason=event.reason,
            requested_by=event.meta.actor,
            requested_at=time,
            state=State.REQUESTED,
            generation=generation,
            changed=generation,
        ),
    )


def granted(accesses: Accesses, event: AccessGranted, generation: int, time: int) -> Accesses:
    """The owner said yes: from here on the consumer is entitled."""
    return put(
        accesses,
        replace(
            accesses.requests[event.request],
            state=State.GRANTED,
            generation=generation,
            granted_generation=generation,
            applying=(generation,),
            changed=generation,
            on_revoke=event.on_revoke,
            engine=event.engine,
            decided_by=event.meta.actor,
            decided_at=time,
            decision_reason=event.reason,
        ),
    )


def denied(accesses: Accesses, event: AccessDenied, generation: int, time: int) -> Accesses:
    """The owner said no."""
    return put(
        accesses,
        replace(
            accesses.requests[event.request],
            state=State.DENIED,
            generation=generation,
            changed=generation,
            decided_by=event.meta.actor,
            decided_at=time,
            decision_reason=event.reason,
        ),
    )


def revoked(accesses: Accesses, event: AccessRevoked, generation: int, time: int) -> Accesses:
    """The grant ended: from here on the consumer is not entitled, whatever still has to be done."""
    access = accesses.requests[event.request]
    return put(
        accesses,
        replace(
            access,
            state=State.REVOKING,
            generation=generation,
            removing=(*access.removing, generation),
            changed=generation,
            revoked_by=event.meta.actor,
            revoked_at=time,
            revoke_reason=event.reason,
        ),
    )


def suspended(
    accesses: Accesses, found: Iterable[Access], generation: int, *, again: bool = True
) -> Accesses:
    """Readers stay entitled and lose their rights: for good, or until they are applied `again`.

    The link was deleted under its grants, or the consumer is cut off or is so no more.
    """
    for access in found:
        if access.state in ENTITLED:
            waiting = replace(
                access,
                state=State.GRANTED,
                generation=generation,
                applying=(*access.applying, generation) if again else access.applying,
                removing=(*access.removing, generation),
                withdrawing=True,
                changed=generation,
            )
            accesses = put(accesses, waiting)
    return accesses


def applied(accesses: Accesses, event: AclApplied, offset: int, time: int) -> Accesses:
    """The reader's rights exist where it reads; ACTIVE if the grant is still the one in force."""
    access = accesses.requests.get(event.subject)
    if access is None or access.cluster != event.cluster or event.generation not in access.applying:
        return accesses
    access = replace(
        access,
        applying=tuple(found for found in access.applying if found != event.generation),
        # what was to be gone before they were there tells nothing any more
        removing=tuple(found for found in access.removing if found > event.generation),
        withdrawing=False,
        changed=offset,
    )
    if not access.is_enforced:
        periods = (*access.enforced, (time, None))
        access = replace(access, active_at=time, removed_at=None, enforced=periods)
    if access.state is State.GRANTED and event.generation == access.generation:
        access = replace(access, state=State.ACTIVE)
    return put(accesses, access)


def removed(accesses: Accesses, event: AclRemoved, offset: int, time: int) -> Accesses:
    """The reader's rights are gone: since a revocation that is in force, or without a link.

    Gone for a moment, if what called for it was overtaken and they are not back yet.
    """
    access = accesses.requests.get(event.subject)
    if access is None or access.cluster != event.cluster or event.generation not in access.removing:
        return accesses
    if access.state not in (State.REVOKING, State.GRANTED):
        return accesses
    access = replace(
        access,
        removing=tuple(found for found in access.removing if found != event.generation),
        # what was to be there before they were gone; of the same generation they still come
        applying=tuple(found for found in access.applying if found >= event.generation),
        changed=offset,
    )
    if event.generation == access.generation:
        access = replace(access, withdrawing=False)
        if access.state is State.REVOKING:
            access = replace(access, state=State.REVOKED, applying=(), removed_at=time)
    if access.is_enforced:
        since = access.enforced[-1][0]
        access = replace(access, enforced=(*access.enforced[:-1], (since, time)), removed_at=time)
    return put(accesses, access)


def put(accesses: Accesses, access: Access) -> Accesses:
    """The accesses with one added or changed, and what finds it."""
    pair = (access.product, access.application)
    if access.state in OPEN:
        still_open = accesses.open.set(pair, access.request)
    elif accesses.open.get(pair) == access.request:
        still_open = accesses.open.delete(pair)
    else:
        still_open = accesses.open
    requests = accesses.requests.set(access.request, access)
    by_link, standing = accesses.by_link, accesses.standing
    if access.link is not None and access.granted_generation:
        by_link = with_entry(by_link, access.link, access.request, access.offset)
        standing = with_entry(standing, access.link, access.request, access.offset)
        for request in _followed(standing[access.link], requests, access):
            standing = with_entry(standing, access.link, request, None)
    place = (access.application, access.cluster, access.topic)
    is_entitled = access.state in ENTITLED
    entitled = with_entry(
        accesses.entitled, place, access.request, access.offset if is_entitled else None
    )
    return Accesses(requests, still_open, by_link, standing, entitled)


def _followed(
    standing: Iterable[str], requests: Table[str, Access], ended: Access
) -> Iterator[str]:
    """Those that have ended before one that ends now, under the same policy."""
    if ended.state is not State.REVOKED:
        return
    for request in standing:
        other = requests[request]
        same = (other.state, other.on_revoke) == (State.REVOKED, ended.on_revoke)
        if same and request != ended.request:
            yield request
