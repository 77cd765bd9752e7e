"""A worker that is told to stop stops, so that it can leave its group and come back."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mesh_events.intents import DomainThawed
from mesh_events.record import Record
from processors.controllers.controller import Leadership, NotLeaderError
from processors.governor.governor import Governor
from processors.worker import worker as module
from processors.worker.leadership import LeaderLease, now
from processors.worker.metrics import Metrics
from processors.worker.worker import Worker
from projections.image import Image
from tests import sample_history as story
from tests.memory_log import MemoryLog, key


class Leading:
    """A governor whose image stands still, as in a worker that the log was taken from."""

    image = MemoryLog().image
    is_leader = True
    waits = 0
    metrics = Metrics()
    waiting = dict


@pytest.mark.parametrize("broker_ahead_ms", [0, 600_000])
def test_the_age_of_an_intent_is_told_by_the_meshs_clock(broker_ahead_ms: int) -> None:
    """Neither this machine's clock nor that of the broker has to be right."""
    log, nothing = MemoryLog(), cast("Any", None)
    story.domains(log)
    log.operator(DomainThawed, domain="east", reason="it was a mistake")
    [entry] = log.image.intents.undecided.values()
    governor = cast("Any", Leading())
    governor.watch = SimpleNamespace(describe=dict)
    governor.image = log.image._replace(skew=broker_ahead_ms)
    governor.time = entry.time - broker_ahead_ms + 5_000

    async def described() -> dict[str, Any]:
        return Worker(governor, nothing, nothing, nothing, []).describe()

    assert asyncio.run(described())["oldest_undecided_s"] == 5


def test_a_worker_is_not_ready_before_each_controller_has_compared_once() -> None:
    """But for those that take longer than anybody would wait for."""
    nothing = cast("Any", None)
    began = now()

    async def states() -> tuple[bool, bool, bool]:
        worker = Worker(cast("Any", Leading()), nothing, nothing, nothing, [Idle()])
        worker._leadership = cast("Any", SimpleNamespace(staleness=0.0, alone_in=0.0, epoch=0))
        worker._opened = began
        early = worker.ready
        worker._compared.add(Idle.name)
        compared = worker.ready
        worker._compared.clear()
        worker._opened = began - module.FIRST_ROUND_S
        return early, compared, worker.ready

    assert asyncio.run(states()) == (False, True, True)


class Idle:
    """A controller with nothing to do."""

    name = "idle"

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        del image, leadership


class DeafWorker(Worker):
    """Loses the first cancellation in a wait, as `asyncio.wait_for` may before Python 3.12."""

    deaf = True
    waits: asyncio.Event

    async def _reached(
        self, leadership: LeaderLease, offset: int, seconds: float, waits: int | None = None
    ) -> bool:
        del leadership, offset, seconds, waits
        self.waits.set()
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            if not self.deaf:
                raise
            self.deaf = False
        return True


async def stopped_after_work() -> DeafWorker:
    nothing, controller = cast("Any", None), Idle()
    worker = DeafWorker(cast("Governor", Leading()), nothing, nothing, nothing, [controller])
    worker.waits = asyncio.Event()
    worker._leadership = LeaderLease(
        Leading.image.epoch, nothing, key("controller"), lambda: Leading.image, now()
    )
    worker._tasks = [asyncio.create_task(worker._keep(controller, worker._leadership))]
    await asyncio.wait_for(worker.waits.wait(), 5)
    await asyncio.wait_for(worker.stop(), 5)
    return worker


def test_a_controller_that_misses_its_cancellation_does_not_hold_up_the_stop() -> None:
    worker = asyncio.run(stopped_after_work())

    assert not worker.ready
    assert worker._tasks == []


class Talker:
    """A controller that reports what nobody will fold: the log is taken away meanwhile."""

    name = "talker"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.spoke, self._loop = asyncio.Event(), loop

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        cast("Any", leadership)._reported = image.offset + 1
        self._loop.call_soon_threadsafe(self.spoke.set)


async def stopped_behind_a_report(worker: Worker, controller: Talker) -> None:
    """The controller's job ends by itself, as it must when its cancellation is lost."""
    leadership = LeaderLease(
        Leading.image.epoch, cast("Any", None), key("controller"), lambda: Leading.image, now()
    )
    worker._leadership = leadership
    job = asyncio.create_task(worker._keep(controller, leadership))
    await controller.spoke.wait()
    await worker.stop()
    await asyncio.wait_for(job, 5)


def test_a_report_that_will_not_be_folded_does_not_hold_up_the_stop() -> None:
    """A worker that was paused once stood still for a minute: nobody folded what it waited for."""

    async def scene() -> None:
        nothing, controller = cast("Any", None), Talker(asyncio.get_running_loop())
        worker = Worker(cast("Governor", Leading()), nothing, nothing, nothing, [controller])
        await stopped_behind_a_report(worker, controller)

    asyncio.run(scene())


