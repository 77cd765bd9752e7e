"""Keeping flows: each runs, stands still or is gone, as the log says.

What should be stands in the image, what is comes from the engine and the clusters at both ends.
`starting` holds the order of a start, `stopping` that of an end, `fence` what makes both safe, and
`progress` whether a running flow gets on.
A fault that only a person can mend closes the flow; any other is tried again, ever more seldom.
What ran before the last word on a flow ends before the log says that this failed.
"""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from traceback import format_exc
from typing import Any, Generic

import structlog

from mesh_events.errors import InfrastructureError, MeshError
from processors.controllers.controller import Leadership, NotLeaderError, guarded
from processors.controllers.flows.ends import Reach
from processors.controllers.flows.flow import F, Kind, Reporter
from processors.controllers.flows.pace import Memories, Memory, Pace
from processors.controllers.flows.progress import Progress
from processors.controllers.flows.starting import FlowStart
from processors.controllers.flows.stopping import FlowEnd
from processors.controllers.gates import Gates
from processors.controllers.lanes import Claims, Job, Lanes, SerialLanes, for_a_while
from processors.controllers.retry import wait_before
from projections.image import Image
from projections.links import Desired
from spark_streams.engine import Failed, FlowEngine, Running, States
from spark_streams.errors import (
    ENGINE_STARTING,
    ENGINE_UNAVAILABLE,
    STARTS_EXHAUSTED,
    WITHHELD,
    CopyError,
    EngineError,
)

log = structlog.get_logger(__name__)
_FOR_A_PERSON = float("inf")
LOST = "the engine was started anew and has no query of it: it is started again"
"""Reason that is reported of what does not run any more, though nothing failed."""
OVER = "what it waited for is over: it is being started"
"""Reason that is reported of what starts after a release, a grant or a copy it waited for."""


