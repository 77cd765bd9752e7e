"""Which records of a source stand in a topic that was filled from it, from a place on.

The topic is read from its end back, in growing steps, until what comes before is of earlier places.
A topic is filled in the order of its source, but for records that say otherwise (`AGAIN`).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_streams.errors import CopyError
from spark_streams.last import Headers, Last
from spark_streams.log import PartitionLog, TooLongError
from spark_streams.provenance import HEADER, Origin
from spark_streams.tail import Tail, Tails, place_of

AGAIN = "mesh.again"
"""Header before `mesh.source`: every record before this one has a place before that number."""
MOST_PLACES = 64_000_000
"""Of all partitions together. Each is a bit, also in each task of Spark's."""
MOST_CPU_S, MOST_S = 120.0, 240.0
"""So long one start reads back at most, some 8 million records; all that it does has to be done in
ten minutes, which would end the worker."""
_FIRST, _STEP = 64, 2
"""Records that are read first, and so many times as many in each step back."""
_LONGEST = 19
_LOOK = 64
"""Records, each of which may have ten thousand headers, between looks at the clock."""
_ENDS = (AGAIN.encode(), HEADER.encode())


@dataclass(slots=True)
class Standing:
    """What is known of one partition; places are offsets of the source.

    floor: the place from which on it was asked for.
    known: place from which on each record that stands there is in `places`; before it some may be
        left out, since records were removed from the topic.
    next: place behind the furthest that stands there, at least `floor`.
    places: a bit for each place from `floor` to `next`, the lowest of a byte first: 1 where the
        record stands there.
    """

    floor: int
    known: int
    next: int
    places: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class Filled:
    """A topic that was filled.

    tails: of its partitions.
    told: partition -> place before which is what stood there when that was last written down.
    begin: partition -> the end that it had when the flow came to it; before it, records from `told`
        on are not this flow's.
    says: whether `AGAIN` counts: only where the header before the last one is always the mesh's.
    """

    topic: str
    tails: Tails
    told: Mapping[int, int]
    begin: Mapping[int, int]
    says: bool = False


