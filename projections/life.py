"""What a statement and a connector go through alike: wanted, stopped, deleted, and failed. Pure."""

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from mesh_events.connectors import ConnectorFact, ConnectorIntent
from mesh_events.statements import StatementFact, StatementIntent
from projections.links import Desired

if TYPE_CHECKING:
    from projections.connectors.state import Connector
    from projections.statements import Statement

Living = TypeVar("Living", "Statement", "Connector")
_WAITING = {
    Desired.RUNNING: "CREATED",
    Desired.PAUSED: "STOPPING",
    Desired.DELETED: "DELETING",
}


def redirected(known: Living, desired: Desired, *, by_operator: bool) -> Living:
    """Somebody stopped, started or deleted it; what the operator stops is held."""
    held = desired is Desired.PAUSED if by_operator else known.held
    return replace(known, desired=desired, state=type(known.state)(_WAITING[desired]), held=held)


def decided(
    known: Living, event: StatementIntent | ConnectorIntent, generation: int, time: int
) -> Living:
    """It has a new generation: what was told of the one before counts no more."""
    return replace(
        known,
        generation=generation,
        correlation=event.meta.correlation,
        changed=generation,
        changed_at=time,
        failure=None,
        failure_code=None,
        told=(),
    )


def is_news(known: Living, event: StatementFact | ConnectorFact) -> bool:
    """Whether a report is of this generation, and no copy of one that was counted."""
    return known.generation == event.generation and event.meta.id not in known.told


def halted(known: Living) -> Living:
    """It stands still, as desired: stopped or deleted."""
    still = "STOPPED" if known.desired is Desired.PAUSED else "DELETED"
    return replace(known, state=type(known.state)(still), failure=None, failure_code=None)


def failed(known: Living, reason: str, code: str) -> Living:
    """It does not do what is desired, and why."""
    return replace(known, state=type(known.state)("FAILED"), failure=reason, failure_code=code)
