"""Reports to the log what drifted on one cluster: once for a finding, and never too often.

Whoever changes rights to and fro must not be able to fill the log, which is kept for ever. So only
`BURST` facts on the same thing, and `MOST` on a cluster, are told in `WINDOW_S` seconds. A domain
may delete its own topics: those on the topics of a domain's products are counted apart, with the
same bound. What is still so is told later; repairs beyond that are counted, and the next one that
is told names the number.
"""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import structlog

from mesh_events.facts import DriftFound, DriftKind, Remedy
from mesh_events.intents import domain_of
from mesh_events.meta import Meta
from processors.clusters.drift import TOPICS, Finding, shortened
from processors.clusters.principals import job_name
from processors.controllers.controller import Leadership
from projections.drift import all_left, left_at
from projections.image import Image

log = structlog.get_logger(__name__)
BURST, MOST, WINDOW_S = 3, 30, 600.0
_BINDINGS = 50
_Thing = tuple[str, DriftKind]
"""(subject, kind)."""


@dataclass(slots=True)
class _Held:
    """Repairs that were too many to be told: the latest, and how many came before it."""

    finding: Finding
    before: int = 0


@dataclass(slots=True)
class DriftReporter:
    """What was told lately of one cluster; used by one thread at a time.

    What a worker holds back it forgets when it ends. What is left is known from the image.
    """

    cluster: str
    image: Image
    leadership: Leadership
    _told: dict[_Thing, deque[float]] = field(default_factory=dict)
    # what counts together, see `_budget` -> the times of its facts
    _all: dict[str, deque[float]] = field(default_factory=dict)
    _held: dict[_Thing, _Held] = field(default_factory=dict)
    _settled: set[_Thing] = field(default_factory=set)

    def begin(self, image: Image, leadership: Leadership) -> None:
        """A new round, on what the log says now."""
        self.image, self.leadership = image, leadership
        self._settled.clear()

    def repaired(self, finding: Finding) -> None:
        """Tell a repair that was made and seen, or count it."""
        thing = (finding.subject, finding.kind)
        self._settled.add(thing)
        held = self._held.pop(thing, None)
        untold = 0 if held is None else held.before + 1
        if self._may(thing):
            self._report(finding, Remedy.REPAIRED, untold=untold)
        else:
            self._held[thing] = _Held(finding, untold)

    def held(self) -> None:
        """Tell the repairs that were held back and may be told now."""
        for thing, held in list(self._held.items()):
            if self._may(thing):
                del self._held[thing]
                self._report(held.finding, Remedy.REPAIRED, untold=held.before)

    def left(
        self,
        found: Iterable[Finding],
        kinds: frozenset[DriftKind],
        uncertain: Iterable[Finding] = (),
    ) -> None:
        """Tell what is left and was not told, and what was told and is gone.

        Args:
            found: all findings of these kinds that stay as they are.
            kinds: what was looked for.
            uncertain: findings that are not to be told yet, neither as left nor as gone.
        """
        here = {(one.subject, one.kind): one for one in found}
        silent = self._settled | {(one.subject, one.kind) for one in uncertain}
        for thing, one in sorted(here.items()):
            known = left_at(self.image.drifts, (self.cluster, *thing))
            told = None if known is None else known.bindings
            if told != frozenset(_lines(one)) and self._may(thing):
                self._report(one, Remedy.LEFT)
        for (cluster, subject, kind), known in sorted(all_left(self.image.drifts)):
            thing = (subject, kind)
            ours = cluster == self.cluster and kind in kinds and thing not in here
            if ours and thing not in silent and self._may(thing):
                self._report_end(subject, kind, sorted(known.bindings))

    def _may(self, thing: _Thing) -> bool:
        """Whether one more fact on this thing may be told; counts it if so."""
        now = time.monotonic()
        for name in [name for name, times in self._told.items() if now - times[-1] > WINDOW_S]:
            del self._told[name]
        mine = self._told.get(thing, deque())
        together = self._all.setdefault(_budget(thing), deque())
        for times in (mine, together):
            while times and now - times[0] > WINDOW_S:
                times.popleft()
        if len(mine) >= BURST or len(together) >= MOST:
            return False
        mine.append(now)
        self._told[thing] = mine
        together.append(now)
        return True

    def _report(self, finding: Finding, remedy: Remedy, untold: int = 0) -> None:
        self._tell(
            DriftFound(
                meta=self._meta(finding.subject, finding.kind, remedy, finding.generation),
                subject=finding.subject,
                cluster=self.cluster,
                generation=finding.generation,
                bindings=_lines(finding),
                drift=finding.kind,
                remedy=remedy,
                principal=shortened(finding.principal),
                topics=list(finding.topics),
                basis=self.image.offset,
                untold=untold,
            )
        )

    def _report_end(self, subject: str, kind: DriftKind, bindings: list[str]) -> None:
        self._tell(
            DriftFound(
                meta=self._meta(subject, kind, Remedy.ENDED, -1),
                subject=subject,
                cluster=self.cluster,
                generation=-1,
                bindings=bindings,
                drift=kind,
                remedy=Remedy.ENDED,
                principal=bindings[0].partition(" ")[0] if bindings else "",
                topics=[],
                basis=self.image.offset,
            )
        )

    def _tell(self, fact: DriftFound) -> None:
        log.warning(
            "drift_found",
            cluster=fact.cluster,
            subject=fact.subject,
            drift=fact.drift.value,
            remedy=fact.remedy.value,
        )
        self.leadership.report(fact)

    def _meta(self, subject: str, kind: DriftKind, remedy: Remedy, generation: int) -> Meta:
        # the same finding on the same state of the log is the same event
        step = f"{self.cluster} {kind} {remedy} {self.image.offset}"
        correlation = subject.partition("/")[2] or subject
        return self.leadership.meta(subject, step, generation, correlation=correlation)


def _budget(thing: _Thing) -> str:
    """What is counted together: topics of a domain, rights of its jobs, all other rights."""
    subject, kind = thing
    name = subject.partition("/")[2]
    if kind in TOPICS:
        return f"topics of {domain_of(name)}"
    job = job_name(name)
    return "" if job is None else f"jobs of {domain_of(job)}"


def _lines(finding: Finding) -> list[str]:
    """The bindings as the log keeps them: a stranger may have made very many, and long ones."""
    lines = [shortened(line, 600) for line in finding.bindings]
    if len(lines) <= _BINDINGS:
        return lines
    return [*lines[:_BINDINGS], f"and {len(lines) - _BINDINGS} more"]
