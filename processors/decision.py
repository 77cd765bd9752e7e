"""A verdict as the event that tells it: what the governor says on the log."""

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from mesh_events.decisions import Decision, IntentAccepted, IntentQuarantined, IntentRejected
from mesh_events.emit import mesh_meta
from mesh_events.meta import Meta, derived_id
from mesh_events.record import Entry
from projections.consequences import ACTOR
from projections.verdict import Quarantined, Rejected, Verdict

LONGEST_ID = 200
"""Characters of an id that a decision repeats, for an intent that was refused."""
LONGEST_REASON = 2000
"""Characters of a reason; a refused value stands in it, and may be as long as a record."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a judgement rests on, as in the fields of a decision; `clock`, `worker_skew`: ms."""

    epoch: int
    offset: int
    clock: int
    follows: str
    worker_skew: int = 0


def decision_on(entry: Entry, verdict: Verdict, basis: Basis) -> Decision:
    """The event that tells a verdict on the record at `entry`."""
    epoch = basis.epoch
    # a decision that repeats what was said must not itself become too large to be read
    cause = entry.event.meta.id[:LONGEST_ID] if entry.event else None
    correlation = entry.event.meta.correlation[:LONGEST_ID] if entry.event else None
    identity = derived_id(f"offset:{entry.offset}", "decide", epoch)
    common: dict[str, Any] = {
        "meta": decision_meta(identity, correlation or identity, cause),
        "offset": entry.offset,
        "epoch": epoch,
        "basis": basis.offset,
        "clock": datetime.fromtimestamp(basis.clock / 1000, UTC),
        "follows": basis.follows,
        "worker_skew": basis.worker_skew,
    }
    match verdict:
        case Rejected(code, reason) if cause is not None:
            return IntentRejected(**common, intent=cause, code=code, reason=_short(reason))
        case Quarantined(code, reason) | Rejected(code, reason):
            return IntentQuarantined(**common, code=code, reason=_short(reason))
    return IntentAccepted(**common, intent=cause or "")


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"


def decision_meta(identity: str, correlation: str, cause: str | None) -> Meta:
    """`meta` of what the governor says."""
    return mesh_meta(identity, ACTOR, correlation, cause)


def version() -> str:
    """The version of this software, `source` where it is not installed."""
    try:
        return metadata.version("streaming-data-mesh")
    except metadata.PackageNotFoundError:
        return "source"
