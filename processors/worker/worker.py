"""The worker's life: reads the log, leads while it owns it, and runs the controllers.

Everything here runs on one event loop; what blocks goes to a thread, bounded in time.
"""

import asyncio
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import structlog
from prometheus_client.core import Metric

from mesh_events.emit import LogWriter
from mesh_events.errors import StateFaultError
from mesh_events.kafka.connection import Connection
from mesh_events.signing import SigningKey
from processors.controllers.controller import Controller, NotLeaderError
from processors.crash_points import crash_point
from processors.governor.governor import Governor
from processors.log.end import LogEnd
from processors.log.fold import LogFold
from processors.worker.backlog import Backlog
from processors.worker.leadership import LEASE_S, LeaderLease, now
from processors.worker.metrics import gauges
from processors.worker.standby import Standby
from projections.clocks import clock_finding
from projections.image import EMPTY

log = structlog.get_logger(__name__)
CONTROLLER_PERIOD_S = 2.0
"""How often controllers look at the world when nothing was said on the log."""
CONTROLLER_PACE_S = 0.1
"""A controller begins no round before so long after its last one began: where much is said, it
looks at many changes at once and leaves the time to the governor."""
ASK_S = 0.5
"""How often the owner of the log asks for its end: some times within a lease."""
AGAIN_S = 3.0
"""How long a worker that owns the log and was overtaken waits before it leads again: longer
than another one needs to learn that the log is no longer its own."""
STALL_S = 60.0
"""A worker that owns the log and does not get on for this long ends itself, to be started anew."""


CONTROLLER_STALL_S = 600.0
"""A controller's round takes seconds; one that takes so long hangs, and the worker ends itself."""
_THREADS = 32
FIRST_ROUND_S = 5.0
"""Readiness waits so long for the controllers' first round: it reports what does not run any more,
and may then go on with starts, which take their time."""


