"""The links controller: every link copies, stands still or is gone, as the log says."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from mesh_events.errors import InfrastructureError
from mesh_events.intents import Engine, domain_of
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import ClusterAdmin, Topic
from processors.clusters.rights import Binding
from processors.controllers.controller import Leadership
from processors.controllers.flows import fence
from processors.controllers.flows.ends import Ends, Reach
from processors.controllers.flows.flows import Flows
from processors.controllers.flows.pace import Pace
from processors.controllers.flows.partition_limit import OF_LINKS, PartitionLimit
from processors.controllers.flows.starts import Starts
from processors.controllers.lanes import Job, Lanes, SerialLanes
from processors.controllers.links.reporter import LinkReporter
from processors.controllers.links.stopping import LinkEnd
from processors.lineage.events import Lineage
from processors.mirror import config as mirror
from processors.registries.replication import Carried
from projections.identity import Cluster
from projections.image import Image
from projections.links import Link
from spark_streams.engine import FlowEngine
from spark_streams.errors import CopyError
from spark_streams.lag import record_ends
from spark_streams.log import Ahead, PartitionLog
from spark_streams.provenance import Origin
from spark_streams.resume import start_positions
from spark_streams.tail import positions, read_tail

_Reached = tuple[
    Link, ClusterAdmin, ClusterAdmin, PartitionLog, PartitionLog, PartitionLog, Carried, Cluster
]
log = structlog.get_logger(__name__)
_NEVER = float("-inf")
LEFTOVERS_S = 60.0
"""So often an engine is asked for copies that another one has taken over."""
LANES = 3
"""So many links of one domain's products, between the same two clusters, are started, watched and
ended at the same time. What a domain's topics hold decides how long a look at their ends takes: it
has as many looks at a cluster at a time (`spark_streams.log.OF_A_DOMAIN`)."""


Engines = Callable[[str], FlowEngine]


@dataclass(frozen=True, slots=True)
class Mirrors:
    """What links by MirrorMaker are kept with.

    engines: domain -> what runs the copies of its products.
    group: domain -> the group of the Connect workers that do.
    """

    engines: Engines
    group: Callable[[str], str]


class LinksController:
    """Keeps the links, each with its own engine.

    Copies run on a server of the domain whose products they copy: what its records do to that
    server, or to a look at its topics, holds up no link of another domain.

    Args:
        reach: administers the clusters, and looks into their topics.
        engines: domain -> what runs the copies of its products by Spark. Domains with the same one
            are kept together: a server is asked once, not for each.
        lineage: where each incarnation is told.
        schema_text: the Avro schema with an id, None for another, for the lineage.
        pace: how often and how long.
        lanes: makes lanes under a name: domains are kept side by side, and so are a domain's links
            between other clusters.
        mirrors: what runs the copies by MirrorMaker; without, such links are left alone.
    """

    name = "links"

    def __init__(
        self,
        reach: Reach,
        engines: Engines,
        lineage: Lineage,
        schema_text: Callable[[int], str | None],
        pace: Pace | None = None,
        lanes: Callable[[str], Lanes] | None = None,
        mirrors: Mirrors | None = None,
    ) -> None:
        self._reach, self._pace = reach, pace or Pace()
        copying = Copying(reach, lineage, schema_text)
        self._kinds = {Engine.SPARK: _Kind(copying, engines)}
        if mirrors is not None:
            mirroring = Mirroring(reach, lineage, schema_text, mirrors.group)
            self._kinds[Engine.MIRRORMAKER] = _Kind(mirroring, mirrors.engines)
        self._new_lanes = lanes or (lambda _: SerialLanes())
        self._lanes = self._new_lanes(self.name)
        self._starts = reach.starts or Starts()

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Compare and repair every link once, each domain's copies in their own lanes."""
        links: dict[Engine, dict[str, list[Link]]] = {engine: {} for engine in Engine}
        for link in image.links.values():
            links[link.engine].setdefault(domain_of(link.product), []).append(link)
        jobs: dict[str, Job] = {}
        for engine, kind in self._kinds.items():
            here = links[engine]
            others = [of_other for other, of_other in links.items() if other is not engine]
            # no server is started to see that what is fenced does not run
            awake = {domain for domain, its in here.items() if not all(map(_rests, its))}
            for runs, domains in kind.serving(awake).items():
                its = [link for domain in domains for link in here.get(domain, ())]
                moved = [one for of in others for domain in domains for one in of.get(domain, ())]
                server = self._server(kind, runs, f"{engine.value.lower()} of {domains[0]}")
                jobs[server.name] = self._job(server, its, moved, image, leadership)
        self._lanes.run(jobs, image, leadership)

    def close(self) -> None:
        """Leave the engines and the clusters; the copies go on."""
        for kind in self._kinds.values():
            for server in kind.servers.values():
                server.flows.close()
        self._reach.logs.close()

    def _job(
        self,
        server: "_Server",
        here: list[Link],
        moved: list[Link],
        image: Image,
        leadership: Leadership,
    ) -> Job:
        def run() -> None:
            server.flows.reconcile(here, image, leadership)
            self._leave(server, moved, leadership)

        return run

    def _server(self, kind: "_Kind", runs: FlowEngine, name: str) -> "_Server":
        if runs not in kind.servers:
            flows = self._flows(kind.copying, runs, self._new_lanes(f"{self.name} by {name}"))
            kind.servers[runs] = _Server(name, flows)
        return kind.servers[runs]

    def _flows(self, kind: "Copying", engine: FlowEngine, lanes: Lanes | None) -> Flows[Link]:
        ending = LinkEnd(kind, engine, self._pace.quiet, self._starts)
        return Flows(kind, ending, engine, self._reach, self._pace, lanes)

    def _leave(self, server: "_Server", moved: Iterable[Link], leadership: Leadership) -> None:
        """Let an engine forget, now and then, the links that another one has taken over."""
        now = self._pace.clock()
        if now - server.left < LEFTOVERS_S:
            return
        if names := {link.id for link in moved}:
            server.left = now
            server.flows.leave(names, leadership)


