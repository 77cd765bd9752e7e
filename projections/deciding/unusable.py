"""Records that can have no effect and are not decided yet, as runs: no memory for each of them.

A record is unusable where its arrival alone shows that it has no effect: it cannot be understood,
nobody's key in force has signed it, it may be a copy, or its domain is above a bound. A run holds
all of them from one offset to another; the other records between the two are its exceptions.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from immutables import Map

from mesh_events.decisions import Decision, IntentQuarantined, RecordsSetAside
from mesh_events.intents import Intent
from mesh_events.record import Entry, Fault, FaultCode
from projections import offsets
from projections.identity import Identity, Role
from projections.offsets import Ordered
from projections.table import Table

MOST_OFFSET = 2**63 - 1
MOST_EXCEPTIONS = 256
"""Exceptions of a run; where there would be more, the next run begins."""


class Run(NamedTuple):
    """Every record from `first` to `last` but the exceptions; `fault` is that of the last one.

    `exceptions` ascend; `counts` maps a code to the number of records.
    """

    first: int
    last: int
    exceptions: tuple[int, ...]
    counts: Map[str, int]
    fault: Fault

    def holds(self, offset: int) -> bool:
        """Whether an offset belongs to the run."""
        return self.first <= offset <= self.last and offset not in self.exceptions

    @property
    def size(self) -> int:
        """How many records it has."""
        return sum(self.counts.values())


class Unusable(NamedTuple):
    """The runs by their first offset.

    `newest` is the first offset of the run that may still grow, -1 if there is none; `between` are
    the offsets of other records behind that run, ascending. `firsts` has the first offsets in
    order: there may be as many runs as somebody likes to write.
    """

    runs: Table[int, Run] = Map()
    newest: int = -1
    between: tuple[int, ...] = ()
    firsts: Ordered = offsets.EMPTY

    def holds(self, offset: int) -> bool:
        """Whether the record at an offset is unusable and undecided."""
        run = self._around(offset)
        return run is not None and run.holds(offset)

    def fault_at(self, offset: int) -> Fault | None:
        """What is wrong with the record at an offset, if it was the last one of a run."""
        if offset > self.newest >= 0:
            # no run begins behind the newest one
            run: Run | None = self.runs[self.newest]
        else:
            run = self._around(offset)
        return run.fault if run is not None and run.last == offset else None

    @property
    def size(self) -> int:
        """How many records are unusable and undecided."""
        return sum(run.size for run in self.runs.values())

    def in_order(self, most: int | None = None) -> list[Run]:
        """The runs by their offsets; the first so many of them, if that is given."""
        return list(islice(self.among(0, MOST_OFFSET), most))

    def among(self, first: int, last: int) -> Iterator[Run]:
        """The runs that reach into a range, by their offsets."""
        before = self._around(first - 1)
        if before is not None and before.last >= first:
            yield before
        yield from (self.runs[one] for one in offsets.between(self.firsts, first, last))

    def _around(self, offset: int) -> Run | None:
        """The last run that begins at an offset or before it."""
        first = offsets.last_until(self.firsts, offset)
        return self.runs[first] if first is not None else None


EMPTY = Unusable()


def untrusted(identity: Identity, entry: Entry) -> Fault | None:
    """Why a record cannot be understood or trusted, None if it can."""
    if entry.fault is not None:
        return entry.fault
    key = identity.key_of(entry.signer)
    if key is None or key.role is Role.ROOT:
        return Fault(FaultCode.UNKNOWN_KEY, f"no domain has the key {entry.signer}")
    if key.revoked is not None:
        return Fault(
            FaultCode.REVOKED_KEY,
            f"{key.domain}'s key was revoked at offset {key.revoked}: sign with one in force",
        )
    # an id is remembered for a while: its length is known before
    if isinstance(entry.event, Intent) and not _is_uuid(entry.event.meta.id):
        return Fault(
            FaultCode.INVALID_ID, "meta.id is not a UUID: use a fresh UUIDv7 for each intent"
        )
    return None


def _is_uuid(text: str) -> bool:
    """Whether `text` is a UUID in its one canonical spelling; a second would be a second id."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def arrived(known: Unusable, offset: int, fault: Fault) -> Unusable:
    """An unusable record stands on the log."""
    code = fault.code.value
    if known.newest < 0:
        run = Run(offset, offset, (), Map({code: 1}), fault)
        firsts = offsets.added(known.firsts, offset)
        return Unusable(known.runs.set(offset, run), offset, firsts=firsts)
    run = known.runs[known.newest]
    grown = run._replace(
        last=offset,
        exceptions=run.exceptions + known.between,
        counts=run.counts.set(code, run.counts.get(code, 0) + 1),
        fault=fault,
    )
    return known._replace(runs=known.runs.set(known.newest, grown), between=())


