"""Clusters and an engine in memory, with what matters of the real ones for exactness.

Rights are looked at when a record is written, a query lives on without its controller, and records
that an engine took over but did not write yet may still land after it was told to stop.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mesh_events.errors import InfrastructureError, RefusedError
from mesh_events.intents import Engine
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import Login, Topic
from processors.clusters.rights import Acl, Binding, Operation, Resource
from processors.controllers.flows.ends import Reach
from processors.controllers.flows.pace import Pace
from processors.controllers.flows.partition_limit import MOST_PARTITIONS
from processors.controllers.flows.starts import Starts
from processors.controllers.links.links import LinksController, Mirrors
from projections.identity import Cluster
from projections.image import Image
from spark_streams.engine import Answer, CopySpec, Failed, Running, States
from spark_streams.errors import EngineError
from spark_streams.last import Last
from spark_streams.log import LAST_S, Ahead, Bounds
from spark_streams.provenance import HEADER, Provenance
from tests.links.harness import ControllerHarness
from tests.links.real import LineageList

QUICK = Pace(look=0, advance=0, lineage=0, quiet=0, retry_first=0, retry_most=0, stall=5, grace=5)
Headers = tuple[tuple[str, bytes | None], ...]
_ids = itertools.count()
_DEFAULTS = {
    "cleanup.policy": "delete",
    "delete.retention.ms": "86400000",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
}
"""Of Kafka, which its topics tell."""


@dataclass
class MemoryPartition:
    """`records` maps offset -> (key, headers); `end` counts `markers` too."""

    records: dict[int, tuple[bytes, Headers]] = field(default_factory=dict)
    markers: set[int] = field(default_factory=set)
    low: int = 0
    end: int = 0

    def append(self, key: bytes, headers: Headers = ()) -> None:
        self.records[self.end] = (key, headers)
        self.end += 1

    def mark(self) -> None:
        """The end of a transaction: an offset without a record."""
        self.markers.add(self.end)
        self.end += 1

    def cut(self, end: int) -> None:
        """What stands at `end` and behind it is lost, as after an election of one who lacked it."""
        self.records = {at: found for at, found in self.records.items() if at < end}
        self.markers = {at for at in self.markers if at < end}
        self.end = end

    def expire(self, below: int) -> None:
        self.records = {at: found for at, found in self.records.items() if at >= below}
        self.low = below


class MemoryTopic:
    def __init__(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        self.described = Topic(name, f"id/{next(_ids)}", partitions, {**_DEFAULTS, **config})
        self.partitions = [MemoryPartition() for _ in range(partitions)]

    def grow(self, partitions: int) -> None:
        """Add partitions up to `partitions`; Kafka removes none."""
        self.partitions += [MemoryPartition() for _ in range(len(self.partitions), partitions)]
        self.described = replace(self.described, partitions=len(self.partitions))


class MemoryCluster:
    """A ClusterAdmin and a PartitionLog in one; `down` refuses every call.

    Lanes of their own threads use it: sets are replaced, never changed, while others look.
    """

    def __init__(self, name: str) -> None:
        self.name, self.bootstrap_servers = name, f"{name}.test:9092"
        self.topics: dict[str, MemoryTopic] = {}
        self.bindings: set[Binding] = set()
        self.strange: set[Acl] = set()
        self.logins: dict[str, str | None] = {}
        self.quotas: dict[str, Mapping[str, float]] = {}
        self.busy_groups: set[str] = set()
        self.deleted_groups: list[str] = []
        self.down = False
        self._guard = threading.Lock()

    def _answer(self) -> None:
        if self.down:
            raise InfrastructureError(f"cluster {self.name} does not answer", retriable=True)

    def ping(self) -> int:
        self._answer()
        return 1

    def topic_names(self) -> set[str]:
        self._answer()
        return set(self.topics)

    def topic(self, name: str) -> Topic | None:
        self._answer()
        found = self.topics.get(name)
        return found.described if found else None

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        return {name: topic_id for name, (topic_id, _) in self.topic_sizes(names).items()}

    def topic_sizes(self, names: Iterable[str]) -> dict[str, tuple[str, int]]:
        self._answer()
        found = {name: self.topics[name].described for name in names if name in self.topics}
        return {name: (one.id, one.partitions) for name, one in found.items()}

    def delete_group(self, group: str) -> bool:
        self._answer()
        if group in self.busy_groups:
            return False
        self.deleted_groups.append(group)
        return True

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str], replicas: int = -1
    ) -> None:
        del replicas
        self._answer()
        self.topics.setdefault(name, MemoryTopic(name, partitions, config))

    def add_partitions(self, name: str, partitions: int) -> None:
        self._answer()
        self.topics[name].grow(partitions)

    def delete_topic(self, name: str) -> None:
        self._answer()
        self.topics.pop(name, None)

    def rights(self, principal: str | None = None, topic: str | None = None) -> set[Binding]:
        self._answer()
        return {
            found
            for found in self.bindings
            if principal in (None, found.principal)
            and (topic is None or (found.resource, found.name) == (Resource.TOPIC, topic))
        }

    def acls(self, principal: str | None = None) -> set[Acl]:
        self._answer()
        found = {Acl.of(found) for found in self.bindings} | self.strange
        return {acl for acl in found if principal in (None, acl.principal)}

    def make(self, acl: Acl) -> None:
        """Somebody who is not the mesh makes an ACL."""
        binding = acl.binding()
        if binding is None:
            self.strange.add(acl)
        else:
            self.bindings.add(binding)

    def grant(self, bindings: Iterable[Binding]) -> None:
        self._answer()
        with self._guard:
            self.bindings = self.bindings | set(bindings)

    def withdraw(self, rights: Iterable[Binding | Acl]) -> None:
        self._answer()
        unwanted = {Acl.of(one) if isinstance(one, Binding) else one for one in rights}
        gone = {right for acl in unwanted if (right := acl.binding()) is not None}
        with self._guard:
            self.bindings, self.strange = self.bindings - gone, self.strange - unwanted

    def login_of(self, principal: str) -> Login:
        self._answer()
        if principal not in self.logins:
            return Login.ABSENT
        return Login.CLOSED if self.logins[principal] is None else Login.OPEN

    def lets_in(self, principal: str, password: str) -> bool:
        self._answer()
        return self.logins.get(principal) == password

    def set_password(self, principal: str, password: str) -> None:
        self._answer()
        self.logins[principal] = password

    def retire_login(self, principal: str) -> None:
        self._answer()
        if principal in self.logins:
            self.logins[principal] = None

    def set_quotas(self, quotas: Mapping[str, Mapping[str, float]]) -> None:
        self._answer()
        self.quotas.update(quotas)

    def end_transactions(self, transactional_id: str) -> None:
        del transactional_id
        self._answer()

    def connection(self, principal: str, password: str) -> Connection:
        return Connection(self.bootstrap_servers, principal, password)

    def bounds(self, topic: str, partitions: Iterable[int]) -> Bounds:
        self._answer()
        found, wanted = self.topics[topic].partitions, list(partitions)
        if missing := [p for p in wanted if p >= len(found)]:
            raise InfrastructureError(f"{topic} has no partition {missing[0]}", retriable=True)
        return {p: (found[p].low, found[p].end) for p in wanted}

    def last(self, topic: str, within: Bounds, *, headers: bool = True) -> dict[int, Last]:
        del headers
        self._answer()
        found: dict[int, Last] = {}
        for p, (low, high) in within.items():
            records = self.topics[topic].partitions[p].records
            offsets = [at for at in list(records) if low <= at < high]
            if offsets:
                found[p] = Last(max(offsets), records[max(offsets)][1])
        return found

    def first(self, topic: str, within: Bounds, most_s: float) -> dict[int, Ahead]:
        del most_s
        self._answer()
        found: dict[int, Ahead] = {}
        for p, (low, high) in within.items():
            records = self.topics[topic].partitions[p].records
            offsets = [at for at in list(records) if low <= at < high]
            found[p] = Ahead(min(offsets, default=max(low, high)), bool(offsets), True)
        return found

    def each(
        self,
        topic: str,
        within: Bounds,
        take: Callable[[int, Last], None],
        names: Sequence[bytes] = (),
        most_s: float = LAST_S,
    ) -> None:
        del names, most_s
        self._answer()
        for p, (low, high) in within.items():
            partition = self.topics[topic].partitions[p]
            for at in sorted({*partition.records, *partition.markers}):
                if low <= at < high:
                    is_marker = at in partition.markers
                    headers = () if is_marker else partition.records[at][1]
                    take(p, Last(at, headers, is_marker=is_marker))

    def close(self) -> None:
        return

    def open_logins(self) -> set[str]:
        """Names that somebody could log in with."""
        return {name for name, password in self.logins.items() if password is not None}

    def may(self, principal: str, operation: Operation, topic: str) -> bool:
        wanted = Binding(principal, operation, Resource.TOPIC, topic)
        return wanted in self.bindings


@dataclass
class MemoryLogs:
    clusters: dict[str, MemoryCluster]

    def source(self, _: Image, cluster: str) -> MemoryCluster:
        return self.clusters[cluster]

    def destination(self, _: Image, cluster: str) -> MemoryCluster:
        return self.clusters[cluster]

    def probe(self, connection: Connection, _: str) -> None:
        name = connection.bootstrap_servers.partition(".")[0]
        if self.clusters[name].logins.get(connection.user) != connection.password:
            raise RefusedError("kafka_denied", f"{connection.user} may not log in")

    def close(self) -> None:
        return


@dataclass
class MemoryQuery:
    spec: CopySpec
    position: dict[int, int]
    buffer: list[tuple[int, bytes, Headers]] = field(default_factory=list)
    fault: str | None = None
    stopped: bool = False


class MemoryEngine:
    """An engine whose records move when `move` is called; `down`, or `starting`, refuses all."""

    is_stopped = False

    def __init__(self, clusters: Iterable[MemoryCluster], slots: int = 512) -> None:
        self._clusters = {found.bootstrap_servers: found for found in clusters}
        self.queries: list[MemoryQuery] = []
        self.down = self.starting = False
        self._slots = slots

    def _answer(self) -> None:
        if self.down:
            raise EngineError("engine_unavailable", "the engine does not answer")
        if self.starting:
            raise EngineError("engine_starting", "the engine is being started")

    def states(self) -> States:
        self._answer()
        found: dict[str, tuple[Running | Failed, ...]] = {}
        for query in self.queries:
            if not query.stopped:
                writer, link = query.spec.writer, query.spec.link
                state = Failed(writer, query.fault) if query.fault else Running(writer)
                found[link] = (*found.get(link, ()), state)
        return found

    def start(self, spec: CopySpec) -> None:
        self._answer()
        self.require_room(spec.link, len(spec.start))
        self.queries.append(MemoryQuery(spec, dict(spec.start)))

    def require_room(self, link: str, partitions: int) -> None:
        del link
        self._answer()
        taken = sum(len(query.spec.start) for query in self._living())
        if taken + partitions > self._slots:
            raise EngineError("engine_full", f"{taken} of {self._slots} slots are taken")

    def stop(self, link: str) -> None:
        self._answer()
        for query in self.queries:
            if query.spec.link == link:
                query.stopped = True

    def progress(self, link: str) -> Mapping[int, int]:
        """A batch never ends here."""
        del link
        self._answer()
        return {}

    def ask(self, doing: str, act: Callable[[Any], Answer]) -> Answer:
        raise NotImplementedError(doing, act)

    def close(self) -> None:
        return

    def die(self) -> None:
        """The server is gone, with all it knew; what its producers had sent may still land."""
        for query in self.queries:
            query.stopped = True

    def discover(self) -> None:
        """A batch ends: living queries find the partitions that were added to their sources."""
        for query in self._living():
            cluster = self._clusters[query.spec.source.bootstrap_servers]
            found = cluster.topics[query.spec.source_topic].partitions
            query.position |= {p: 0 for p in range(len(found)) if p not in query.position}

    def take(self) -> None:
        """Every living query reads all there is into its producer's buffer."""
        for query in self._living():
            spec = query.spec
            cluster = self._clusters[spec.source.bootstrap_servers]
            if not cluster.may(spec.writer, Operation.READ, spec.source_topic):
                query.fault = "the source refused"
                continue
            for number, partition in enumerate(cluster.topics[spec.source_topic].partitions):
                if number not in query.position:
                    continue
                for at in sorted(at for at in partition.records if at >= query.position[number]):
                    key, headers = partition.records[at]
                    place = Provenance(spec.origin, number, at).encode()
                    query.buffer.append((number, key, (*headers, (HEADER, place))))
                    query.position[number] = at + 1

    def land(self, most: int | None = None) -> None:
        """Buffers are written, also those of stopped queries, as far as the rights go."""
        for query in self.queries:
            spec = query.spec
            cluster = self._clusters[spec.destination.bootstrap_servers]
            topic = cluster.topics.get(spec.destination_topic)
            allowed = cluster.may(spec.writer, Operation.WRITE, spec.destination_topic)
            if topic is None or not allowed:
                query.fault = query.fault or ("the destination refused" if query.buffer else None)
                continue
            if any(number >= len(topic.partitions) for number, _, _ in query.buffer[:most]):
                query.fault = "the destination has no such partition"
                continue
            for number, key, headers in query.buffer[:most]:
                topic.partitions[number].append(key, headers)
            del query.buffer[:most]

    def move(self) -> None:
        self.take()
        self.land()

    def _living(self) -> list[MemoryQuery]:
        return [query for query in self.queries if not query.stopped and query.fault is None]


