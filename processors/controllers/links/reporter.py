"""What the controller says about one link: facts on the log, runs in the lineage."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import structlog
from openlineage.client.event_v2 import RunState

from mesh_events.facts import (
    CopyPurged,
    CopyRetained,
    LinkActivated,
    LinkAdvanced,
    LinkFact,
    LinkFailed,
    LinkStopped,
)
from mesh_events.meta import milliseconds, new_id, shortened
from processors.controllers.controller import Leadership
from processors.controllers.flows.flow import Started
from processors.lineage.events import Datasets, Lineage, link_run
from projections.access import ENTITLED
from projections.image import Image
from projections.lineage.runs import EndedRun, open_run
from projections.links import Link
from spark_streams.errors import CopyError

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LinkReporter:
    """One link's reporter during one look at it."""

    link: Link
    image: Image
    leadership: Leadership
    lineage: Lineage
    schema_text: Callable[[int], str | None]

    @property
    def flow(self) -> Link:
        """The link."""
        return self.link

    def activated(self, started: Started) -> None:
        """The copy runs."""
        at = self._report(
            LinkActivated,
            # a principal stands for one start only
            f"link-activated-{started.writer}",
            incarnation=started.incarnation,
            principal=started.writer,
            run=new_id(),
            source_topic=self.link.source_topic,
            source_topic_id=started.source.id,
            destination_topic=self.link.topic,
            destination_topic_id=started.destination.id,
            positions=_named(started.positions),
            **started.plan.more(),
        )
        self._end(RunState.ABORT, at)

    def began(self, started: Started) -> None:
        """The log counts that the copy runs; for the lineage only."""
        del started
        self._tell(RunState.START, self.link.run)

    def goes_on(self) -> None:
        """The copy still runs; for the lineage only."""
        self._tell(RunState.RUNNING, open_run(self.link))

    def advanced(self, positions: Mapping[int, int], source_ends: Mapping[int, int]) -> None:
        """Everything before `positions` is in the destination, which is filled at `source_ends`."""
        named, ends = _named(positions), _named(source_ends)
        step = f"link-advanced-{_digest((named, self.link.incarnation, ends) if ends else named)}"
        incarnation = self.link.incarnation if ends else 0
        more = {"source_ends": ends, "incarnation": incarnation}
        self._report(LinkAdvanced, step, positions=named, **more)

    def stopped(self, positions: Mapping[int, int]) -> None:
        """The copy stands still as desired, and the fence is closed."""
        # told anew after a failure that came between
        at = self._report(
            LinkStopped, f"link-stopped-{self.link.changed}", positions=_named(positions)
        )
        self._end(RunState.COMPLETE, at)

    def failed(self, fault: CopyError) -> None:
        """The copy cannot run; said once, as long as the log says the same already."""
        reason = shortened(fault.reason)
        if (self.link.failure_code, self.link.failure) == (fault.code, reason):
            return
        log.warning("link_failed", link=self.link.id, code=fault.code, reason=reason)
        at = self._report(
            LinkFailed,
            f"link-failed-{self.link.changed}-{_digest([fault.code, reason])}",
            code=fault.code,
            reason=reason,
            retriable=fault.retriable,
        )
        self._end(RunState.FAIL, at, reason)

    def purged(self, topic_id: str, unexpected_readers: list[str]) -> None:
        """The copy is deleted; the readers are principals that could read it without a grant."""
        self._report(
            CopyPurged,
            "copy-purged",
            topic=self.link.topic,
            topic_id=topic_id,
            unexpected_readers=unexpected_readers,
        )

    def retained(self, topic_id: str) -> None:
        """The copy stays, frozen."""
        self._report(CopyRetained, "copy-retained", topic=self.link.topic, topic_id=topic_id)

    @property
    def correlation(self) -> str:
        """The conversation: the newest grant that needs the link, else the newest that did."""
        accesses = self.image.access.of_link(self.link.id)
        needing = [access for access in accesses if access.state in ENTITLED]
        newest = max(needing or accesses, key=lambda access: access.changed, default=None)
        return newest.request if newest is not None else self.link.id

    def _report(self, kind: type[LinkFact], step: str, **fields: Any) -> int:
        """Report a fact; the time that it bears, ms."""
        link = self.link
        meta = self.leadership.meta(link.id, step, link.generation, correlation=self.correlation)
        self.leadership.report(kind(meta=meta, link=link.id, generation=link.generation, **fields))
        return milliseconds(meta.time)

    def ended(self, run: EndedRun) -> None:
        """A run that the log says has ended; for the lineage only."""
        self._tell(RunState(run.end.value), run.run, run.reason or None, at=run.time)

    def _end(self, kind: RunState, at: int, reason: str | None = None) -> None:
        """The open run has ended: the log says so first, so that a crash in between is seen.

        The event bears the fact's time, whoever writes it: a second one is the same event.
        """
        self._tell(kind, open_run(self.link), reason, at=at)

    def _tell(
        self, kind: RunState, run: str | None, reason: str | None = None, *, at: int | None = None
    ) -> None:
        """A link that has not run yet has no lineage."""
        if run is None:
            return
        datasets = Datasets(self.image, self.schema_text)
        told = replace(link_run(self.link, run, datasets, self.correlation), at=at)
        self.lineage.tell(kind, told, reason)


def _named(positions: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(positions.items())}


def _digest(value: object) -> str:
    return sha256(repr(value).encode()).hexdigest()[:12]
