"""What was found and left on the clusters, until it is gone: a status, no right depends on it."""

from dataclasses import dataclass

from immutables import Map

from mesh_events.facts import DriftFound, DriftKind, Remedy
from projections.table import Table


@dataclass(frozen=True, slots=True)
class Left:
    """A drift that nobody has repaired.

    `since` (offset) and `since_time` (ms of the log) tell when it was first told; `bindings` are
    those that were told last.
    """

    bindings: frozenset[str]
    since: int
    since_time: int


Drifts = Table[tuple[str, str, DriftKind], Left]
"""(cluster, subject, kind) -> what is left there."""
EMPTY: Drifts = Map()


def reported(drifts: Drifts, event: DriftFound, offset: int, time: int) -> Drifts:
    """A keeper told what it found: what it left stays here until it tells another end."""
    key = (event.cluster, event.subject, event.drift)
    before = drifts.get(key)
    if event.remedy is Remedy.LEFT:
        since = (before.since, before.since_time) if before else (offset, time)
        return drifts.set(key, Left(frozenset(event.bindings), *since))
    return drifts if before is None else drifts.delete(key)
