"""A verdict as the event that tells it: what the governor says on the log."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

import mesh_events
import projections
from mesh_events.decisions import (
    Decision,
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    RecordsSetAside,
)
from mesh_events.emit import mesh_meta
from mesh_events.meta import Meta, derived_id, shortened
from mesh_events.record import Entry
from projections.deciding.derived import ACTOR
from projections.deciding.unusable import Run
from projections.deciding.verdict import Quarantined, Rejected, Verdict

LONGEST_ID = 200
"""Characters of an id that a decision repeats, for an intent that was refused."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a judgement rests on, as in the fields of a decision; `clock`, `worker_skew`: ms."""

    epoch: int
    offset: int
    clock: int
    follows: str
    worker_skew: int = 0


def decision_on(entry: Entry, verdict: Verdict, basis: Basis, waited: int = 0) -> Decision:
    """The event that tells a verdict on the record at `entry`, whose checks took `waited` ms."""
    # a decision that repeats what was said must not itself become too large to be read
    cause = entry.event.meta.id[:LONGEST_ID] if entry.event else None
    correlation = entry.event.meta.correlation[:LONGEST_ID] if entry.event else None
    common = _common(basis, entry.offset, f"offset:{entry.offset}", correlation, cause)
    match verdict:
        case Rejected(code, reason) if cause is not None:
            return IntentRejected(
                **common, intent=cause, code=code, reason=shortened(reason), waited=waited
            )
        case Quarantined(code, reason) | Rejected(code, reason):
            return IntentQuarantined(**common, code=code, reason=shortened(reason))
    return IntentAccepted(**common, intent=cause or "")


def set_aside(run: Run, basis: Basis) -> Decision:
    """The decision on a run of unusable records: on a single one with the reason for people."""
    if run.first == run.last:
        code, reason = run.fault.code.value, shortened(run.fault.reason)
        common = _common(basis, run.last, f"offset:{run.last}")
        return IntentQuarantined(**common, code=code, reason=reason)
    return RecordsSetAside(
        **_common(basis, run.first, f"offsets:{run.first}-{run.last}"),
        last=run.last,
        exceptions=list(run.exceptions),
        counts=dict(sorted(run.counts.items())),
    )


def _common(
    basis: Basis, offset: int, about: str, correlation: str | None = None, cause: str | None = None
) -> dict[str, Any]:
    """The fields that every decision has; its id is derived from `about`."""
    identity = derived_id(about, "decide", basis.epoch)
    return {
        "meta": decision_meta(identity, correlation or identity, cause),
        "offset": offset,
        "epoch": basis.epoch,
        "basis": basis.offset,
        "clock": datetime.fromtimestamp(basis.clock / 1000, UTC),
        "follows": basis.follows,
        "worker_skew": basis.worker_skew,
    }


def decision_meta(identity: str, correlation: str, cause: str | None) -> Meta:
    """`meta` of what the governor says."""
    return mesh_meta(identity, ACTOR, correlation, cause)


@cache
def version() -> str:
    """The version of this software, and a digest of the sources that judge: `0.1.0+1f6e02ac9b57`.

    Two of one number may have other rules; who judges a decision again has to have the same ones.
    Without an installation the number is `source`.
    """
    try:
        number = metadata.version("streaming-data-mesh")
    except metadata.PackageNotFoundError:
        number = "source"
    digest = sha256()
    for package in (mesh_events, projections):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return f"{number}+{digest.hexdigest()[:12]}"
