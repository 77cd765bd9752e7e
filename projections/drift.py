"""What was found and left on the clusters, until it is gone: a status, no right depends on it."""

from collections.abc import Iterator
from dataclasses import dataclass

from immutables import Map

from mesh_events.facts import DriftFound, DriftKind, Remedy
from projections.table import Table

MOST_ENDED = 1000
"""So many findings that have ended are remembered; the controller's next look ends others again."""


@dataclass(frozen=True, slots=True)
class Left:
    """A drift that nobody has repaired, or one that has ended.

    `since` (offset) and `since_time` (ms of the log) tell when it was first told; `bindings` are
    those that were told last, at the offset `told`. One that has ended is remembered: by it a copy
    of an earlier fact is known, which anybody can append.
    """

    bindings: frozenset[str]
    since: int
    since_time: int
    told: int
    ended: bool = False


Finding = tuple[str, str, DriftKind]
"""(cluster, subject, kind)."""
Drifts = Table[Finding, Left]
"""What is left there, or was."""
EMPTY: Drifts = Map()


def left_at(drifts: Drifts, finding: Finding) -> Left | None:
    """What is left of a finding, None for nothing."""
    found = drifts.get(finding)
    return None if found is None or found.ended else found


def all_left(drifts: Drifts) -> Iterator[tuple[Finding, Left]]:
    """All that is left."""
    return ((finding, found) for finding, found in drifts.items() if not found.ended)


def reported(drifts: Drifts, event: DriftFound, offset: int, time: int) -> Drifts:
    """A controller told what it found: what it left stays here until it tells another end.

    A fact is on what changed since the last one on the same finding, which its controller had read.
    The controller of a copy had not.
    """
    key = (event.cluster, event.subject, event.drift)
    known, before = drifts.get(key), left_at(drifts, key)
    if known is not None and event.basis < known.told:
        return drifts
    if event.remedy is Remedy.LEFT:
        since = (before.since, before.since_time) if before else (offset, time)
        return drifts.set(key, Left(frozenset(event.bindings), *since, told=offset))
    if before is None:
        return drifts
    ended = Left(frozenset(), before.since, before.since_time, told=offset, ended=True)
    return _bounded(drifts.set(key, ended))


def _bounded(drifts: Drifts) -> Drifts:
    """Forget the finding that ended first, if there are too many."""
    ended = [(found.told, finding) for finding, found in drifts.items() if found.ended]
    return drifts.delete(min(ended)[1]) if len(ended) > MOST_ENDED else drifts
