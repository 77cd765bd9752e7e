"""The links keeper: every link copies, stands still or is gone, as the log says.

What should be stands in the image, what is comes from the engine and the two clusters.
`link_start` holds the order of a start, `link_end` that of an end, `fence` what makes both safe.
A fault that only a person can mend closes the link; any other is tried again, ever more seldom.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from mesh_events.errors import MeshError
from processors.keepers.keeper import Reign
from processors.keepers.lanes import Job, Lanes, OneByOne, for_a_while
from processors.keepers.link_end import LinkEnd
from processors.keepers.link_ends import Clusters, Ends, Logs
from processors.keepers.link_pace import Memory, Pace
from processors.keepers.link_start import LinkStart
from processors.keepers.link_telling import Telling
from processors.keepers.retry import wait_before
from processors.lineage import Lineage
from projections.image import Image
from projections.links import Desired, Link, State
from spark_streams.engine import Failed, LinkEngine, Running, States
from spark_streams.errors import CopyError, EngineError
from spark_streams.lag import behind
from spark_streams.provenance import Origin
from spark_streams.tail import positions, read_tail

log = structlog.get_logger(__name__)
LANES_PER_PAIR = 4
"""So many links between the same two clusters are started, watched and ended at the same time."""
_FOR_A_PERSON = float("inf")


class LinksKeeper:
    """Keeps the links.

    Args:
        clusters: the admin of a registered cluster.
        logs: looks into the topics of the clusters.
        engine: runs the copies.
        lineage: where each incarnation is told.
        schema_text: the schema with an id, for the lineage.
        pace: how often and how long.
        lanes: links between other clusters are kept side by side.
    """

    name = "links"

    def __init__(
        self,
        clusters: Clusters,
        logs: Logs,
        engine: LinkEngine,
        lineage: Lineage,
        schema_text: Callable[[int], str],
        pace: Pace | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self._pace, self._lanes = pace or Pace(), lanes or OneByOne()
        self._clusters, self._logs, self._engine = clusters, logs, engine
        self._lineage, self._schema_text = lineage, schema_text
        self._starting = LinkStart(engine, logs, self._pace.quiet)
        self._ending = LinkEnd(engine, self._pace.quiet)
        self._memory: dict[str, Memory] = {}
        # lane -> the link that was looked at last
        self._turns: dict[str, str] = {}

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Compare and repair every link once."""
        if not image.links:
            return
        states, trouble = self._states()
        lanes: dict[str, list[Link]] = {}
        for link in image.links.values():
            lanes.setdefault(_lane(link), []).append(link)

        def job(lane: str, here: list[Link]) -> Job:
            def run() -> None:
                due = (link for link in self._in_turn(lane, here) if self._due(link, trouble))
                for link in for_a_while(due):
                    self._turns[lane] = link.id
                    self._keep(link, states.get(link.id, ()), trouble, image, reign)

            return run

        self._lanes.run({name: job(name, here) for name, here in lanes.items()}, image, reign)

    def _in_turn(self, lane: str, links: list[Link]) -> list[Link]:
        """Ends before starts, since a revoked copy does not wait; else who comes after the last."""
        last = self._turns.get(lane, "")
        return sorted(
            links, key=lambda one: (one.desired is Desired.RUNNING, one.id <= last, one.id)
        )

    def _keep(
        self,
        link: Link,
        seen: tuple[Running | Failed, ...],
        trouble: EngineError | None,
        image: Image,
        reign: Reign,
    ) -> None:
        """Compare and repair one link; a failure is told and tried again."""
        telling = Telling(link, image, reign, self._lineage, self._schema_text)
        try:
            self._one(telling, seen, trouble)
        except CopyError as fault:
            self._fail(telling, fault)
        except MeshError as error:
            self._fail(telling, CopyError("cluster_unavailable", f"{error}; tried again"))

    def close(self) -> None:
        """Leave the engine and the clusters; the copies go on."""
        self._engine.close()
        self._logs.close()

    def _states(self) -> tuple[States, EngineError | None]:
        try:
            return self._engine.states(), None
        except EngineError as error:
            return {}, error

    def _one(
        self, telling: Telling, seen: tuple[Running | Failed, ...], trouble: EngineError | None
    ) -> None:
        link = telling.link
        runs = any(isinstance(state, Running) for state in seen)
        match link.desired:
            case Desired.RUNNING if trouble is not None:
                raise trouble
            case Desired.RUNNING:
                self._run(telling, seen)
            case Desired.PAUSED if link.state is not State.PAUSED or runs:
                self._ending.pause(self._ends(telling), telling, telling.reign)
            case Desired.REMOVED if link.state is not State.REMOVED:
                self._remove(telling)
            case Desired.REMOVED if runs:
                self._ending.halt(self._ends(telling), telling.reign)

    def _run(self, telling: Telling, seen: tuple[Running | Failed, ...]) -> None:
        """Leave what runs as it should; say what failed; start what does not run."""
        link = telling.link
        if link.state is State.ACTIVE:
            if seen == (Running(link.principal or ""),):
                self._watch(telling)
                return
            for state in seen:
                if isinstance(state, Failed) and state.writer == link.principal:
                    raise EngineError("query_failed", f"the copy ended: {state.reason}")
        self._starting.start(self._ends(telling), telling, telling.reign)
        now = self._pace.clock()
        self._remember(link, looked=now, advanced=now, lineage=now, waiting={}, code=None)

    def _watch(self, telling: Telling) -> None:
        """See that both topics are still the same ones, and put the floor on the log."""
        link, now = telling.link, self._pace.clock()
        memory = self._memory[link.id]
        if now - memory.looked < self._pace.look:
            return
        self._remember(link, looked=now)
        try:
            reached = self._reached(telling)
            self._require_progress(telling, reached)
        except CopyError:
            raise
        except MeshError as error:
            # a copy outlives the restart of a broker by itself
            self._remember(link, waiting={})
            log.warning("link_not_seen", link=link.id, error=str(error))
            return
        self._remember(link, attempts=0)
        moved = sum(max(0, at - link.positions.get(str(p), 0)) for p, at in reached.items())
        late = now - memory.advanced >= self._pace.advance
        if moved and (late or moved >= self._pace.advance_records):
            telling.advanced(reached)
            self._remember(link, advanced=now)
        if now - memory.lineage >= self._pace.lineage:
            telling.goes_on()
            self._remember(link, lineage=now)

    def _reached(self, telling: Telling) -> dict[int, int]:
        """Partition -> next source offset; raises CopyError if a topic is not the known one."""
        ends, link = self._ends(telling), telling.link
        source = ends.source_topic(fresh=False)
        ends.destination_topic()
        origin = Origin(link.source_cluster, source.id)
        return positions(read_tail(ends.destination_log, link.topic, source.partitions, origin))

    def _require_progress(self, telling: Telling, reached: Mapping[int, int]) -> None:
        """Raise `query_stalled` for a query that lives and does not copy.

        Spark notices a record that could not be written only with the next one of its partition,
        or at the end of a batch; and a query without free task slots waits for ever.
        """
        link, now = telling.link, self._pace.clock()
        known = {int(partition): at for partition, at in link.positions.items()} | dict(reached)
        ahead = behind(self._ends(telling).source_log, link.source_topic, known)
        before = self._memory[link.id].waiting
        waiting = {
            p: before[p] if p in before and before[p][0] == known[p] else (known[p], now)
            for p, records in ahead.items()
            if records
        }
        self._remember(link, waiting=waiting)
        for partition, (position, since) in sorted(waiting.items()):
            if now - since >= self._pace.stall:
                self._remember(link, waiting={})
                raise EngineError(
                    "query_stalled",
                    f"partition {partition} stands at source offset {position} for "
                    f"{self._pace.stall:g} s though there is more to copy: the link is restarted",
                )

    def _remove(self, telling: Telling) -> None:
        """Remove, with some patience for rights that are just being withdrawn."""
        try:
            self._ending.remove(self._ends(telling), telling, telling.reign)
        except CopyError as fault:
            waited = self._pace.clock() - self._memory[telling.link.id].since
            if fault.code != "readers_remain" or waited >= self._pace.grace:
                raise

    def _fail(self, telling: Telling, fault: CopyError) -> None:
        """Say it once; close the link if only a person can mend it, else try again later."""
        link = telling.link
        try:
            if not fault.retriable:
                self._ending.halt(self._ends(telling), telling.reign)
            telling.failed(fault)
        except MeshError as error:
            log.warning("failure_not_told", link=link.id, error=str(error))
            fault = CopyError("cluster_unavailable", str(error))
        attempts = self._memory[link.id].attempts + 1
        wait = wait_before(attempts, self._pace.retry_first, self._pace.retry_most)
        until = self._pace.clock() + wait if fault.retriable else _FOR_A_PERSON
        self._remember(link, attempts=attempts, code=fault.code, not_before=until)

    def _due(self, link: Link, trouble: EngineError | None) -> bool:
        """Whether to look at a link now; forgets what belongs to an older generation."""
        memory = self._memory.get(link.id)
        if memory is None or memory.generation != link.generation:
            self._memory[link.id] = Memory(link.generation, since=self._pace.clock())
            return True
        if memory.code == "engine_unavailable" and trouble is None:
            return True
        return self._pace.clock() >= memory.not_before

    def _remember(self, link: Link, **changes: Any) -> None:
        self._memory[link.id] = replace(self._memory[link.id], **changes)

    def _ends(self, telling: Telling) -> Ends:
        return Ends.of(telling.link, telling.image, self._clusters, self._logs)


def _lane(link: Link) -> str:
    """Links between the same clusters share a few lanes, always the same one for a link."""
    number = zlib.crc32(link.id.encode()) % LANES_PER_PAIR
    return f"{link.source_cluster}>{link.cluster}/{number}"
