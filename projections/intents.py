"""The intents still to be decided, the checks they wait for, and the ids already seen."""

from dataclasses import dataclass, field, replace

from immutables import Map

from mesh_events.facts import Check
from mesh_events.record import Entry

WINDOW_MS = 60 * 60 * 1000
"""How long after it was made an intent may reach the log; ids are remembered at least as long."""


@dataclass(frozen=True, slots=True)
class Intents:
    """Undecided records by offset, checks by offset and name, ids of the last one to two windows.

    Undecided records are state: whichever governor comes next decides them.
    """

    undecided: Map[int, Entry] = field(default_factory=Map)
    checks: Map[int, Map[str, Check]] = field(default_factory=Map)
    seen: Map[str, int] = field(default_factory=Map)
    seen_before: Map[str, int] = field(default_factory=Map)
    window_start: int = 0

    def first_offset(self, intent: str) -> int | None:
        """Where the intent with this id stood first, if that is not longer ago than the window."""
        return self.seen.get(intent, self.seen_before.get(intent))


EMPTY = Intents()


def arrived(intents: Intents, entry: Entry) -> Intents:
    """A record that needs a decision stands on the log."""
    intents = replace(intents, undecided=intents.undecided.set(entry.offset, entry))
    if entry.event is None:
        return intents
    identity = entry.event.meta.id
    if entry.time - intents.window_start > WINDOW_MS:
        intents = replace(intents, seen=Map(), seen_before=intents.seen, window_start=entry.time)
    if intents.first_offset(identity) is None:
        intents = replace(intents, seen=intents.seen.set(identity, entry.offset))
    return intents


def checked(intents: Intents, event: Check) -> Intents:
    """A check of an undecided intent came out; the first outcome counts."""
    if event.offset not in intents.undecided:
        return intents
    outcomes = intents.checks.get(event.offset, Map())
    if event.check in outcomes:
        return intents
    return replace(
        intents, checks=intents.checks.set(event.offset, outcomes.set(event.check, event))
    )


def decided(intents: Intents, offset: int) -> Intents:
    """The record at `offset` is decided."""
    checks = intents.checks.delete(offset) if offset in intents.checks else intents.checks
    return replace(intents, undecided=intents.undecided.delete(offset), checks=checks)