@dataclass
class _Server:
    """One engine, with the links that it runs.

    name: of its lanes.
    left: when it was last asked for what is no longer its own.
    """

    name: str
    flows: Flows[Link]
    left: float = _NEVER


@dataclass
class _Kind:
    """The engines of one kind: domain -> engine, and engine -> its links."""

    copying: "Copying"
    engines: Engines
    known: dict[str, FlowEngine] = field(default_factory=dict)
    servers: dict[FlowEngine, _Server] = field(default_factory=dict)

    def serving(self, awake: AbstractSet[str]) -> dict[FlowEngine, list[str]]:
        """The engines to be asked, each with its domains: of these, and those that run already."""
        for domain in awake - self.known.keys():
            self.known[domain] = self.engines(domain)
        found: dict[FlowEngine, list[str]] = {}
        for domain, engine in sorted(self.known.items()):
            if domain in awake or not engine.is_stopped:
                found.setdefault(engine, []).append(domain)
        return found


def _rests(link: Link) -> bool:
    """Whether nobody has to look."""
    return link.is_over or link.is_at_rest


@dataclass(frozen=True, slots=True)
class LinkEnds(Ends[Link]):
    """Both ends of a link.

    copied: the copy as `read_committed` sees it: MirrorMaker writes in transactions, and what one
        of them wrote and took back was not copied, whoever goes on.
    schemas: has schemas in the registry of the copy's cluster.
    cluster: the copy's.
    """

    copied: PartitionLog
    schemas: Carried
    cluster: Cluster

    @property
    def tail_log(self) -> PartitionLog:
        """Where the last records of the copy are looked up."""
        return self.copied

    def carry_schemas(self, *, anew: bool = False) -> None:
        """Let the readers of the copy find every id that may be in it; see `Carried`."""
        self.schemas.carry(self.cluster, self.flow.source_topic, self.flow.topic, anew=anew)

    def settle(self, partitions: int, quiet_s: float) -> None:
        """Wait until nothing lands any more in the copy, and no transaction is open there."""
        topic = self.flow.topic
        fence.settle(self.destination_log, topic, partitions, quiet_s, self.copied)


@dataclass(frozen=True, slots=True)
class MirrorEnds(LinkEnds):
    """Both ends of a link by MirrorMaker, which is allowed more than to read and to write.

    group: the Connect workers' group.
    """

    group: str

    def fenced(self, topics: tuple[str, ...]) -> tuple[str | None, ...]:
        """Wherever they are: also a reader's group, a transactional id, the topic of offsets."""
        del topics
        return (None,)

    def more_rights(self, writer: str) -> tuple[list[Binding], list[Binding]]:
        """What a connector needs beside reading and writing."""
        return mirror.reading(writer), mirror.writing(writer, self.group)

    def end_transactions(self, keep: str | None = None) -> None:
        """Abort what incarnations have left open: they could still commit it."""
        found = fence.bindings_of(self.destination, None, self.flow.id)
        for writer in {one.principal for one in found} - {keep}:
            self.destination.end_transactions(mirror.transactional_id(self.group, writer))