class MemoryLink:
    """One link from `east` to `west`, its controller, and the whole world around it."""

    def __init__(
        self,
        partitions: int = 2,
        slots: int = 512,
        most: int = MOST_PARTITIONS,
        by: Engine = Engine.SPARK,
    ) -> None:
        self.topic = "east.users"
        self.east, self.west = MemoryCluster("east"), MemoryCluster("west")
        self.clusters = {"east": self.east, "west": self.west}
        self.engine = MemoryEngine(self.clusters.values(), slots)
        self.east.create_topic(self.topic, partitions, {})
        registered = [
            Cluster(found.name, found.bootstrap_servers, "admin", "env:NONE", 0)
            for found in self.clusters.values()
        ]
        self.harness = ControllerHarness(registered, self.topic, self.topic, by)
        self.lineage = LineageList()
        self.time = 100.0
        self.pace: dict[str, float] = {}
        self.schema = '"bytes"'
        by_mirror = by is Engine.MIRRORMAKER
        self.mirrors = Mirrors(lambda _: self.engine, lambda _: "connect") if by_mirror else None
        self.starts = Starts()
        self.controller = self.new_controller(most)

    def new_controller(self, most: int = MOST_PARTITIONS) -> LinksController:
        return LinksController(
            Reach(
                lambda _, name: self.clusters[name],
                MemoryLogs(self.clusters),
                most_partitions=most,
                starts=self.starts,
            ),
            lambda _: self.engine,
            self.lineage,
            lambda _: self.schema,
            replace(QUICK, clock=lambda: self.time, **self.pace),
            mirrors=self.mirrors,
        )

    @property
    def source(self) -> MemoryTopic:
        return self.east.topics[self.topic]

    @property
    def destination(self) -> MemoryTopic:
        return self.west.topics[self.topic]

    def reconcile(self, leadership: ControllerHarness | None = None) -> None:
        self.time += 1
        self.controller.reconcile(self.harness.image, leadership or self.harness)

    def produce(self, count: int, partition: int | None = None) -> None:
        for n in range(count):
            place = n % len(self.source.partitions) if partition is None else partition
            self.source.partitions[place].append(f"{place}.{n}".encode())

    def settle(self, rounds: int = 5) -> None:
        """Let controller and engine do all they can."""
        for _ in range(rounds):
            self.reconcile()
            self.engine.move()

    def findings(self, *, complete: bool = True) -> list[str]:
        """How the copy differs from the source (or, if not complete, from a prefix of it)."""
        wrong = []
        origin = f"east/{self.source.described.id}"
        for number, partition in enumerate(self.source.partitions):
            wanted = [
                (key, (*headers, (HEADER, f"{origin}/{number}/{at}".encode())))
                for at, (key, headers) in sorted(partition.records.items())
            ]
            copied = self.destination.partitions[number].records
            got = [copied[at] for at in sorted(copied)]
            if got != (wanted if complete else wanted[: len(got)]):
                wrong.append(f"{number}: {got} is not {wanted}")
        return wrong