def passed(known: Unusable, offset: int) -> Unusable:
    """A record was folded; the newest run ends where one more would be an exception too many."""
    if known.newest < 0:
        return known
    run = known.runs[known.newest]
    if run.last == offset:
        return known
    if len(run.exceptions) + len(known.between) == MOST_EXCEPTIONS:
        return Unusable(known.runs, firsts=known.firsts)
    return known._replace(between=(*known.between, offset))


def decided(known: Unusable, event: Decision) -> Unusable:
    """A decision on unusable records was counted: what is left of their runs."""
    first, last, exceptions = event.offset, event.offset, list[int]()
    if isinstance(event, RecordsSetAside):
        last, exceptions = event.last, event.exceptions
    spared = [one for one in exceptions if first <= one <= last]
    runs, newest, firsts = known.runs, known.newest, known.firsts
    for run in known.among(first, last):
        runs, firsts = runs.delete(run.first), offsets.removed(firsts, run.first)
        left = list(_left(run, first, last, spared, _counts(event, run)))
        for part in left:
            runs, firsts = runs.set(part.first, part), offsets.added(firsts, part.first)
        if run.first == newest:
            newest = left[-1].first if left and left[-1].last == run.last else -1
    return Unusable(runs, newest, known.between if newest >= 0 else (), firsts)


def _counts(event: Decision, run: Run) -> Mapping[str, int]:
    """How many records of which code a decision takes out of a run."""
    if isinstance(event, RecordsSetAside):
        return event.counts
    code = event.code if isinstance(event, IntentQuarantined) else ""
    return {code if code in run.counts else min(run.counts): 1}


def _left(
    run: Run, first: int, last: int, spared: Iterable[int], counts: Mapping[str, int]
) -> Iterator[Run]:
    """What is left of a run without the range from `first` to `last`, but for what is spared.

    A governor decides from the run's first offset on, and spares nothing: one part is left, and its
    counts are exact. Else, on a log of another version or an altered one, they are an estimate.
    Which offsets are left is exact always.
    """
    single = [(one, one) for one in sorted(set(spared))]
    spans = [(run.first, first - 1), *single, (last + 1, run.last)]
    parts = [part for one in spans if (part := _trimmed(run, *one)) is not None]
    left = {code: n - counts.get(code, 0) for code, n in run.counts.items()}
    for number, (begin, end, exceptions) in enumerate(parts, start=1):
        most = end - begin + 1 - len(exceptions) if number < len(parts) else run.last
        taken, left = _taken(left, most)
        yield Run(begin, end, exceptions, Map(taken or {run.fault.code.value: 1}), run.fault)


def _trimmed(run: Run, first: int, last: int) -> tuple[int, int, tuple[int, ...]] | None:
    """The part of a run between two offsets, without exceptions at its ends; None for nothing."""
    first, last = max(first, run.first), min(last, run.last)
    while first <= last and first in run.exceptions:
        first += 1
    while first <= last and last in run.exceptions:
        last -= 1
    if first > last:
        return None
    return first, last, tuple(one for one in run.exceptions if first < one < last)


def _taken(counts: Mapping[str, int], most: int) -> tuple[dict[str, int], dict[str, int]]:
    """Up to so many records of `counts`, in the order of their codes, and the others."""
    taken, left = dict[str, int](), dict[str, int]()
    for code, count in sorted(counts.items()):
        some = min(max(count, 0), most)
        most -= some
        if some:
            taken[code] = some
        if count > some:
            left[code] = count - some
    return taken, left
