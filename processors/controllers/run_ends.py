"""Writing the ends of runs that the worker before may not have written to the lineage.

A controller puts the end of a run on the log first and into the lineage then. A worker that dies in
between leaves a run without an end: whoever takes over compares the ends on the log with those on
`mesh.lineage`, once, and writes the missing ones. The worker before may live on for its lease and
write one as well: both have run, type and time of the same fact, by which receivers know an event.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog

from mesh_events.errors import MeshError
from processors.controllers.connectors.reporter import ConnectorReporter
from processors.controllers.controller import Leadership, guarded
from processors.controllers.links.reporter import LinkReporter
from processors.controllers.statements.reporter import StatementReporter
from processors.lineage.events import Lineage
from projections.image import Image
from projections.lineage.runs import EndedRun

log = structlog.get_logger(__name__)
Reporter = LinkReporter | StatementReporter | ConnectorReporter


@dataclass(frozen=True, slots=True)
class Recent:
    """The latest part of the lineage.

    since: time of its first event, ms; None if it is all that there ever was.
    ended: ids of the runs whose end is in it.
    """

    since: int | None
    ended: frozenset[str]


@dataclass
class RunEndsController:
    """Completes the lineage at the beginning of each leadership.

    Args:
        recent: reads the latest part of the lineage; raises MeshError.
        lineage: where the missing ends go.
        schema_text: the schema with an id.
    """

    recent: Callable[[], Recent]
    lineage: Lineage
    schema_text: Callable[[int], str | None]
    name: str = "runs"
    _epoch: int | None = None

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Write what is missing of the ends before this leadership, the oldest first."""
        if self._epoch == leadership.epoch:
            return
        # later ones are written by who reports them
        found = [one for one in self._ends(image, leadership) if one[1].offset < leadership.epoch]
        if found:
            try:
                with guarded("mesh.lineage"):
                    recent = self.recent()
            except MeshError as error:
                log.warning("lineage_not_read", error=str(error))
                return
            for reporter, run in sorted(found, key=lambda one: one[1].offset):
                is_known = recent.since is None or run.time >= recent.since
                if is_known and run.run not in recent.ended:
                    leadership.check()
                    self._end(reporter, run)
        self._epoch = leadership.epoch

    @staticmethod
    def _end(reporter: Reporter, run: EndedRun) -> None:
        try:
            with guarded("the lineage"):
                reporter.ended(run)
        except MeshError as error:
            log.warning("run_end_not_written", run=run.run, error=str(error))
        else:
            log.info("run_end_written", run=run.run, end=run.end.value)

    def _ends(self, image: Image, leadership: Leadership) -> Iterator[tuple[Reporter, EndedRun]]:
        for link in image.links.values():
            reporter = LinkReporter(link, image, leadership, self.lineage, self.schema_text)
            yield from ((reporter, run) for run in link.ended)
        for statement in image.statements.values():
            its = StatementReporter(statement, image, leadership, self.lineage)
            yield from ((its, run) for run in statement.ended)
        for connector in image.connectors.values():
            of = ConnectorReporter(connector, image, leadership, self.lineage, self.schema_text)
            yield from ((of, run) for run in connector.ended)