class Flows(Generic[F]):
    """Keeps the flows of one kind that one engine runs.

    Args:
        kind: what they are.
        ending: how they end.
        engine: runs their queries.
        reach: looks into topics.
        pace: how often and how long.
        lanes: flows of different queues, and some of each queue, are kept side by side.
    """

    def __init__(
        self,
        kind: Kind[F],
        ending: FlowEnd[F],
        engine: FlowEngine,
        reach: Reach,
        pace: Pace,
        lanes: Lanes | None = None,
    ) -> None:
        self._kind: Kind[F] = kind
        self._errors = reach.errors
        self._engine, self._pace = engine, pace
        self._lanes = lanes or SerialLanes()
        self._starting: FlowStart[F] = FlowStart(
            kind, engine, reach.logs, pace.quiet, ending.starts, reach.gates or Gates()
        )
        self._ending: FlowEnd[F] = ending
        self._memory = Memories()
        self._progress: Progress[F] = Progress(kind, pace, self._memory)
        # queue -> the flow that was looked at last
        self._turns: dict[str, str] = {}
        self._claims = Claims()

    def reconcile(self, flows: Iterable[F], image: Image, leadership: Leadership) -> None:
        """Compare and repair every flow once."""
        states, trouble = self._states()
        queues: dict[str, list[F]] = {}
        for flow in flows:
            if trouble is None and not states.get(flow.id) and self._is_lost(flow):
                # started on an image that knows it: this one would end its run twice
                with self._claims.claim(flow.id, image, leadership) as mine:
                    # else a lane is just restarting it
                    if mine:
                        self._report_lost(flow, image, leadership)
                continue
            queues.setdefault(self._kind.queue(flow), []).append(flow)

        def job(queue: str, waiting: deque[F]) -> Job:
            def run() -> None:
                for flow in for_a_while(_taken(waiting)):
                    with self._claims.claim(flow.id, image, leadership) as mine:
                        if mine and self._due(flow, image, trouble):
                            self._turns[queue] = flow.id
                            self._keep(flow, states.get(flow.id, ()), trouble, image, leadership)

            return run

        jobs: dict[str, Job] = {}
        for name, here in queues.items():
            waiting = deque(self._in_turn(name, here))
            jobs |= {f"{name}/{lane}": job(name, waiting) for lane in range(self._kind.lanes)}
        self._lanes.run(jobs, image, leadership)

    def _is_lost(self, flow: F) -> bool:
        """Whether the log says that it runs; asked where its engine has no query of it."""
        return flow.is_active and flow.desired is Desired.RUNNING

    def _report_lost(self, flow: F, image: Image, leadership: Leadership) -> None:
        """Report a query that is gone with its engine, before its start takes its time.

        ACTIVE means that it runs. The start follows in the next look.
        """
        try:
            leadership.check()
            with guarded("the lineage"):
                reporter = self._kind.reporter(flow, image, leadership)
                self._begin(reporter)
                reporter.failed(EngineError("query_failed", LOST))
        except MeshError as error:
            log.warning("failure_not_told", flow=flow.id, error=str(error))

    def _in_turn(self, queue: str, flows: list[F]) -> list[F]:
        """Ends before starts, since a revoked copy does not wait; else who comes after the last."""
        last = self._turns.get(queue, "")
        return sorted(
            flows, key=lambda one: (one.desired is Desired.RUNNING, one.id <= last, one.id)
        )

    def _keep(
        self,
        flow: F,
        seen: tuple[Running | Failed, ...],
        trouble: EngineError | None,
        image: Image,
        leadership: Leadership,
    ) -> None:
        """Compare and repair one flow; a failure is told and tried again."""
        reporter = self._kind.reporter(flow, image, leadership)
        if seen:
            self._memory.change(flow, left=True)
        try:
            self._begin(reporter)
            self._one(reporter, seen, trouble)
        except CopyError as fault:
            self._fail(reporter, fault, is_silence=fault is trouble)
        except MeshError as error:
            again = CopyError("cluster_unavailable", f"{error}; tried again", error.text)
            self._fail(reporter, again)
        except NotLeaderError:
            raise
        except Exception as error:  # noqa: BLE001 - one flow must not end the worker
            # the text may quote a record, and this log can be sent elsewhere
            log.error("flow_error", flow=flow.id, error=type(error).__name__)  # noqa: TRY400
            what = f"{type(error).__name__}; tried again, the worker's log names a file with more"
            self._fail(reporter, CopyError("unexpected_error", what, format_exc()))

    def close(self) -> None:
        """Leave the engine; the flows go on."""
        self._engine.close()

    def leave(self, others: Container[str], leadership: Leadership) -> None:
        """Let the engine forget flows that another engine has taken over meanwhile."""
        states, trouble = self._states()
        if trouble is not None:
            return
        for name in sorted(name for name in states if name in others):
            leadership.check()
            try:
                with guarded("the engine of flows"):
                    self._engine.stop(name)
            except MeshError as error:
                log.warning("engine_not_asked", flow=name, error=str(error))

    def _states(self) -> tuple[States, EngineError | None]:
        try:
            with guarded("the engine of flows"):
                return self._engine.states(), None
        except EngineError as error:
            return {}, error
        except InfrastructureError as error:
            return {}, EngineError(ENGINE_UNAVAILABLE, str(error))

    def _one(
        self, reporter: Reporter[F], seen: tuple[Running | Failed, ...], trouble: EngineError | None
    ) -> None:
        flow = reporter.flow
        # also one that has failed is to be forgotten: its engine could start it again
        match flow.desired:
            case Desired.RUNNING if withheld := self._kind.withheld(flow, reporter.image):
                raise withheld
            case Desired.RUNNING if flow.failure_code == STARTS_EXHAUSTED:
                # a stop and a start by its owner clear this on the log
                if seen:
                    self._ending.halt(self._ends(reporter), reporter.leadership)
            case Desired.RUNNING if trouble is not None:
                # what has not run yet waits for its server, and has not failed
                if flow.is_active or trouble.code != ENGINE_STARTING:
                    raise trouble
            case Desired.RUNNING:
                self._run(reporter, seen)
            case Desired.PAUSED if not flow.is_at_rest or seen:
                self._ending.pause(self._ends(reporter), reporter, reporter.leadership)
            case Desired.DELETED if not flow.is_over:
                self._remove(reporter)
            case Desired.DELETED if seen:
                self._ending.halt(self._ends(reporter), reporter.leadership)

    def _run(self, reporter: Reporter[F], seen: tuple[Running | Failed, ...]) -> None:
        """Leave what runs as it should; say what failed; start what does not run."""
        flow = reporter.flow
        if flow.is_active:
            if seen == (Running(flow.principal or ""),):
                self._watch(reporter)
                return
            for state in seen:
                if isinstance(state, Failed) and state.writer == flow.principal:
                    reason = f"the query ended: {state.reason}"
                    raise EngineError("query_failed", reason, state.text)
        if flow.failure_code in WITHHELD:
            # a start takes up to a minute, in which the log would tell what is over
            reporter.failed(EngineError(ENGINE_STARTING, OVER))
        self._start(reporter)

    def _start(self, reporter: Reporter[F]) -> None:
        """Start the next incarnation."""
        flow = reporter.flow
        starts = self._memory[flow].starts
        if starts >= self._pace.starts:
            raise _exhausted(starts, "and that could not be reported")
        begun = self._starting.start(
            self._ends(reporter), reporter, reporter.leadership, lambda: self._handed_over(flow)
        )
        now = self._pace.clock()
        # what it waited for, as the end of a quarantine, is over: it is looked at like any other
        self._memory.change(
            flow,
            looked=now,
            advanced=now,
            lineage=now,
            waiting={},
            code=None,
            is_silence=False,
            not_before=now,
            begun=begun,
        )

    def _begin(self, reporter: Reporter[F]) -> None:
        """Put a start into the lineage that the log counts: what it does not count never ran."""
        flow = reporter.flow
        memory = self._memory.get(flow)
        begun = None if memory is None else memory.begun
        if begun is not None and flow.run is not None and flow.principal == begun.writer:
            self._memory.change(flow, begun=None)
            reporter.began(begun)

    def _handed_over(self, flow: F) -> None:
        """One more start that has cost a principal of its own, and fenced all before it."""
        starts = self._memory[flow].starts + 1
        self._memory.change(flow, starts=starts, started=self._pace.clock(), left=False)

    def _watch(self, reporter: Reporter[F]) -> None:
        """See that both topics are still the same ones, and put the floor on the log."""
        flow, now = reporter.flow, self._pace.clock()
        memory = self._memory[flow]
        if now - memory.looked < self._pace.look:
            return
        self._memory.change(flow, looked=now)
        reached: Mapping[int, int] | None = None
        try:
            ends = self._ends(reporter)
            if not self._kind.has_new_partitions(ends):
                reached = self._kind.reached(ends)
                ahead = self._progress.require(flow, ends.source_log, reached)
                news = self._kind.news(ends, reached, ahead)
        except CopyError:
            raise
        except MeshError as error:
            # a query outlives the restart of a broker by itself
            self._memory.change(flow, waiting={})
            log.warning("flow_not_seen", flow=flow.id, error=str(error))
            return
        if reached is None:
            log.info("partitions_added", flow=flow.id, topic=flow.source_topic)
            self._start(reporter)
            return
        self._memory.change(flow, attempts=0)
        self._progress.note(flow, reached)
        moved = sum(max(0, at - flow.positions.get(str(p), 0)) for p, at in reached.items())
        late = now - memory.advanced >= self._pace.advance
        if news is not None or (moved and (late or moved >= self._pace.advance_records)):
            reporter.advanced(reached, news or {})
            self._memory.change(flow, advanced=now)
        if now - memory.lineage >= self._pace.lineage:
            reporter.goes_on()
            self._memory.change(flow, lineage=now)

    def _remove(self, reporter: Reporter[F]) -> None:
        """Remove, with some patience for rights that are just being withdrawn."""
        try:
            self._ending.remove(self._ends(reporter), reporter, reporter.leadership)
        except CopyError as fault:
            waited = self._pace.clock() - self._memory[reporter.flow].since
            if fault.code != "readers_remain" or waited >= self._pace.grace:
                raise

    def _fail(self, reporter: Reporter[F], fault: CopyError, *, is_silence: bool = False) -> None:
        """Say it once; close the flow if only a person can mend it, else try again later.

        is_silence: the engine does not answer; then it is tried again as soon as it does.
        """
        flow = reporter.flow
        if self._errors is not None:
            self._errors.save(self._kind.name, flow.id, fault.code, fault.text)
        fault = self._final(flow, fault)
        try:
            if not fault.retriable:
                self._ending.halt(self._ends(reporter), reporter.leadership)
            elif self._outlives(flow):
                fault = self._end_left(reporter, fault)
            reporter.failed(fault)
        except MeshError as error:
            log.warning("failure_not_told", flow=flow.id, error=str(error))
            fault = CopyError("cluster_unavailable", str(error))
        except NotLeaderError:
            raise
        except Exception as error:  # noqa: BLE001 - one flow must not end the worker
            # the text may quote a record, and this log can be sent elsewhere
            name = type(error).__name__
            log.error("failure_not_told", flow=flow.id, error=name)  # noqa: TRY400
            fault = CopyError("unexpected_error", name)
        attempts = self._memory[flow].attempts + 1
        wait = wait_before(attempts, self._pace.retry_first, self._pace.retry_most)
        until = self._pace.clock() + wait if fault.retriable else _FOR_A_PERSON
        self._memory.change(flow, attempts=attempts, code=fault.code, reason=fault.reason)
        self._memory.change(flow, not_before=until, is_silence=is_silence)

    def _outlives(self, flow: F) -> bool:
        """Whether what may still write was started before the last word on a flow.

        One that has run since goes on, whatever fails.
        """
        is_old = flow.desired is Desired.RUNNING and flow.activated != flow.generation
        return is_old and self._memory[flow].left

    def _end_left(self, reporter: Reporter[F], fault: CopyError) -> CopyError:
        """End what was started before; the fault to be told, also where it cannot be ended yet."""
        try:
            with guarded("the clusters of flows"):
                self._ending.halt(self._ends(reporter), reporter.leadership, starts_again=True)
        except MeshError as error:
            reason = f"{fault.reason}; what ran before may go on, as it cannot be ended: {error}"
            return CopyError("cluster_unavailable", reason, fault.text)
        self._memory.change(reporter.flow, left=False)
        return fault

    def _final(self, flow: F, fault: CopyError) -> CopyError:
        """The fault, or that there were too many starts: each leaves a login for ever."""
        starts = self._memory[flow].starts
        if not fault.retriable or fault.code in WITHHELD or starts < self._pace.starts:
            return fault
        return _exhausted(starts, f"with {fault.code}: {fault.reason}", fault.text)

    def _due(self, flow: F, image: Image, trouble: EngineError | None) -> bool:
        """Whether to look at a flow now; forgets what belongs to an older generation."""
        memory = self._memory.get(flow)
        if memory is None or memory.generation != flow.generation:
            is_first = flow.incarnation == 0 and flow.generation == flow.created_generation
            # what is older an earlier worker may have started, and died before it could report that
            is_first = is_first and flow.generation > image.epoch
            now = self._pace.clock()
            begun = None if memory is None else memory.begun
            fresh = Memory(flow.generation, since=now, left=not is_first, begun=begun)
            self._memory.begin(flow, fresh)
            return True
        if memory.is_silence and trouble is None:
            return True
        withheld = self._kind.withheld(flow, image) if flow.desired is Desired.RUNNING else None
        if withheld is not None:
            return (withheld.code, withheld.reason) != (memory.code, memory.reason)
        return memory.code in WITHHELD or self._pace.clock() >= memory.not_before

    def _ends(self, reporter: Reporter[F]) -> Any:
        return self._kind.ends(reporter.flow, reporter.image)


def _taken(waiting: deque[F]) -> Iterator[F]:
    """Flows from the front of a queue that other lanes take from as well."""
    while True:
        try:
            yield waiting.popleft()
        except IndexError:
            return


def _exhausted(starts: int, last: str, text: str = "") -> CopyError:
    return CopyError(
        STARTS_EXHAUSTED,
        f"{starts} starts in a row ended before anything more was done, the last one {last}; mend "
        "the cause, then stop it and start it again",
        text,
    )
