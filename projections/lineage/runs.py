"""How runs of links, statements and connectors end: each once, whatever happens later. Pure.

A run begins with the fact that activates its job and ends with the next fact that fails, stops,
purges or activates it. What ended last is remembered, so that a worker which takes over can see
what the one before may not have written to the lineage.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from mesh_events.connectors import ConnectorFailed, ConnectorHalted
from mesh_events.facts import CopyPurged, CopyRetained, LinkFailed, LinkStopped
from mesh_events.meta import milliseconds
from mesh_events.statements import StatementFailed, StatementHalted

if TYPE_CHECKING:
    from mesh_events.facts import Fact
    from projections.connectors.state import Connector
    from projections.links import Link
    from projections.statements import Statement

Job = TypeVar("Job", "Link", "Statement", "Connector")
MOST = 4
"""So many ended runs of a job are remembered."""


class End(StrEnum):
    """How a run ended, by OpenLineage's names."""

    COMPLETE = "COMPLETE"
    ABORT = "ABORT"
    FAIL = "FAIL"


_ENDS: dict[type["Fact"], End] = {
    LinkFailed: End.FAIL,
    StatementFailed: End.FAIL,
    ConnectorFailed: End.FAIL,
    LinkStopped: End.COMPLETE,
    StatementHalted: End.COMPLETE,
    ConnectorHalted: End.COMPLETE,
    CopyPurged: End.COMPLETE,
    CopyRetained: End.COMPLETE,
}


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that ended.

    offset: of the fact that ended it.
    time: when its controller made that fact, ms by the controller's clock.
    reason: why it failed, "" for another end.
    """

    run: str
    end: End
    offset: int
    time: int
    reason: str = ""


def open_run(job: "Link | Statement | Connector") -> str | None:
    """The run that has begun and not ended, None if there is none."""
    return None if any(one.run == job.run for one in job.ended) else job.run


def with_end(before: Job, after: Job, event: "Fact", offset: int) -> Job:
    """The job after a fact, with the run that the fact ends; one that did not count ends none."""
    run = open_run(before)
    if run is None or after is before:
        return after
    end = End.ABORT if after.run != run else _ENDS.get(type(event))
    if end is None:
        return after
    reason = (after.failure or "") if end is End.FAIL else ""
    time = milliseconds(event.meta.time)
    return replace(after, ended=(*before.ended, EndedRun(run, end, offset, time, reason))[-MOST:])
