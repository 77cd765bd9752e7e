"""Lanes: work on different servers side by side, work on one server one after the other.

A cluster that does not answer holds up its own lane and nobody else's.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Protocol, TypeVar

import structlog

from mesh_events.errors import StateFaultError
from processors.controllers.controller import Leadership, NotLeaderError
from projections.image import Image

Job = Callable[[], None]
Item = TypeVar("Item")
log = structlog.get_logger(__name__)
PATIENCE_S = 1.0
"""For so long a round waits for a lane; one that takes longer goes on beside the next rounds."""
ROUND_S = 2.0
"""A job begins nothing new after so long: what is left comes with the next, fresher image."""
STALL_S = 600.0
"""Every call to a server is bounded in time: a lane that is busy for so long hangs.

Not for good where one job of a domain makes many such calls and its own server takes its time for
each: that is logged, and ends no worker of others.
"""
_MOST = 96
"""Threads of one kind of work; they are made when they are needed."""


class Lanes(Protocol):
    """Runs the jobs of one round; a lane is busy with one job at a time."""

    def run(self, jobs: Mapping[str, Job], image: Image, leadership: Leadership) -> None:
        """Run each lane's job; raises what a job raised.

        Args:
            jobs: lane -> what to do on `image`; a lane that is busy is left out of this round.
            image: what the jobs were made from.
            leadership: under which they act.
        """


class SerialLanes:
    """Every lane in turn, in the caller's thread."""

    def run(self, jobs: Mapping[str, Job], image: Image, leadership: Leadership) -> None:
        """Run all jobs; see `Lanes`."""
        del image, leadership
        for name in sorted(jobs):
            jobs[name]()


def for_a_while(items: Iterable[Item], seconds: float = ROUND_S) -> Iterator[Item]:
    """The items that can be begun within `seconds`; the first one always."""
    until = time.monotonic() + seconds
    for item in items:
        yield item
        if time.monotonic() > until:
            return


def in_turn(items: Iterable[Item], owner: Callable[[Item], Hashable]) -> list[Item]:
    """One item of each owner after the other, an owner's own in their order."""
    ranks: Counter[Hashable] = Counter()
    ranked: list[tuple[int, Item]] = []
    for item in items:
        ranked.append((ranks[owner(item)], item))
        ranks[owner(item)] += 1
    return [item for _, item in sorted(ranked, key=lambda one: one[0])]


class Claims:
    """Items of a queue that several lanes share: each item is in one lane at a time.

    Lanes may be rounds apart. No item is handled on an older image than before, nor on one without
    what was reported until then, or it is reported twice.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._claimed: set[str] = set()
        # item -> the offset that its next image has at least
        self._least: dict[str, int] = {}

    @contextmanager
    def claim(self, item: str, image: Image, leadership: Leadership) -> Iterator[bool]:
        """Whether the item may be handled on this image, by nobody else until the block ends."""
        with self._lock:
            free = item not in self._claimed and image.offset >= self._least.get(item, -1)
            if free:
                self._claimed.add(item)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._claimed.discard(item)
                    self._least[item] = max(image.offset, leadership.last_report)


@dataclass(slots=True)
class _Lane:
    """`job` has begun at `since`, which is None while it waits for a thread.

    `told` is the last fact that was on the log at the end of the one before. `hangs` once it was
    logged that the job does.
    """

    job: "Future[int] | None" = None
    leadership: Leadership | None = None
    since: float | None = None
    told: int = -1
    hangs: bool = False


class ThreadedLanes:
    """Each lane in a thread of its own while it has something to do.

    Args:
        name: of the controller.
        of_domains: each lane works for one domain, on servers that it may slow down: a lane that
            hangs is logged and left out, and the worker goes on for the others.
    """

    def __init__(self, name: str, *, of_domains: bool = False) -> None:
        self._of_domains = of_domains
        self._pool = ThreadPoolExecutor(_MOST, thread_name_prefix=name)
        self._lanes: dict[str, _Lane] = {}
        self._name = name

    def run(self, jobs: Mapping[str, Job], image: Image, leadership: Leadership) -> None:
        """Start what can be started, and wait for it for a moment; see `Lanes`.

        What a lane reported must be in the image of its next job, or it is reported twice.
        """
        self._look(leadership)
        for name in sorted(jobs):
            lane = self._lanes.setdefault(name, _Lane())
            if lane.job is None and lane.told <= image.offset:
                lane.since, lane.leadership = None, leadership
                lane.job = self._pool.submit(_reporting, lane, jobs[name], leadership)
        busy = {lane.job for lane in self._lanes.values() if lane.job is not None}
        wait(busy, timeout=PATIENCE_S)
        self._look(leadership)

    def _look(self, leadership: Leadership) -> None:
        """Take in the jobs that have ended; raise what one of them raised under this leadership."""
        faults: list[BaseException] = []
        for name, lane in self._lanes.items():
            job, since = lane.job, lane.since
            busy = 0.0 if since is None else time.monotonic() - since
            if job is not None and job.done():
                lane.job = None
                self._goes_on(name, lane, busy)
                fault = job.exception()
                if fault is None:
                    lane.told = job.result()
                elif lane.leadership is leadership or not isinstance(fault, NotLeaderError):
                    faults.append(fault)
            elif job is not None and busy > STALL_S:
                self._hangs(name, lane, busy)
        # a fault of the program comes before the end of a leadership
        faults.sort(key=lambda fault: isinstance(fault, NotLeaderError))
        if faults:
            raise faults[0]

    def _hangs(self, name: str, lane: _Lane, busy: float) -> None:
        """End the worker by an error, or report once that one domain's work stands still."""
        if not self._of_domains:
            raise StateFaultError(
                f"the controller of {self._name} hangs at {name} for {busy:.0f} s"
            )
        if not lane.hangs:
            lane.hangs = True
            log.error("lane_hangs", controller=self._name, lane=name, seconds=round(busy))

    def _goes_on(self, name: str, lane: _Lane, busy: float) -> None:
        """Take back that a lane hangs."""
        if lane.hangs:
            lane.hangs = False
            log.info("lane_goes_on", controller=self._name, lane=name, seconds=round(busy))


def _reporting(lane: _Lane, job: Job, leadership: Leadership) -> int:
    """Do the job; the offset of the last fact that was reported by its end."""
    lane.since = time.monotonic()
    job()
    return leadership.last_report