class Copying:
    """What makes a flow a link: it copies a product into another cluster, as it is."""

    name = "link"
    lanes = LANES

    def __init__(
        self, reach: Reach, lineage: Lineage, schema_text: Callable[[int], str | None]
    ) -> None:
        self._clusters, self._logs, self._schemas = reach.admin, reach.logs, reach.schemas
        self._lineage, self._schema_text = lineage, schema_text
        self._limit = PartitionLimit(reach.most_partitions, OF_LINKS)

    def queue(self, link: Link) -> str:
        """A domain's links between the same clusters share a few lanes, and nobody else's wait."""
        return f"{link.source_cluster}>{link.cluster}/{domain_of(link.product)}"

    def reporter(self, link: Link, image: Image, leadership: Leadership) -> LinkReporter:
        """Speaks about the link."""
        return LinkReporter(link, image, leadership, self._lineage, self._schema_text)

    def ends(self, link: Link, image: Image) -> LinkEnds:
        """Connects both clusters."""
        return LinkEnds(*self._reached(link, image))

    def _reached(self, link: Link, image: Image) -> _Reached:
        """Both ends as `LinkEnds` holds them."""
        return (
            link,
            self._clusters(image, link.source_cluster),
            self._clusters(image, link.cluster),
            self._logs.source(image, link.source_cluster),
            self._logs.destination(image, link.cluster),
            self._logs.source(image, link.cluster),
            self._schemas,
            image.identity.clusters[link.cluster],
        )

    def withheld(self, link: Link, image: Image) -> CopyError | None:
        """Nothing holds a link that the log wants: it ends with its last grant."""
        del link, image
        return None

    def require_still(self, link: Link) -> None:
        """Nothing to ask: a grant's end is followed by the link's, and by the copy's."""

    def require_size(self, ends: Ends[Link], source: Topic) -> None:
        """The copy gets as many partitions as the source has."""
        self._limit.require(source, ends.source.name)

    def has_new_partitions(self, ends: Ends[Link]) -> bool:
        """By the log: a start reports a position for each partition of the source."""
        return ends.source_topic(fresh=False).partitions > len(ends.flow.positions)

    def plan(self, ends: Ends[Link]) -> "CopyPlan":
        """Records are copied as they are, once their schemas can be found there."""
        ends.carry_schemas(anew=True)
        return CopyPlan()

    def reached(self, ends: Ends[Link]) -> dict[int, int]:
        """Partition -> next source offset, from the copy's tail."""
        try:
            ends.carry_schemas()
        except InfrastructureError as error:
            # readers know the schemas of before; a copy does not wait for a registry
            log.warning("schemas_not_carried", link=ends.flow.id, error=str(error))
        link, source = ends.flow, ends.source_topic(fresh=False)
        ends.destination_topic()
        origin = Origin(link.source_cluster, source.id)
        return positions(read_tail(ends.tail_log, link.topic, source.partitions, origin))

    def news(
        self, ends: Ends[Link], reached: Mapping[int, int], ahead: Mapping[int, Ahead]
    ) -> Mapping[int, int] | None:
        """That the copy is filled, or what fills it where the log does not know that.

        Statements wait for this. A source that has lost records since the start, as by compaction,
        has no more to copy in their partitions: then the copy is filled where it stands.
        """
        link = ends.flow
        if link.is_filled:
            return None
        at = {int(p): max(known, reached.get(int(p), 0)) for p, known in link.positions.items()}
        if not link.source_ends:
            # started by a worker that did not tell them
            return record_ends(ends.source_log, link.source_topic, at)
        wanted = {int(p): end for p, end in link.source_ends.items()}
        lacking = {p: at.get(p, 0) for p, end in wanted.items() if at.get(p, 0) < end}
        if not all(p in ahead and ahead[p].is_none for p in lacking):
            return None
        return wanted | lacking if lacking else {}

    def patience_s(self, link: Link, stall_s: float) -> float:
        """Every record of the source comes out."""
        del link
        return stall_s


class Mirroring(Copying):
    """Links that MirrorMaker copies."""

    def __init__(
        self,
        reach: Reach,
        lineage: Lineage,
        schema_text: Callable[[int], str | None],
        group: Callable[[str], str],
    ) -> None:
        super().__init__(reach, lineage, schema_text)
        self._group = group

    def ends(self, link: Link, image: Image) -> MirrorEnds:
        """Connects both clusters."""
        return MirrorEnds(*self._reached(link, image), self._group(domain_of(link.product)))

    def plan(self, ends: Ends[Link]) -> "CopyPlan":
        """Records are copied as they are, their times as well."""
        return replace(super().plan(ends), keeps_times=True)


@dataclass
class CopyPlan:
    """What one start of a link has found out.

    keeps_times: records keep the times that they had. Kafka closes a segment of old records as soon
        as it is written, and may then compact the last record away, were it the end of a row.
    """

    keeps_times: bool = False
    _source_ends: Mapping[int, int] = field(default_factory=dict, init=False)

    def start(
        self, ends: Ends[Link], source: Topic, destination: Topic, origin: Origin, *, fresh: bool
    ) -> Mapping[int, int]:
        """Behind the copy's tail; a fresh copy begins at the source's beginning."""
        link = ends.flow
        tails = read_tail(ends.tail_log, link.topic, destination.partitions, origin)
        # each start reports every partition: one that is missing was added since, and begins at 0
        added = dict.fromkeys(range(source.partitions), 0)
        known = {int(p): offset for p, offset in link.positions.items()}
        floor = {} if fresh else added | known
        bounds = ends.source_log.bounds(link.source_topic, range(source.partitions))
        compacts = destination.config.get("cleanup.policy") == "compact"
        starts = start_positions(tails, floor, bounds, compacted=compacts and self.keeps_times)
        self._source_ends = record_ends(ends.source_log, link.source_topic, starts)
        return starts

    def work(self, writer: str, login: Connection) -> None:
        """Nothing is done with a record."""
        del writer, login

    def more(self) -> Mapping[str, Any]:
        """Where the copy has to come to have all that the source holds at this start."""
        return {"source_ends": {str(p): end for p, end in sorted(self._source_ends.items())}}
