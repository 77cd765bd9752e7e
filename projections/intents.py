"""The intents still to be decided, the checks they wait for, and the ids already seen."""

from typing import NamedTuple

from immutables import Map

from mesh_events.facts import Check
from mesh_events.meta import milliseconds
from mesh_events.record import Entry
from projections.table import Table

WINDOW_MS = 60 * 60 * 1000
"""How long after it was made an intent may reach the log, by the mesh's clock."""
AHEAD_MS = 5 * 60 * 1000
"""How far an emitter's clock may be ahead of the mesh's."""
REMEMBERED_MS = WINDOW_MS + AHEAD_MS
"""How long ids are remembered, at least: as long as a copy of the intent would not be stale."""


class Intents(NamedTuple):
    """Undecided records by offset, checks by offset and name, (signer, id) of intents lately seen.

    Undecided records are state: whichever governor comes next decides them. An id belongs to its
    signer: nobody can use up the id of somebody else's intent by writing it first. Where the clock
    of its maker was far ahead, an intent is refused and stands in `ahead` with the time (ms) until
    which a copy of it would not be stale: whoever reads the log can append it again. No id of an
    intent that was made since `horizon` (ms) was forgotten.
    """

    undecided: Table[int, Entry] = Map()
    checks: Table[int, Map[str, Check]] = Map()
    seen: Table[tuple[str | None, str], int] = Map()
    seen_before: Table[tuple[str | None, str], int] = Map()
    ahead: Table[tuple[str | None, str], tuple[int, int]] = Map()
    window_start: int = 0
    horizon: int = 0

    def first_offset(self, signer: str | None, intent: str) -> int | None:
        """Where the signer's intent with this id stood first, if it is still remembered."""
        who = (signer, intent)
        first = self.seen.get(who, self.seen_before.get(who))
        return self.ahead[who][0] if first is None and who in self.ahead else first


EMPTY = Intents()


def arrived(intents: Intents, entry: Entry, clock: int, *, expiring: bool = True) -> Intents:
    """A record that needs a decision stands on the log.

    Args:
        intents: before it.
        entry: the record.
        clock: the mesh's clock, ms.
        expiring: whether ids may be forgotten now.
    """
    intents = intents._replace(undecided=intents.undecided.set(entry.offset, entry))
    if entry.event is None:
        return intents
    if expiring and clock - intents.window_start > REMEMBERED_MS:
        intents = _next_window(intents, clock)
    who = entry.signer, entry.event.meta.id
    if intents.first_offset(*who) is None:
        intents = intents._replace(seen=intents.seen.set(who, entry.offset))
        made = milliseconds(entry.event.meta.time)
        if made > clock + AHEAD_MS:
            until = made + WINDOW_MS
            intents = intents._replace(ahead=intents.ahead.set(who, (entry.offset, until)))
    return intents


def _next_window(intents: Intents, clock: int) -> Intents:
    """Forget the ids of the window before the last one, but for those of undecided intents."""
    undecided = intents.undecided
    kept = {who: offset for who, offset in intents.seen_before.items() if offset in undecided}
    return intents._replace(
        seen=Map(kept),
        seen_before=intents.seen,
        ahead=Map(
            {
                who: (offset, until)
                for who, (offset, until) in intents.ahead.items()
                if until >= clock or offset in undecided
            }
        ),
        window_start=clock,
        horizon=intents.window_start + AHEAD_MS,
    )


def checked(intents: Intents, event: Check) -> Intents:
    """A check of an undecided intent came out; the first outcome counts."""
    if event.offset not in intents.undecided:
        return intents
    outcomes = intents.checks.get(event.offset, Map())
    if event.check in outcomes:
        return intents
    return intents._replace(
        checks=intents.checks.set(event.offset, outcomes.set(event.check, event))
    )


def decided(intents: Intents, offset: int) -> Intents:
    """The record at `offset` is decided."""
    checks = intents.checks.delete(offset) if offset in intents.checks else intents.checks
    return intents._replace(undecided=intents.undecided.delete(offset), checks=checks)
