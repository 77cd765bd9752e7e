"""The intents still to be decided, the checks they wait for, and the ids already seen."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from immutables import Map

from mesh_events.decisions import Decision, RecordsSetAside
from mesh_events.facts import Check
from mesh_events.meta import milliseconds
from mesh_events.record import Entry, Fault, FaultCode
from projections import unusable as runs
from projections.table import Table
from projections.unusable import Unusable

WINDOW_MS = 60 * 60 * 1000
"""How long after it was made an intent may reach the log, by the mesh's clock."""
AHEAD_MS = 5 * 60 * 1000
"""How far an emitter's clock may be ahead of the mesh's."""
REMEMBERED_MS = WINDOW_MS + AHEAD_MS
"""How long ids are remembered, at least: as long as a copy of the intent would not be stale."""
PartyOf = Callable[[str | None], str]
"""Whose bound a public key counts to, see `Identity.party_of`."""
IsInForce = Callable[[str | None], bool]
"""Whether a public key still signs for somebody, see `Identity.is_in_force`."""


class Intents(NamedTuple):
    """Undecided intents by offset, checks by offset and name, (signer, id) of intents lately seen.

    Undecided records are state: whichever governor comes next decides them. Those that can have no
    effect stand in `unusable`. An id belongs to its signer: nobody can use up the id of somebody
    else's intent by writing it first. Where the clock of its maker was far ahead, an intent is
    refused and stands in `ahead` with the time (ms) until which a copy of it would not be stale:
    whoever reads the log can append it again. No id of an intent that was made since `horizon` (ms)
    was forgotten. `waiting` counts a party's undecided intents, `remembered` its ids.
    """

    undecided: Table[int, Entry] = Map()
    checks: Table[int, Map[str, Check]] = Map()
    seen: Table[tuple[str | None, str], int] = Map()
    seen_before: Table[tuple[str | None, str], int] = Map()
    ahead: Table[tuple[str | None, str], tuple[int, int]] = Map()
    window_start: int = 0
    horizon: int = 0
    unusable: Unusable = runs.EMPTY
    waiting: Table[str, int] = Map()
    remembered: Table[str, int] = Map()

    def is_open(self, offset: int) -> bool:
        """Whether the record at an offset is undecided, usable or not."""
        return offset in self.undecided or self.unusable.holds(offset)

    @property
    def open_count(self) -> int:
        """How many records are undecided, usable or not."""
        return len(self.undecided) + self.unusable.size

    def first_offset(self, signer: str | None, intent: str) -> int | None:
        """Where the signer's intent with this id stood first, if it is still remembered."""
        who = (signer, intent)
        first = self.seen.get(who, self.seen_before.get(who))
        return self.ahead[who][0] if first is None and who in self.ahead else first


EMPTY = Intents()


def repeated(intents: Intents, entry: Entry, clock: int) -> Fault | None:
    """Why an intent may be a copy of an earlier one, which anybody can append without a key.

    Either its id is remembered, or it was made before `horizon`, so that its id may have been
    forgotten: no copy is neither. Such an intent is stale also by the time of any decision on it.

    Args:
        intents: before it, with those ids forgotten that may be forgotten now.
        entry: the record.
        clock: the mesh's clock, ms.
    """
    if entry.event is None:
        return None
    meta = entry.event.meta
    first = intents.first_offset(entry.signer, meta.id)
    if first is not None:
        return Fault(FaultCode.DUPLICATE_INTENT, duplicate_of(first))
    made = milliseconds(meta.time)
    if made < intents.horizon:
        return Fault(FaultCode.STALE_INTENT, too_old(clock - made))
    return None


def duplicate_of(first: int) -> str:
    """The reason for setting a copy of the intent at an offset aside."""
    return f"the same intent stands at offset {first}; that one counts"


def too_old(age: int) -> str:
    """The reason for refusing an intent of an age in ms."""
    return (
        f"made {age // 1000} s before it reached the log, at most {WINDOW_MS // 1000} s are "
        "allowed: emit it again"
    )


def arrived(
    intents: Intents, entry: Entry, clock: int, party_of: PartyOf = str, *, expiring: bool = True
) -> Intents:
    """An intent stands on the log that a governor can judge.

    Args:
        intents: before it.
        entry: the record.
        clock: the mesh's clock, ms.
        party_of: as of now.
        expiring: whether ids may be forgotten now.
    """
    party = party_of(entry.signer)
    intents = intents._replace(
        undecided=intents.undecided.set(entry.offset, entry),
        waiting=_changed(intents.waiting, party, 1),
    )
    if entry.event is None:
        return intents
    if expiring:
        intents = expired(intents, clock, party_of)
    who = entry.signer, entry.event.meta.id
    if intents.first_offset(*who) is None:
        intents = intents._replace(
            seen=intents.seen.set(who, entry.offset),
            remembered=_changed(intents.remembered, party, 1),
        )
        made = milliseconds(entry.event.meta.time)
        if made >= clock + AHEAD_MS:
            until = made + WINDOW_MS
            intents = intents._replace(ahead=intents.ahead.set(who, (entry.offset, until)))
    return intents


def expired(
    intents: Intents, clock: int, party_of: PartyOf, is_in_force: IsInForce = bool
) -> Intents:
    """Forget the ids of the window before the last one, but for those of undecided intents.

    Copies of what a revoked key has signed are known by the key: its ids are forgotten, however far
    the clocks of their makers were ahead.
    """
    if clock - intents.window_start <= REMEMBERED_MS:
        return intents
    undecided = intents.undecided
    kept = {who: offset for who, offset in intents.seen_before.items() if offset in undecided}
    seen = {
        who: offset
        for who, offset in intents.seen.items()
        if is_in_force(who[0]) or offset in undecided
    }
    ahead = {
        who: (offset, until)
        for who, (offset, until) in intents.ahead.items()
        if (until >= clock and is_in_force(who[0])) or offset in undecided
    }
    # where the clock of its maker was ahead, an id may be younger than the window it arrived in
    gone = [
        until - WINDOW_MS + 1
        for who, (_, until) in intents.ahead.items()
        if who not in ahead and is_in_force(who[0])
    ]
    if len(kept) < len(intents.seen_before):
        gone.append(intents.window_start + AHEAD_MS)
    known = Counter(party_of(signer) for signer, _ in {*kept, *seen, *ahead})
    return intents._replace(
        seen=Map(kept),
        seen_before=Map(seen),
        ahead=Map(ahead),
        window_start=clock,
        horizon=max([intents.horizon, *gone]),
        remembered=Map(known),
    )


def _changed(counts: Table[str, int], party: str, by: int) -> Table[str, int]:
    count = counts.get(party, 0) + by
    if count > 0:
        return counts.set(party, count)
    return counts.delete(party) if party in counts else counts


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


def decided(intents: Intents, offset: int, party_of: PartyOf = str) -> Intents:
    """The intent at `offset` is decided."""
    checks = intents.checks.delete(offset) if offset in intents.checks else intents.checks
    party = party_of(intents.undecided[offset].signer)
    return intents._replace(
        undecided=intents.undecided.delete(offset),
        checks=checks,
        waiting=_changed(intents.waiting, party, -1),
    )


def set_aside(intents: Intents, event: Decision, party_of: PartyOf) -> Intents:
    """Records were decided as unusable, whether this version could judge them or not."""
    if isinstance(event, RecordsSetAside):
        for offset in event.among(intents.undecided):
            intents = decided(intents, offset, party_of)
    return intents._replace(unusable=runs.decided(intents.unusable, event))
