"""What the controller says about one statement: facts on the log."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import structlog
from openlineage.client.event_v2 import RunState

from mesh_events.meta import milliseconds, new_id, shortened
from mesh_events.statements import (
    StatementActivated,
    StatementAdvanced,
    StatementFact,
    StatementFailed,
    StatementHalted,
)
from processors.controllers.controller import Leadership
from processors.controllers.flows.flow import Started
from processors.controllers.statements.plan import StatementPlan
from processors.lineage.events import STATEMENTS, Dataset, Datasets, JobRun, Lineage
from projections.image import Image
from projections.lineage.runs import EndedRun, open_run
from projections.statements import Statement
from spark_streams.errors import CopyError

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StatementReporter:
    """One statement's reporter during one look at it."""

    flow: Statement
    image: Image
    leadership: Leadership
    lineage: Lineage

    def activated(self, started: Started) -> None:
        """It runs."""
        at = self._report(
            StatementActivated,
            # a principal stands for one start only
            f"statement-activated-{started.writer}",
            incarnation=started.incarnation,
            principal=started.writer,
            run=new_id(),
            stream_topic_id=started.source.id,
            destination_topic_id=started.destination.id,
            positions=_named(started.positions),
            **started.plan.more(),
        )
        self._end(RunState.ABORT, at)

    def began(self, started: Started) -> None:
        """The log counts that it runs; for the lineage only."""
        self._tell(RunState.START, self.flow.run, plan=started.plan)

    def goes_on(self) -> None:
        """It still runs; for the lineage only."""
        self._tell(RunState.RUNNING, open_run(self.flow))

    def advanced(self, positions: Mapping[int, int], source_ends: Mapping[int, int]) -> None:
        """Every record before `positions` was dealt with; nothing is filled."""
        del source_ends
        named = _named(positions)
        self._report(StatementAdvanced, f"statement-advanced-{_digest(named)}", positions=named)

    def stopped(self, positions: Mapping[int, int]) -> None:
        """It stands still as desired, or is deleted, and the fence is closed."""
        self.halted(positions, {}, {})

    def halted(
        self,
        positions: Mapping[int, int],
        written: Mapping[int, int],
        dead: Mapping[int, int],
    ) -> None:
        """The same, with the offsets behind what stands in the two topics."""
        # told anew after a failure that came between
        step = f"statement-halted-{self.flow.changed}"
        at = self._report(
            StatementHalted,
            step,
            positions=_named(positions),
            written=_named(written),
            dead=_named(dead),
        )
        self._end(RunState.COMPLETE, at)

    def failed(self, fault: CopyError) -> None:
        """It cannot run; said once, as long as the log says the same already."""
        reason = shortened(fault.reason)
        if (self.flow.failure_code, self.flow.failure) == (fault.code, reason):
            return
        log.warning("statement_failed", id=self.flow.id, code=fault.code, reason=reason)
        at = self._report(
            StatementFailed,
            f"statement-failed-{self.flow.changed}-{_digest([fault.code, reason])}",
            code=fault.code,
            reason=reason,
            retriable=fault.retriable,
        )
        self._end(RunState.FAIL, at, reason)

    def ended(self, run: EndedRun) -> None:
        """A run that the log says has ended; for the lineage only."""
        self._tell(RunState(run.end.value), run.run, run.reason or None, at=run.time)

    def _end(self, kind: RunState, at: int, reason: str | None = None) -> None:
        """The open run has ended: the log says so first, so that a crash in between is seen.

        The event bears the fact's time, whoever writes it: a second one is the same event.
        """
        self._tell(kind, open_run(self.flow), reason, at=at)

    def _tell(
        self,
        kind: RunState,
        run: str | None,
        reason: str | None = None,
        plan: Any = None,
        *,
        at: int | None = None,
    ) -> None:
        """What has not run yet has no lineage; columns are told once, at the start."""
        if run is None:
            return
        flow, identity = self.flow, self.image.identity
        datasets = Datasets(self.image)
        schemas = plan.schemas() if isinstance(plan, StatementPlan) else {}

        def dataset(topic: str) -> Dataset:
            return replace(datasets.of_topic(flow.cluster, topic), schema=schemas.get(topic))

        self.lineage.tell(
            kind,
            JobRun(
                namespace=STATEMENTS,
                job=flow.id,
                run=run,
                kind="SQL",
                inputs=tuple(dataset(topic) for topic in dict.fromkeys(flow.reads)),
                outputs=tuple(dataset(topic) for topic in flow.writes),
                tags={"domain": flow.domain, "correlation": flow.correlation},
                sql=flow.sql,
                owner=identity.domains[flow.domain].owner,
                columns=plan.columns() if isinstance(plan, StatementPlan) else {},
                decides=plan.decides() if isinstance(plan, StatementPlan) else (),
                at=at,
            ),
            reason,
        )

    def _report(self, kind: type[StatementFact], step: str, **fields: Any) -> int:
        """Report a fact; the time that it bears, ms."""
        flow = self.flow
        meta = self.leadership.meta(flow.id, step, flow.generation, correlation=flow.correlation)
        self.leadership.report(
            kind(meta=meta, statement=flow.id, generation=flow.generation, **fields)
        )
        return milliseconds(meta.time)


def _named(positions: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(positions.items())}


def _digest(value: object) -> str:
    return sha256(repr(value).encode()).hexdigest()[:12]
