"""One statement over a cluster and an engine in memory, with two topics that are written apart.

What becomes of a record is told by its key: `good`, `dead` (it cannot be read) or `less` (it is
passed over); or it is another thing by now, as the engine's `verdicts` say. The query writes each
of its topics by itself, so that one may be ahead of the other; how far it has come is known only
where a batch ended.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from immutables import Map

from mesh_events.errors import InfrastructureError
from mesh_events.facts import Fact
from mesh_events.meta import Meta, derived_id, now
from mesh_events.statements import (
    Begin,
    StatementAdded,
    StatementFact,
    StatementIntent,
    StatementUpdated,
)
from processors.clusters.rights import Operation
from processors.controllers.checks.findings import Finding, destination_free
from processors.controllers.controller import NotLeaderError
from processors.controllers.flows.ends import Reach
from processors.controllers.flows.partition_limit import MOST_PARTITIONS
from processors.controllers.statements.statements import StatementsController
from projections import statements
from projections.identity import Application, Cluster, Domain, Identity, Quarantine
from projections.image import Image
from projections.links import Desired
from projections.statements import END_OF, Statement
from spark_streams.engine import Answer, CopySpec, Failed, Running, States
from spark_streams.errors import EngineError
from spark_streams.provenance import HEADER, Origin, Provenance
from spark_streams.sql.running import work
from spark_streams.sql.running.frame import Result
from spark_streams.standing import AGAIN
from tests.links.harness import meta
from tests.links.memory import QUICK, Headers, MemoryCluster, MemoryLogs
from tests.links.real import LineageList

NAME, STREAM, OUT, DEAD = "east.copied", "east.clicks", "east.copied", "east.copied.dead"
CLICK = {"type": "record", "name": "Click", "fields": [{"name": "ip", "type": "string"}]}


@dataclass
class Query:
    """A query with one buffer for each topic that it writes."""

    spec: CopySpec
    position: dict[int, int]
    buffers: dict[str, list[tuple[int, bytes, Headers]]] = field(
        default_factory=lambda: {OUT: [], DEAD: []}
    )
    progress: dict[int, int] = field(default_factory=dict)
    fault: str | None = None
    stopped: bool = False


class Engine:
    """Runs statements when it is told to; `down` refuses every call."""

    is_stopped = False

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self.queries: list[Query] = []
        self.down, self.slots = False, 512
        self.verdicts: dict[bytes, str] = {}
        self.refusal: Exception | None = None

    def _answer(self) -> None:
        if self.down:
            raise EngineError("engine_unavailable", "the engine does not answer")

    def states(self) -> States:
        self._answer()
        found: dict[str, tuple[Running | Failed, ...]] = {}
        for query in self.queries:
            if not query.stopped:
                writer, name = query.spec.writer, query.spec.link
                state = Failed(writer, query.fault) if query.fault else Running(writer)
                found[name] = (*found.get(name, ()), state)
        return found

    def require_room(self, link: str, partitions: int) -> None:
        del link
        self._answer()
        taken = sum(len(query.spec.start) for query in self.living())
        if taken + partitions > self.slots:
            raise EngineError("engine_full", f"{taken} of {self.slots} slots are taken")

    def start(self, spec: CopySpec) -> None:
        self.require_room(spec.link, len(spec.start))
        self.queries.append(Query(spec, dict(spec.start)))

    def stop(self, link: str) -> None:
        self._answer()
        for query in self.queries:
            if query.spec.link == link:
                query.stopped = True

    def progress(self, link: str) -> Mapping[int, int]:
        self._answer()
        found = [query.progress for query in self.living() if query.spec.link == link]
        return found[0] if len(found) == 1 else {}

    def ask(self, doing: str, act: Callable[[Any], Answer]) -> Answer:
        """Spark's part of a plan: the schema of the result."""
        del doing, act
        self._answer()
        if self.refusal is not None:
            raise self.refusal
        return json.dumps(CLICK)  # type: ignore[return-value]

    def close(self) -> None:
        return

    def living(self) -> list[Query]:
        return [query for query in self.queries if not query.stopped and query.fault is None]

    def die(self) -> None:
        """The server is gone; what its producers had sent may still land."""
        for query in self.queries:
            query.stopped = True

    def take(self) -> None:
        """Every living query reads all there is into its buffers."""
        for query in self.living():
            spec, plan = query.spec, query.spec.work
            assert isinstance(plan, work.Statement)
            if not self._cluster.may(spec.writer, Operation.READ, STREAM):
                query.fault = "the stream refused"
                continue
            for number, partition in enumerate(self._cluster.topics[STREAM].partitions):
                if number not in query.position:
                    continue
                for at in sorted(at for at in partition.records if at >= query.position[number]):
                    key, headers = partition.records[at]
                    topic = self._topic_of(plan.result, number, at, self.kind_of(key))
                    if topic is not None:
                        found = (*headers, *_added(plan.result, spec.origin, topic, number, at))
                        query.buffers[topic].append((number, key, found))
                    query.position[number] = at + 1

    def kind_of(self, key: bytes) -> str:
        """What becomes of a record now."""
        return self.verdicts.get(key, key[:4].decode())

    def _topic_of(self, result: Result, number: int, at: int, kind: str) -> str | None:
        """Where a record is written to, as `spark_streams.sql.running.frame.written` has it."""
        topic = {"good": OUT, "dead": DEAD}.get(kind)
        again = result.again
        until, known = (one.get(number, 0) for one in (again.until, again.known))
        if topic is None:
            return None
        is_behind = at < (result.out_from if topic == OUT else result.dead_from).get(number, 0)
        if not known <= at < until:
            return None if is_behind else topic
        place = at - again.floor[number]
        if again.stands[number][place // 8] >> place % 8 & 1:
            return None
        return DEAD if is_behind else topic

    def land(self, topic: str, most: int | None = None) -> None:
        """What is buffered for a topic is written, as far as the rights go; by old queries, too."""
        for query in self.queries:
            buffer, writer = query.buffers[topic], query.spec.writer
            there = self._cluster.topics.get(topic)
            if there is None or not self._cluster.may(writer, Operation.WRITE, topic):
                query.fault = query.fault or ("the destination refused" if buffer else None)
                continue
            for number, key, headers in buffer[:most]:
                there.partitions[number].append(key, headers)
            del buffer[:most]

    def commit(self) -> None:
        """A batch ends: everything that was read is written."""
        self.land(OUT)
        self.land(DEAD)
        for query in self.living():
            query.progress = dict(query.position)

    def move(self) -> None:
        self.take()
        self.commit()


def _added(
    result: Result, origin: Origin, topic: str, number: int, at: int
) -> Iterator[tuple[str, bytes]]:
    """What a record's headers have more where it was written."""
    if topic == DEAD and at < (until := result.again.until.get(number, 0)):
        yield AGAIN, str(until).encode()
    yield HEADER, Provenance(origin, number, at).encode()


class Registry:
    """Schemas of topics; `versions` of a subject that is missing are none; `down` tells none."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, str]] = {f"{STREAM}-value": {7: json.dumps(CLICK)}}
        self.down = False

    def versions(self, subject: str) -> Mapping[int, str]:
        if self.down:
            raise InfrastructureError("the registry does not answer", retriable=True)
        return self.subjects.get(subject, {})

    def register_text(self, subject: str, text: str) -> int:
        self.subjects.setdefault(subject, {})[9] = text
        return 9

    def register_texts(self, subject: str, texts: Sequence[str]) -> None:
        for text in texts:
            self.register_text(subject, text)


class ControllerHarness:
    """A Leadership whose log is a list, over one statement."""

    epoch = 0

    def __init__(self, cluster: MemoryCluster) -> None:
        self.facts: list[Fact] = []
        self.ended = False
        known = Cluster("east", cluster.bootstrap_servers, "admin", "env:NONE", 0)
        domain = Domain("east", "", "team-east", "east", 0)
        application = Application("east.app", "", 0)
        self.image = Image(
            identity=Identity(
                clusters=Map({"east": known}),
                domains=Map({"east": domain}),
                applications=Map({"east.app": application}),
            )
        )
        self.add()

    @property
    def last_report(self) -> int:
        return self.image.offset

    @property
    def statement(self) -> Statement:
        return self.image.statements[NAME]

    def add(
        self,
        stream: str = STREAM,
        begin: Begin = Begin.EARLIEST,
        found: Mapping[str, str] | None = None,
        sql: str = "",
        **ends: str,
    ) -> None:
        """Add it; `ends` and `found` are the evidence on the stream and on the destination."""
        event = StatementAdded(
            meta=meta("add"),
            statement=NAME,
            sql=sql or f"SELECT ip FROM {stream}",
            stream=stream,
            destination=OUT,
            begin=begin,
        )
        at = self._next()
        after = statements.added(
            self.image.statements, event, "east", ends, found or {}, at, at * 1000
        )
        self.image = self.image._replace(statements=after, offset=at)

    def come_back(
        self, cluster: MemoryCluster, begin: Begin = Begin.EARLIEST, sql: str = ""
    ) -> Finding:
        """Add it once more, over what its real check finds there."""
        event = StatementAdded(
            meta=meta("add"), statement=NAME, sql="", stream=STREAM, destination=OUT
        )
        event = event.model_copy(update={"sql": sql or self.statement.sql})
        free = destination_free(event, cluster, self.statement, cluster, cluster)
        if not free.code:
            stream: dict[str, str] = {}
            if begin is Begin.LATEST:
                ends = cluster.bounds(STREAM, range(len(cluster.topics[STREAM].partitions)))
                stream |= {f"{END_OF}{number}": str(end) for number, (_, end) in ends.items()}
            self.add(begin=begin, found=free.evidence, sql=event.sql, **stream)
        return free

    def update(self, sql: str) -> None:
        """Another text for the same stream, in the place of the one that there is."""
        at = self._next()
        event = StatementUpdated(meta=meta(f"update-{at}"), statement=NAME, sql=sql, stream=STREAM)
        after = statements.updated(self.image.statements, event, at, at * 1000)
        self.image = self.image._replace(statements=after, offset=at)

    def direct(self, desired: Desired) -> None:
        at = self._next()
        event = StatementIntent(meta=meta(f"direct-{at}"), statement=NAME)
        after = statements.redirected(self.image.statements, event, desired, at, at * 1000)
        self.image = self.image._replace(statements=after, offset=at)

    def elect(self) -> None:
        """A governor starts: what was said before may have been carried out by another worker."""
        at = self._next()
        self.image = self.image._replace(epoch=at, offset=at)

    def quarantine(self, *, on: bool) -> None:
        cut = Map({"east": Quarantine("east", "stolen", "operator", 0)}) if on else Map()
        identity = replace(self.image.identity, quarantines=cut)
        self.image = self.image._replace(identity=identity, offset=self._next())

    def said(self, kind: type[Fact]) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def check(self) -> None:
        if self.ended:
            raise NotLeaderError("another governor has started")

    def report(self, fact: Fact) -> None:
        self.check()
        self.facts.append(fact)
        at = self._next()
        assert isinstance(fact, StatementFact)
        after = statements.reported(self.image.statements, fact, at, at * 1000)
        self.image = self.image._replace(statements=after, offset=at)

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Meta:
        return Meta(
            id=derived_id(cause, step, generation),
            time=now(),
            actor="mesh.controller",
            domain="mesh",
            correlation=correlation,
            causation=cause,
        )

    def _next(self) -> int:
        return self.image.offset + 1


class MemoryStatement:
    """One statement, its controller, and the whole world around it."""

    def __init__(self, partitions: int = 2) -> None:
        self.east = MemoryCluster("east")
        self.east.create_topic(STREAM, partitions, {})
        self.engine, self.registry = Engine(self.east), Registry()
        self.harness = ControllerHarness(self.east)
        self.time = 100.0
        self.lineage = LineageList()
        self.latest: Callable[[], Image] = lambda: self.harness.image
        self.controller = self.new_controller()

    def new_controller(self, most: int = MOST_PARTITIONS, **pace: float) -> StatementsController:
        return StatementsController(
            Reach(lambda *_: self.east, MemoryLogs({"east": self.east}), most_partitions=most),
            lambda _: self.engine,
            self.registry,
            self._latest,
            self.lineage,
            replace(QUICK, clock=lambda: self.time, **pace),
        )

    def _latest(self) -> Image:
        return self.latest()

    def reconcile(self) -> None:
        self.time += 1
        self.controller.reconcile(self.harness.image, self.harness)

    def settle(self, rounds: int = 5) -> None:
        """Let controller and engine do all they can."""
        for _ in range(rounds):
            self.reconcile()
            self.engine.move()

    def produce(self, *kinds: str) -> None:
        """Records of these kinds, in turn over the partitions."""
        partitions = self.east.topics[STREAM].partitions
        for kind in kinds:
            number = sum(one.end for one in partitions)
            partitions[number % len(partitions)].append(f"{kind}.{number}".encode())

    def wrong(self, *, complete: bool = True) -> list[str]:
        """How the topics differ from what has to be there (or from a beginning of it)."""
        stream, found = self.east.topics[STREAM], []
        origin = f"east/{stream.described.id}"
        for kind, topic in (("good", OUT), ("dead", DEAD)):
            if topic not in self.east.topics:
                continue
            for number, partition in enumerate(stream.partitions):
                wanted = [
                    (key, (*headers, (HEADER, f"{origin}/{number}/{at}".encode())))
                    for at, (key, headers) in sorted(partition.records.items())
                    if key.startswith(kind.encode())
                ]
                there = self.east.topics[topic].partitions[number].records
                got = [(key, _unmarked(headers)) for _, (key, headers) in sorted(there.items())]
                if got != (wanted if complete else wanted[: len(got)]):
                    found.append(f"{topic}/{number}: {got} is not {wanted}")
        return found

    def twice(self, *lost: bytes) -> list[str]:
        """Records that stand twice, or out of order in the result; and which of these nowhere."""
        found, every = [], set()
        for number in range(len(self.east.topics[STREAM].partitions)):
            out, dead = (self.keys(topic, number) for topic in (OUT, DEAD))
            keys = [*out, *dead]
            found += [f"{key!r} stands twice" for key in set(keys) if keys.count(key) > 1]
            if out != sorted(out, key=lambda key: int(key[5:])):
                found.append(f"{OUT}/{number}: {out} is out of order")
            every |= set(keys)
        return found + [f"{key!r} is lost" for key in lost if key not in every]

    def keys(self, topic: str, number: int = 0) -> list[bytes]:
        """Keys of the records of a partition, in their order."""
        if topic not in self.east.topics:
            return []
        return [
            key
            for _, (key, _) in sorted(self.east.topics[topic].partitions[number].records.items())
        ]


def _unmarked(headers: Headers) -> Headers:
    return tuple(one for one in headers if one[0] != AGAIN)
