"""The intents still to be decided, the checks they wait for, and the ids already seen."""

from collections.abc import Callable
from typing import NamedTuple

from immutables import Map

from mesh_events.decisions import Decision, RecordsSetAside
from mesh_events.facts import Check
from mesh_events.meta import milliseconds
from mesh_events.record import Entry, Fault, FaultCode
from projections.deciding import unusable as runs
from projections.deciding.unusable import Unusable
from projections.table import Table

WINDOW_MS = 60 * 60 * 1000
"""How long after it was made an intent may reach the log, by the mesh's clock."""
AHEAD_MS = 5 * 60 * 1000
"""How far an emitter's clock may be ahead of the mesh's."""
REMEMBERED_MS = WINDOW_MS + AHEAD_MS
"""How long ids are remembered, at least: as long as a copy of the intent would not be stale."""
MOST_FORGOTTEN = 512
"""So many ids are looked at, at most, when a record is folded."""
PartyOf = Callable[[str | None], str]
"""Whose bound a public key counts to, see `Identity.party_of`."""
IsInForce = Callable[[str | None], bool]
"""Whether a public key still signs for somebody, see `Identity.is_in_force`."""


class Arrival(NamedTuple):
    """An id that is remembered: since when by the mesh's clock (ms), or looked at last.

    `until` is 0, or the time (ms) up to which a copy would not be stale, where the clock of its
    maker was ahead.
    """

    signer: str | None
    id: str
    clock: int
    until: int = 0


class Intents(NamedTuple):
    """Undecided intents by offset, checks by offset and name, (signer, id) of intents lately seen.

    Undecided records are state: whichever governor comes next decides them. Those that can have no
    effect stand in `unusable`. An id belongs to its signer: nobody can use up the id of somebody
    else's intent by writing it first. Ids stand in `line` by numbers from `line_first` to below
    `line_next`, the oldest first. Where the clock of its maker was far ahead, an intent is refused
    and its id kept until a copy of it would be stale: whoever reads the log can append it again. No
    id of an intent that was made since `horizon` (ms) was forgotten. `waiting` counts a party's
    undecided intents, `remembered` its ids.
    """

    undecided: Table[int, Entry] = Map()
    checks: Table[int, Map[str, Check]] = Map()
    seen: Table[tuple[str | None, str], int] = Map()
    line: Table[int, Arrival] = Map()
    line_first: int = 0
    line_next: int = 0
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
        return self.seen.get((signer, intent))


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


def arrived(intents: Intents, entry: Entry, clock: int, party_of: PartyOf = str) -> Intents:
    """An intent stands on the log that a governor can judge.

    Args:
        intents: before it, with those ids forgotten that may be forgotten now.
        entry: the record.
        clock: the mesh's clock, ms.
        party_of: as of now.
    """
    party = party_of(entry.signer)
    intents = intents._replace(
        undecided=intents.undecided.set(entry.offset, entry),
        waiting=_changed(intents.waiting, party, 1),
    )
    if entry.event is None:
        return intents
    who = entry.signer, entry.event.meta.id
    if intents.first_offset(*who) is not None:
        return intents
    made = milliseconds(entry.event.meta.time)
    until = made + WINDOW_MS if made >= clock + AHEAD_MS else 0
    return intents._replace(
        seen=intents.seen.set(who, entry.offset),
        line=intents.line.set(intents.line_next, Arrival(*who, clock, until)),
        line_next=intents.line_next + 1,
        remembered=_changed(intents.remembered, party, 1),
    )


def expired(
    intents: Intents, clock: int, party_of: PartyOf, is_in_force: IsInForce = bool
) -> Intents:
    """Forget ids whose time is over, the oldest first and some at once, but of undecided intents.

    The others follow with the next records: what nobody wrote for hours about would keep the fold
    for seconds. What is not forgotten yet is still known as a copy, and counted.

    Copies of what a revoked key has signed are known by the key: its ids are forgotten, however far
    the clocks of their makers were ahead.
    """
    seen, line, remembered = intents.seen, intents.line, intents.remembered
    first, behind, horizon = intents.line_first, intents.line_next, intents.horizon
    for _ in range(MOST_FORGOTTEN):
        if first == behind or clock - (one := line[first]).clock <= REMEMBERED_MS:
            break
        line, first = line.delete(first), first + 1
        who, in_force = (one.signer, one.id), is_in_force(one.signer)
        if seen[who] in intents.undecided or (in_force and one.until >= clock):
            line, behind = line.set(behind, one._replace(clock=clock)), behind + 1
            continue
        seen, remembered = seen.delete(who), _changed(remembered, party_of(one.signer), -1)
        if in_force:
            made_before = one.until - WINDOW_MS + 1 if one.until else one.clock + AHEAD_MS
            horizon = max(horizon, made_before)
    if first == intents.line_first:
        return intents
    return intents._replace(
        seen=seen,
        line=line,
        line_first=first,
        line_next=behind,
        horizon=horizon,
        remembered=remembered,
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
