"""What the controller says about one connector: facts on the log, runs in the lineage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import structlog
from openlineage.client.event_v2 import RunState

from mesh_events.connectors import (
    ConnectorActivated,
    ConnectorFact,
    ConnectorFailed,
    ConnectorHalted,
)
from mesh_events.meta import milliseconds, new_id, shortened
from processors.controllers.controller import Leadership
from processors.lineage.events import Datasets, Lineage, connector_run
from projections.connectors.state import Connector
from projections.image import Image
from projections.lineage.runs import EndedRun, open_run

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectorReporter:
    """One connector's reporter during one look at it."""

    connector: Connector
    image: Image
    leadership: Leadership
    lineage: Lineage
    schema_text: Callable[[int], str | None] | None = None

    def activated(
        self,
        principal: str,
        tasks: int,
        restarts: int,
        topic_ids: Mapping[str, str],
        partitions: Mapping[str, int],
    ) -> str:
        """It and all of its tasks run; a sink reads the topics with these ids and partitions.

        Returns the run that has begun, if the log counts this: see `began`.
        """
        run = new_id()
        self._activated(principal, run, tasks, restarts, topic_ids, partitions)
        return run

    def began(self, run: str, before: str | None) -> None:
        """A run that the log counts, and the end of the one before; for the lineage only."""
        for one in self.connector.ended:
            if one.run == before:
                self.ended(one)
        self._tell(RunState.START, run)

    def reads(self, topic_ids: Mapping[str, str], partitions: Mapping[str, int]) -> None:
        """Ids and partitions of its topics which the log has not; its run goes on."""
        found = self.connector
        if found.run is not None and found.principal is not None:
            self._activated(found.principal, found.run, found.tasks, 0, topic_ids, partitions)

    def goes_on(self) -> None:
        """It still runs; for the lineage only."""
        self._tell(RunState.RUNNING, open_run(self.connector))

    def halted(self) -> None:
        """It stands still as desired, or is gone, and has no right any more."""
        at = self._report(ConnectorHalted, f"connector-halted-{self.connector.changed}")
        self._end(RunState.COMPLETE, at)

    def failed(
        self,
        code: str,
        reason: str,
        tasks: Sequence[int] = (),
        topic_ids: Mapping[str, str] | None = None,
        partitions: Mapping[str, int] | None = None,
    ) -> None:
        """It does not run; said once, as long as the log says the same already.

        A sink that was started, and may have read something, has the ids of its topics, and how
        many partitions they had.
        """
        found, reason = self.connector, shortened(reason)
        if (found.failure_code, found.failure) == (code, reason):
            return
        log.warning("connector_failed", id=found.id, code=code, reason=reason)
        digest = sha256(repr((code, reason)).encode()).hexdigest()[:12]
        at = self._report(
            ConnectorFailed,
            f"connector-failed-{found.changed}-{digest}",
            code=code,
            reason=reason,
            tasks=list(tasks),
            topic_ids=dict(topic_ids or {}),
            partitions=dict(partitions or {}),
        )
        self._end(RunState.FAIL, at, reason)

    def ended(self, run: EndedRun) -> None:
        """A run that the log says has ended; for the lineage only."""
        self._tell(RunState(run.end.value), run.run, run.reason or None, at=run.time)

    def _activated(
        self,
        principal: str,
        run: str,
        tasks: int,
        restarts: int,
        topic_ids: Mapping[str, str],
        partitions: Mapping[str, int],
    ) -> int:
        return self._report(
            ConnectorActivated,
            f"connector-activated-{self.connector.changed}",
            principal=principal,
            run=run,
            tasks=tasks,
            restarts=restarts,
            topic_ids=dict(topic_ids),
            partitions=dict(partitions),
        )

    def _end(self, kind: RunState, at: int, reason: str | None = None) -> None:
        """The open run has ended: the log says so first, so that a crash in between is seen.

        The event bears the fact's time, whoever writes it: a second one is the same event.
        """
        self._tell(kind, open_run(self.connector), reason, at=at)

    def _tell(
        self, kind: RunState, run: str | None, reason: str | None = None, *, at: int | None = None
    ) -> None:
        """What has not run yet has no lineage."""
        if run is None:
            return
        found, datasets = self.connector, Datasets(self.image, self.schema_text)
        owner = self.image.identity.domains[found.domain].owner
        told = replace(connector_run(found, run, datasets, owner), at=at)
        self.lineage.tell(kind, told, reason)

    def _report(self, kind: type[ConnectorFact], step: str, **fields: Any) -> int:
        """Report a fact; the time that it bears, ms."""
        found = self.connector
        meta = self.leadership.meta(found.id, step, found.generation, correlation=found.correlation)
        self.leadership.report(
            kind(meta=meta, connector=found.id, generation=found.generation, **fields)
        )
        return milliseconds(meta.time)