class Budget:
    """How long one start may read back, from now on."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.thread_time() + MOST_CPU_S, time.monotonic() + MOST_S

    @property
    def is_over(self) -> bool:
        """Whether it is used up."""
        return time.thread_time() > self._cpu or time.monotonic() > self._wall

    @property
    def left_s(self) -> float:
        """Seconds."""
        return max(0.0, self._wall - time.monotonic())


def standing(
    log: PartitionLog,
    filled: Filled,
    floor: Mapping[int, int],
    origin: Origin,
    budget: Budget | None = None,
) -> dict[int, Standing]:
    """Read what stands in each partition of `floor`, which has the places to begin at.

    budget: of all that is read together; one of its own without.

    Raises:
        CopyError: `destination_foreign` or `destination_unreadable`, as `read_tail` does, for every
            record that is met; `too_much_again` for too many.
    """
    budget = budget or Budget()
    room = _Room(filled.topic, budget)
    backs = {p: _Back(filled, p, place, origin, room) for p, place in floor.items()}
    left, step = dict(backs), _FIRST
    while left := {p: back for p, back in left.items() if not back.is_done}:
        ranges = {p: back.step(step) for p, back in left.items()}
        try:
            log.each(
                filled.topic, ranges, lambda p, record: backs[p].take(record), _ENDS, budget.left_s
            )
        except TooLongError as error:
            raise room.fault(*next((p, backs[p].found.floor) for p in ranges)) from error
        for back in left.values():
            back.stepped()
        step *= _STEP
    return {p: back.found for p, back in backs.items()}


class _Room:
    """How many places there were in all partitions, and for how long they are looked for."""

    def __init__(self, topic: str, budget: Budget) -> None:
        self._topic, self._places, self._records = topic, 0, 0
        self._budget = budget

    def take(self, partition: int, floor: int, places: int) -> None:
        """One record more, and so many places."""
        self._places += places
        self._records += 1
        if self._places > MOST_PLACES or (self._records % _LOOK == 0 and self._budget.is_over):
            raise self.fault(partition, floor)

    def fault(self, partition: int, floor: int) -> CopyError:
        """There is more than can be looked through."""
        return CopyError(
            "too_much_again",
            f"behind offset {floor} of the stream's partition {partition}, which the statement "
            f"was last known to have dealt with, {self._topic} holds more than can be looked "
            f"through in {MOST_CPU_S:g} s, or of more than {MOST_PLACES} of its offsets, "
            "so that it is not known what is still to be written. Delete the statement, and add "
            "it again with --from latest (what is in neither of its topics until then is left "
            "out), or add another one that fills another topic",
        )


class _Back:
    """The way through one partition, from its end back.

    In a step records come in their order. `_bound` is that of the first one behind which no offset
    is without a record: what stands before it has places before that.
    """

    def __init__(
        self, filled: Filled, partition: int, floor: int, origin: Origin, room: _Room
    ) -> None:
        self._topic, self._partition, self._origin = filled.topic, partition, origin
        self._says, self._prefix = filled.says, f"{origin.prefix}{partition}/".encode()
        self._tail = filled.tails.get(partition, Tail(0, 0, None))
        self._told = filled.told.get(partition, 0)
        self._begin = filled.begin.get(partition, 0)
        self.found, self._room = Standing(floor, floor, floor), room
        self._bound: int | None = None
        self._in_step: int | None = None
        self._is_cut = False
        self._start = self._expected = self._end = self._tail.end
        self.is_done = False
        self._look()

    def step(self, most: int) -> tuple[int, int]:
        """The offsets that are read next."""
        self._start, self._end = max(self._tail.low, self._start - most), self._start
        self._expected, self._in_step, self._is_cut = self._start, None, False
        return self._start, self._end

    def take(self, record: Last) -> None:
        """One record of the step."""
        if record.offset != self._expected:
            self._cut()
        self._expected = record.offset + 1
        if record.is_marker:
            # nothing is missing there
            self._room.take(self._partition, self.found.floor, 0)
            return
        if record.offset < self._begin and not self._is_earlier(record):
            self._cut()
            return
        place = self._place(record)
        if self._in_step is None:
            self._in_step = _bound(record.headers, place) if self._says else place
        self._mark(place)

    def stepped(self) -> None:
        """The step is over."""
        if self._expected != self._end:
            self._cut()
        self._bound = self._bound if self._in_step is None else self._in_step
        self._look()

    def _cut(self) -> None:
        """Records are missing here: what is known begins behind."""
        self._in_step, self._is_cut = None, True

    def _is_earlier(self, record: Last) -> bool:
        """Whether a record before the begin is of this flow's earlier life."""
        try:
            place = self._place(record)
        except CopyError:
            return False
        return place < self._told

    def _place(self, record: Last) -> int:
        name, value = record.headers[-1] if record.headers else ("", None)
        if name == HEADER and value is not None and value.startswith(self._prefix):
            place = value[len(self._prefix) :]
            if place.isdigit() and len(place) <= _LONGEST:
                return int(place)
        return place_of(self._topic, self._partition, record, self._origin)

    def _mark(self, place: int) -> None:
        found = self.found
        more = max(0, place + 1 - found.next) if place >= found.floor else 0
        self._room.take(self._partition, found.floor, more)
        if place < found.floor:
            return
        if place >= found.next:
            found.next = place + 1
            found.places.extend(bytes((place - found.floor) // 8 + 1 - len(found.places)))
        found.places[(place - found.floor) // 8] |= 1 << (place - found.floor) % 8

    def _look(self) -> None:
        """Whether what comes before is of earlier places, or cannot be read any more."""
        floor = self.found.floor
        if self._bound is not None and self._bound <= floor:
            self.found.known, self.is_done = floor, True
        elif self._is_cut or self._start <= self._tail.low:
            is_whole = not self._is_cut and self._tail.low == 0
            # behind the last of what is left, what is missing may have been anything
            before = max(self._told, self.found.next) if self._bound is None else self._bound
            self.found.known = floor if is_whole else max(floor, before)
            self.is_done = True


def _bound(headers: Headers, place: int) -> int:
    """The place before which all records that stand before this one are."""
    name, value = headers[-2] if len(headers) > 1 else ("", None)
    if name != AGAIN or value is None or not value.isdigit() or len(value) > _LONGEST:
        return place
    return max(place, int(value))