class Worker:
    """One worker process: at most one leadership at a time.

    Args:
        governor: fold and decisions.
        connection: login that reads the log.
        writer: appends to the log.
        controller_key: signs what controllers report.
        controllers: each runs in a thread of its own.
    """

    def __init__(
        self,
        governor: Governor,
        connection: Connection,
        writer: LogWriter,
        controller_key: SigningKey,
        controllers: Sequence[Controller],
    ) -> None:
        self.governor, self.controllers = governor, controllers
        self._connection, self._writer, self._controller_key = connection, writer, controller_key
        self._leadership: LeaderLease | None = None
        governor.metrics.observe(self._gauges)
        self._tasks: list[asyncio.Task[None]] = []
        self._again: asyncio.Task[None] | None = None
        # counts how often the log was given and taken: what began under another number is over
        self._tenure = 0
        self._loaded = asyncio.Event()
        self._changed = asyncio.Condition()
        self._log = LogFold(connection, governor)
        # offset behind the log's last record as Kafka said it last; None before it was asked
        self._end: int | None = None
        self._standby = Standby(connection, governor, self._log.lock)
        # whether the group has said that another worker has the log
        self._is_anothers = False
        # by default there are fewer threads than jobs: one that waits would hold up another
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
        # what has compared the world with the log in this leadership
        self._compared: set[str] = set()
        self._opened = 0.0
        self._backlog = Backlog(EMPTY, 0)
        self._running: dict[str, threading.Lock] = {k.name: threading.Lock() for k in controllers}

    @property
    def ready(self) -> bool:
        """Whether this worker may act, and what was said before its leadership is decided in turns.

        That is all that the mesh and operators said, and the first of each domain; see `Backlog`.

        The controllers have also looked once, so that what the log says to run does run; see
        FIRST_ROUND_S.
        """
        leadership, image = self._leadership, self.governor.image
        if leadership is None or not self.governor.is_leader or leadership.staleness > LEASE_S:
            return False
        if leadership.alone_in or (self._uncompared and now() - self._opened < FIRST_ROUND_S):
            return False
        return not self._backlog.is_open(image, self.governor.waiting)

    @property
    def stands_by(self) -> bool:
        """Whether another worker has the log, and this one can take over in a moment."""
        return self._is_anothers and self._standby.is_near

    @property
    def _uncompared(self) -> list[str]:
        """Controllers whose first round in this leadership is not over."""
        return sorted({controller.name for controller in self.controllers} - self._compared)

    def describe(self) -> dict[str, Any]:
        """What the readiness page tells: offsets, a count, and ages in seconds.

        `standby` says that another worker has the log, and this one follows it.
        `clocks` is the finding on clocks that disagree, null while they agree.
        `oldest_undecided_s` is the age of the oldest intent without a decision, by the mesh's clock
        and not by that of the machine that shows it, `staleness_s` the
        time since the fold was last known to stand at the end of the log, `not_compared` the
        controllers that have not compared the world with the log yet; null without a leadership.
        """
        image, leadership = self.governor.image, self._leadership
        # append times are the broker's, and none is before the mesh's last decision
        ahead = max(0, image.skew)
        times = [entry.time - ahead for entry in image.intents.undecided.values()]
        return {
            "ready": self.ready,
            "standby": self.stands_by,
            "epoch": image.epoch,
            "offset": image.offset,
            "undecided": image.intents.open_count,
            "oldest_undecided_s": max(0, self.governor.time - min(times)) / 1000 if times else 0,
            "staleness_s": round(leadership.staleness, 3) if leadership is not None else None,
            "not_compared": self._uncompared if leadership is not None else None,
            "clocks": asdict(clocks) if (clocks := clock_finding(image)) is not None else None,
            **self.governor.watch.describe(),
        }

    def metrics(self) -> bytes:
        """What the worker measures, in Prometheus' text format."""
        return self.governor.metrics.text()

    def _gauges(self) -> Iterable[Metric]:
        governor = self.governor
        return gauges(governor.image, governs=governor.is_leader, end=self._end)

    async def stand_by(self) -> None:
        """Fold along while the log is another's, for as long as this process lives."""
        try:
            await self._standby.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next worker begins anew
            _die(error)

    async def begin(self) -> None:
        """The log is ours: read it to its end, take the lead, catch up to it, open for work."""
        try:
            await self._begin()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next worker begins anew
            _die(error)

    async def _begin(self) -> None:
        tenure = self._tenure + 1
        await self.stop()
        if tenure != self._tenure:
            # the log was taken away while the jobs of an earlier leadership ended
            return
        self._standby.over()
        await asyncio.to_thread(self.governor.begin)
        await self._catch_up()
        if tenure != self._tenure:
            return
        self._loaded.set()
        asked = now()
        epoch = await asyncio.to_thread(self.governor.start)
        started = now()
        crash_point("after-start")
        await self._catch_up()
        if tenure != self._tenure:
            return
        if not self.governor.is_leader:
            self._overtaken(epoch)
            return
        first = len(self.governor.image.starts) == 1
        self._leadership = LeaderLease(
            epoch,
            self._writer,
            self._controller_key,
            lambda: self.governor.image,
            asked,
            asked if first else started + LEASE_S,
        )
        self._backlog = Backlog(self.governor.image, epoch)
        self._compared.clear()
        self._opened = now() + self._leadership.alone_in
        jobs = [self._listen(self._leadership), self._decide(self._leadership)]
        jobs += [self._keep(controller, self._leadership) for controller in self.controllers]
        self._tasks = [asyncio.create_task(job) for job in jobs]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def given_to_another(self) -> None:
        """The group has given the log to another worker."""
        self._is_anothers = True

    async def stop(self) -> None:
        """The log is not ours: nothing more is decided or done here."""
        self._tenure += 1
        self._is_anothers = False
        self._standby.again()
        self._loaded.clear()
        self._end = None
        if self._leadership is not None:
            self._leadership.end()
            self._leadership = None
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await self._announce()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def read_to(self, offset: int) -> None:
        """Fold the log where it is not folded as far as this offset."""
        await self._loaded.wait()
        await self._log.read_to(offset)
        await self._announce()

    async def _catch_up(self) -> None:
        await self._log.catch_up()
        await self._announce()

    async def _announce(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _reached(
        self, leadership: LeaderLease, offset: int, seconds: float, waits: int | None = None
    ) -> bool:
        """Wait until the fold has reached `offset`; whether it has within `seconds`.

        Also until another record waits for a check than the first `waits`, if that is given.
        Ends with the leadership, too: after a cancellation that was lost nothing would be folded
        for as long as this waits, and `stop` would wait for this.
        """

        def there() -> bool:
            if waits is not None and self.governor.waits != waits:
                return True
            return self.governor.image.offset >= offset

        try:
            # not `wait_for`: it waits in a task of its own, and a cancellation that meets its end
            # leaves this one without the lock that it is about to release
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: there() or self._leadership is not leadership)
        except TimeoutError:
            pass
        return there()

    async def _decide(self, leadership: LeaderLease) -> None:
        """Decide until nothing is left, then wait for something to change."""
        paused = False
        while self._holds(leadership):
            seen = self.governor.image.offset
            try:
                leadership.check_leadership()
            except NotLeaderError as over:
                if not paused:
                    log.info("governor_paused", reason=str(over))
                paused = True
                await self._reached(leadership, seen + 1, CONTROLLER_PERIOD_S)
                continue
            paused = False
            waits = self.governor.waits
            records = await asyncio.to_thread(self.governor.step)
            if self.governor.waits != waits:
                # what is checked is not on the log: nothing else would wake the checks' controller
                await self._announce()
            if not records:
                await self._reached(leadership, seen + 1, CONTROLLER_PERIOD_S)
                continue
            await self._log.echo(records)
            await self._announce()
            last = records[-1].offset
            if (
                not await self._reached(leadership, last, STALL_S)
                and self._leadership is leadership
            ):
                raise StateFaultError(f"the record at offset {last} does not come back")
        if self._leadership is leadership:
            self._overtaken(leadership.epoch)

    def _holds(self, leadership: LeaderLease) -> bool:
        """Whether this leadership goes on.

        Every job asks at each turn: a cancellation that meets the end of a wait is lost, and a job
        that outlives `stop` would keep this worker out of its group for ever.
        """
        return self._leadership is leadership and self.governor.is_leader

    def _overtaken(self, epoch: int) -> None:
        """Another governor started, though the log is ours: it may be gone by now."""
        log.warning("leadership_lost", epoch=epoch, latest=self.governor.image.epoch)
        self._again = asyncio.create_task(self._begin_again(self._tenure))

    async def _begin_again(self, tenure: int) -> None:
        await asyncio.sleep(AGAIN_S)
        if tenure == self._tenure:
            await self.begin()

    async def _listen(self, leadership: LeaderLease) -> None:
        """Ask Kafka for the log's end: it proves that we are not the last to know.

        Also the watchdog: a fold that stands still while the log goes on ends the worker.
        """
        clock = asyncio.get_running_loop().time
        stood, since = -1, clock()
        with LogEnd(self._connection) as there:
            while self._holds(leadership):
                asked = now()
                end = await asyncio.to_thread(there.offset)
                self._end = end if end is not None else self._end
                if end is not None and await self._complete(leadership, there, end):
                    leadership.renew(asked)
                    since = clock()
                if self.governor.image.offset != stood or end is None:
                    stood, since = self.governor.image.offset, clock()
                elif clock() - since > STALL_S:
                    raise StateFaultError(f"the fold stands at {stood}, the log ends at {end}")
                await asyncio.sleep(ASK_S)

    async def _complete(self, leadership: LeaderLease, there: LogEnd, end: int) -> bool:
        """Whether the fold holds every record before `end`, which it is given a second for."""
        if await self._reached(leadership, end - 1, 1.0):
            return True
        if await asyncio.to_thread(there.only_markers, self.governor.image.offset + 1, end):
            return True
        # Faust is late, or cannot read what comes next: nobody has to wait for it
        await self._catch_up()
        return self._log.offset >= end - 1

    async def _keep(self, controller: Controller, leadership: LeaderLease) -> None:
        """Run one controller on every change and every few seconds, never twice at a time."""
        await asyncio.sleep(leadership.alone_in)
        paused = False
        while self._holds(leadership):
            seen, waits, began = self.governor.image.offset, self.governor.waits, now()
            try:
                # not `wait_for`, which loses a cancellation that meets the end of the round
                async with asyncio.timeout(CONTROLLER_STALL_S):
                    await asyncio.to_thread(self._reconcile, controller, leadership)
                self._compared.add(controller.name)
                paused = False
            except TimeoutError as error:
                raise StateFaultError(f"the controller of {controller.name} hangs") from error
            except NotLeaderError as over:
                if not paused:
                    log.info("controller_paused", controller=controller.name, reason=str(over))
                paused = True
            # what was reported must be folded before the next look, or it is reported twice
            await self._reached(leadership, leadership.last_report, STALL_S)
            await asyncio.sleep(max(0.0, began + CONTROLLER_PACE_S - now()))
            await self._reached(leadership, seen + 1, CONTROLLER_PERIOD_S, waits)

    def _reconcile(self, controller: Controller, leadership: LeaderLease) -> None:
        # a cancelled task cannot stop its thread: the lock keeps the next leader's call behind it
        with self._running[controller.name]:
            leadership.check()
            controller.reconcile(self.governor.image, leadership)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A job that failed ends the worker: what is left half done is done by the next one."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _die(error)


def _die(error: BaseException) -> None:
    log.error("worker_failed", error=str(error), exc_info=error)
    # threads may hang in a call, so no orderly way out is waited for
    os._exit(os.EX_SOFTWARE)
