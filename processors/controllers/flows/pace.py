"""How often a link is looked at and tried again, and what one process remembers of that."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from processors.controllers.flows.flow import Started
from projections.links import Link
from projections.statements import Statement

_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, and for how long; seconds but for `advance_records`.

    look: a running link's tail and topics are looked at this often.
    advance, advance_records: its floor is put on the log after so long, or so many records.
    lineage: a RUNNING event of lineage at most this often.
    quiet: a fenced destination has to stand still for so long.
    retry_first, retry_most: wait before the second try of what failed, doubled up to the most.
    stall, stall_most: a partition that has more to copy and does not move for so long is started
        anew; twice as long after each time that this did not help, up to the most.
    starts, steady: after so many queries in a row that ended before they had got on, or had lived
        for `steady`, the flow is closed for its owner.
    grace: readers of a copy that is to be removed are given so long before it is a failure.
    clock: seconds that only go forward.
    """

    look: float = 5
    advance: float = 30
    advance_records: int = 100_000
    lineage: float = 60
    quiet: float = 0.3
    retry_first: float = 1
    retry_most: float = 60
    stall: float = 30
    stall_most: float = 480
    starts: int = 20
    steady: float = 600
    grace: float = 15
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Memory:
    """What this process knows of a link at one generation; losing it costs a repetition at most.

    Times are the clock's; `not_before` is the earliest next try after the fault `code`, told with
    `reason`, which `is_silence` of the engine; `waiting` maps a partition that is behind to its
    position and since when it stands there. For that it was started anew `stalls` times, the last
    time since partition `stood[0]` stood at `stood[1]`, and has not got on since. `starts` were
    handed to the engine since it last got on beyond the positions `furthest`; the last one at
    `started`. `searched` is up to where no record stands behind what was read, by partition.
    `left`: what was started before may still write. `begun` is a start that
    the log may count, which the lineage has not.
    """

    generation: int
    since: float
    attempts: int = 0
    code: str | None = None
    reason: str | None = None
    is_silence: bool = False
    not_before: float = _NEVER
    looked: float = _NEVER
    advanced: float = _NEVER
    lineage: float = _NEVER
    waiting: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    stalls: int = 0
    stood: tuple[int, int] = (0, 0)
    starts: int = 0
    started: float = _NEVER
    furthest: Mapping[int, int] = field(default_factory=dict)
    searched: Mapping[int, int] = field(default_factory=dict)
    left: bool = True
    begun: Started | None = None


class Memories:
    """A memory for each flow, by its id."""

    def __init__(self) -> None:
        self._found: dict[str, Memory] = {}

    def __getitem__(self, flow: Link | Statement) -> Memory:
        return self._found[flow.id]

    def get(self, flow: Link | Statement) -> Memory | None:
        """None of one that this process has not looked at."""
        return self._found.get(flow.id)

    def begin(self, flow: Link | Statement, memory: Memory) -> None:
        """Forget what belongs to an older generation."""
        self._found[flow.id] = memory

    def change(self, flow: Link | Statement, **changes: Any) -> None:
        """Replace fields of `Memory`."""
        self._found[flow.id] = replace(self._found[flow.id], **changes)