async def cancelled_while_its_wait_runs_out() -> BaseException | None:
    """A job whose time is up cannot have the lock yet, and just then it is cancelled."""
    nothing = cast("Any", None)
    worker = Worker(cast("Governor", Leading()), nothing, nothing, nothing, [])
    leadership = LeaderLease(0, nothing, key("controller"), lambda: Leading.image, now())
    worker._leadership = leadership
    job = asyncio.create_task(worker._reached(leadership, Leading.image.offset + 1, 0.05))
    await asyncio.sleep(0.01)
    async with worker._changed:
        # the lock is held, as by those who woke up at the same moment
        await asyncio.sleep(0.1)
        job.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([job], timeout=5)
    await asyncio.wait_for(worker._announce(), 5)
    return None if job.cancelled() else job.exception()


def test_a_job_cancelled_at_the_end_of_its_wait_ends_and_is_no_failure() -> None:
    """A worker that slept through its replacement once ended with "Lock is not acquired"."""
    assert asyncio.run(cancelled_while_its_wait_runs_out()) is None


def test_a_successor_does_nothing_while_its_predecessor_may_still_act() -> None:
    nothing, asked = cast("Any", None), now()

    def leadership(alone_from: float) -> LeaderLease:
        image = MemoryLog().image
        return LeaderLease(
            image.epoch, nothing, key("controller"), lambda: image, asked, alone_from
        )

    early = leadership(asked + 3600)
    early.check_leadership()
    with pytest.raises(NotLeaderError, match=r"an earlier governor may act for another 3\d+"):
        early.check()
    with pytest.raises(NotLeaderError, match="an earlier governor"):
        early.report(nothing)
    leadership(asked).check()


class Silent(Leading):
    """A governor that counts its starts."""

    starts = 0

    def begin(self) -> None:
        pass

    def start(self) -> int:
        self.starts += 1
        return 7


async def overtaken_while_it_waits() -> tuple[Silent, Worker]:
    """A job of the last leadership takes a moment to end; meanwhile Kafka takes the log away."""
    nothing, governor, ends = cast("Any", None), Silent(), asyncio.Event()
    worker = Worker(cast("Governor", governor), nothing, nothing, nothing, [])

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await ends.wait()

    worker._tasks = [asyncio.create_task(slow())]
    await asyncio.sleep(0)
    begun = asyncio.create_task(worker.begin())
    await asyncio.sleep(0)
    taken = asyncio.create_task(worker.stop())
    await asyncio.sleep(0)
    ends.set()
    await asyncio.wait_for(asyncio.gather(begun, taken), 5)
    return governor, worker


def test_a_worker_that_lost_the_log_while_it_waited_starts_no_leadership() -> None:
    governor, worker = asyncio.run(overtaken_while_it_waits())
    assert governor.starts == 0
    assert worker._standby._waits.is_set()


class Folding(Leading):
    """A governor that folds what it is given, in order, as the real one."""

    def __init__(self, log: MemoryLog, folded: int) -> None:
        self.log, self.image = log, log.image._replace(offset=folded)

    def fold(self, records: list[Record], *, ours: bool) -> None:
        assert ours
        for record in records:
            if record.offset > self.image.offset:
                assert record.offset == self.image.offset + 1
                self.image = self.image._replace(offset=record.offset)


@pytest.mark.parametrize(("folded", "reached"), [(4, 7), (5, 7), (7, 7), (3, 3)])
def test_decisions_are_folded_at_once_but_for_those_that_the_reader_brought(
    folded: int, reached: int
) -> None:
    """One that had come back already left all of a step to the reader, which was slow."""

    async def scene() -> int:
        log, nothing = MemoryLog(), cast("Any", None)
        governor = Folding(log, folded)
        worker = Worker(cast("Governor", governor), nothing, nothing, nothing, [])
        await worker._log.echo([Record(offset, 0, b"", b"", {}) for offset in (5, 6, 7)])
        return governor.image.offset

    assert asyncio.run(scene()) == reached


class Rounds:
    """A controller that counts its rounds and when they began."""

    name = "rounds"

    def __init__(self) -> None:
        self.began: list[float] = []

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        del image, leadership
        self.began.append(now())


def test_a_controller_looks_again_when_a_record_begins_to_wait_and_not_too_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CONTROLLER_PERIOD_S", 3600)

    async def scene() -> tuple[float, float]:
        governor, nothing, controller = Leading(), cast("Any", None), Rounds()
        worker = Worker(cast("Governor", governor), nothing, nothing, nothing, [controller])
        leadership = LeaderLease(
            governor.image.epoch, nothing, key("controller"), lambda: governor.image, now()
        )
        worker._leadership = leadership
        start = now()
        job = asyncio.create_task(worker._keep(controller, leadership))
        async with asyncio.timeout(20):
            while len(controller.began) < 3:
                governor.waits += 1
                await worker._announce()
                await asyncio.sleep(0.001)
        await worker.stop()
        await job
        return start, controller.began[2]

    start, third = asyncio.run(scene())
    # a round may begin late, which makes the pause behind it short and the whole longer
    assert third - start > 1.9 * module.CONTROLLER_PACE_S
