"""What the log has told about drift, and what it knew of topics at their publication. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mesh_events.decisions import IntentAccepted
from mesh_events.facts import CheckPassed, DriftFound
from mesh_events.intents import ProductPublished, ProductUpdated
from mesh_events.record import Entry, Record
from projections.identity import Role
from projections.image import EMPTY, Image
from projections.integrity.trusted_prefix import TrustedCheckpoints
from projections.replay import walk
from projections.rules.catalog import TOPIC_EXISTS


@dataclass(frozen=True, slots=True)
class Told:
    """A fact on the log: offset, time (ms of the mesh's clock), what it says, its append time."""

    offset: int
    time: int
    fact: DriftFound
    appended: int


@dataclass(slots=True)
class DriftLog:
    """The image at the end of the log, the facts about drift, and the evidence of topics.

    `evidence` maps product -> what `topic_exists` found when it was published, or when its topic
    was offered as replaced.
    """

    image: Image = EMPTY
    told: list[Told] = field(default_factory=list)
    evidence: dict[str, Mapping[str, str]] = field(default_factory=dict)
    known: set[tuple[str | None, str]] = field(default_factory=set)


def read(records: Iterable[Record], trusted: TrustedCheckpoints | None = None) -> DriftLog:
    """Fold a log from its first record, and keep what it says about drift. Raises as `walk`."""
    found = DriftLog()
    for entry, image in walk(records, trusted=trusted):
        before, found.image = found.image, image
        _note(found, entry, before)
    return found


def _none_is_later(told: list[Told], time: int) -> None:
    """Facts in front of a decision at `time` are not later; a clock that was ahead said so."""
    for at in range(len(told) - 1, -1, -1):
        if told[at].time <= time:
            return
        told[at] = replace(told[at], time=time)


def _note(found: DriftLog, entry: Entry, before: Image) -> None:
    event = entry.event
    _none_is_later(found.told, found.image.time)
    if isinstance(event, DriftFound) and before.identity.has_role(entry.signer, Role.CONTROLLER):
        # anybody may append it again
        name = entry.signer, event.meta.id
        if name not in found.known:
            found.told.append(Told(entry.offset, found.image.time, event, entry.time))
        found.known.add(name)
    if not isinstance(event, IntentAccepted):
        return
    asked = before.intents.undecided.get(event.offset)
    counted = event.offset not in found.image.intents.undecided
    if asked is None or not counted:
        return
    if not isinstance(asked.event, ProductPublished | ProductUpdated):
        return
    checks = before.intents.checks.get(event.offset)
    check = checks.get(TOPIC_EXISTS) if checks is not None else None
    if isinstance(check, CheckPassed):
        found.evidence[asked.event.product] = check.evidence
