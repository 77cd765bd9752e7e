"""The link beside MirrorMaker 2: latency at a steady rate, and how fast a backlog is copied.

The mesh's two engines and MirrorMaker 2 by itself, with exactly-once on and off, each copy a topic
of their own from one cluster to the other. Each round a side copies single records, then stands
still while a backlog is written, and copies that. The sides take turns at being first, and a round
of each in which its JVM gets warm does not count. At the end each copy is read: every record of
the source is there, in order.
"""

import statistics
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.control import Bench
from benchmarks.members import wait
from benchmarks.mirror_maker import SOURCE, MirrorMaker
from benchmarks.processes import cpu_s, service_pid
from benchmarks.report import spread, surroundings, tell
from local_platform import Endpoints, PlatformSettings
from local_platform.domain_servers import CONNECT, SPARK
from local_platform.services.spark import HEAP_MB
from mesh_events.intents import AccessGranted, AccessRequested, Engine, LinkPaused, LinkResumed
from mesh_events.kafka.connection import Connection
from projections.links import link_id
from spark_streams.spark import BATCH_BYTES

RATE_PER_S = 1000
SECONDS = 20
WARM_UP_S = 5
"""So long records are sent at the same rate before those that count: the first wait for the
producer's connection."""
VALUE_BYTES = 200
PARTITIONS = 4
_HEAD = struct.Struct(">dQ")
_PORTS = (190, 191)
"""Of the workers of MirrorMaker, above the ports of the platform."""


@dataclass
class Source:
    """A topic that is copied, and how many numbered records it has."""

    login: Connection
    topic: str
    sent: int = 0

    def produce(self, producer: Producer) -> None:
        """The next record, with its time and number."""
        value = _HEAD.pack(time.perf_counter(), self.sent).ljust(VALUE_BYTES, b"x")
        producer.produce(self.topic, value, partition=self.sent % PARTITIONS)
        self.sent += 1

    def last(self) -> dict[int, int]:
        """Partition -> number of its last record."""
        return {one % PARTITIONS: one for one in range(max(0, self.sent - PARTITIONS), self.sent)}


class Side(Protocol):
    """What copies a topic."""

    source: Source
    copy: str

    @property
    def settings(self) -> Mapping[str, object]:
        """What it has otherwise than by default."""
        ...

    def pause(self) -> None:
        """Pause; returns once it is paused."""
        ...

    def resume(self) -> None:
        """Resume; returns at once."""
        ...

    def cpu_s(self) -> float:
        """CPU time that its process has taken."""
        ...


@dataclass(frozen=True)
class Round:
    """Seconds of single records, and a backlog: records/s, and microseconds of CPU time of each.

    Attributes:
        late: of each record, from producing to reading.
        rate: behind the first record that was copied.
        seconds: from `resume` to the last record.
    """

    late: list[float]
    rate: float
    seconds: float
    cpu_us: float


def run(
    settings: PlatformSettings, endpoints: Endpoints, home: Path, backlog: int, rounds: int
) -> None:
    """All sides in turn, `rounds` times."""
    around = surroundings() | {"warm_up_s": WARM_UP_S, "warm_up_rounds": 1, "rounds": rounds}
    bench = Bench(endpoints, home, partitions=PARTITIONS)
    there = bench.clusters["west"].login
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        sides: dict[str, Side] = {
            "SPARK": _Link(bench, home, bench.product, Engine.SPARK),
            "MIRRORMAKER": _Link(bench, home, f"{bench.product}2", Engine.MIRRORMAKER),
        }
        for port, exactly_once in zip(_PORTS, (False, True), strict=True):
            name = "MirrorMaker 2" + (", exactly once" if exactly_once else "")
            sides[name] = _Peer.started(
                bench, settings, Path(folder), settings.port_base + port, running, exactly_once
            )
        here = sides["SPARK"].source
        floors = [took for _ in range(rounds) for took in _latency(here, here.login, here.topic)]
        found = _rounds(sides, there, backlog, rounds)
        for side in sides.values():
            _check(side, there)
    figures: dict[str, dict[str, Any]] = {
        f"floor: {RATE_PER_S} records/s, read at the source": spread(floors)
    }
    for name, turns in found.items():
        late = spread([took for one in turns for took in one.late])
        figures[f"{name}: {RATE_PER_S} records/s, read at the copy"] = late
        figures[f"{name}: backlog of {backlog} records"] = _backlog(turns, backlog)
    around["settings"] = {name: dict(side.settings) for name, side in sides.items()}
    tell("link", around, figures)


def _rounds(
    sides: Mapping[str, Side], there: Connection, backlog: int, rounds: int
) -> dict[str, list[Round]]:
    found: dict[str, list[Round]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(rounds + 1):
        for name in names:
            done = _round(sides[name], there, backlog)
            if number:
                found[name].append(done)
        # whoever was first is last
        names.append(names.pop(0))
    return found


def _round(side: Side, there: Connection, backlog: int) -> Round:
    side.resume()
    source = side.source
    _wait_for_last(side, there)
    late = _latency(source, there, side.copy)
    side.pause()
    producer = Producer(source.login.config(linger_ms=5, queue_buffering_max_messages=1_000_000))
    for number in range(backlog):
        source.produce(producer)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush(120)
    began, used = time.perf_counter(), side.cpu_s()
    side.resume()
    first, since, end = _wait_for_last(side, there)
    used = side.cpu_s() - used
    side.pause()
    return Round(late, (backlog - first) / (end - since), end - began, used / backlog * 1_000_000)


def _backlog(turns: list[Round], backlog: int) -> dict[str, Any]:
    seconds = statistics.median(one.seconds for one in turns)
    return {
        "seconds": round(seconds, 1),
        "from resume, records/s": round(backlog / seconds),
        "records/s": round(statistics.median(one.rate for one in turns)),
        "each": ", ".join(str(round(one.rate)) for one in turns),
        "cpu_us": round(statistics.median(one.cpu_us for one in turns), 1),
    }


def _latency(source: Source, place: Connection, topic: str) -> list[float]:
    """Seconds from producing to reading, at `place`, after the warm-up."""
    consumer = _consumer(place)
    consumer.assign(
        [TopicPartition(topic, number, end) for number, end in enumerate(_ends(consumer, topic))]
    )
    consumer.poll(0.5)
    producer = Producer(source.login.config(linger_ms=0, enable_idempotence=True))
    took: list[float] = []
    start = time.perf_counter()
    sent, seconds = 0, WARM_UP_S + SECONDS
    while len(took) < RATE_PER_S * seconds and time.perf_counter() - start < seconds + 30:
        due = min(RATE_PER_S * seconds, round((time.perf_counter() - start) * RATE_PER_S))
        for _ in range(due - sent):
            source.produce(producer)
        sent = due
        producer.poll(0)
        values = [m.value() for m in consumer.consume(500, 0.001) if m.error() is None]
        now = time.perf_counter()
        took.extend(now - _HEAD.unpack_from(value)[0] for value in values)
    consumer.close()
    return took[RATE_PER_S * WARM_UP_S :]


def _consumer(place: Connection, *, at_ends: bool = False) -> Consumer:
    return Consumer(
        place.config(
            group_id="admin.figures",
            fetch_wait_max_ms=50,
            isolation_level="read_committed",
            enable_partition_eof=at_ends,
        )
    )


def _ends(consumer: Consumer, topic: str) -> list[int]:
    places = (TopicPartition(topic, number) for number in range(PARTITIONS))
    return [consumer.get_watermark_offsets(place, timeout=10)[1] for place in places]


def _wait_for_last(side: Side, there: Connection) -> tuple[int, float, float]:
    """Wait until the copy has the source's last records.

    Returns how many were new as the first ones were seen, when that was, and when all were there.
    """
    consumer, wanted = _consumer(there, at_ends=True), side.source.last()
    before = sum(_ends(consumer, side.copy))
    first, since = 0, time.perf_counter()
    deadline = since + 300
    while time.perf_counter() < deadline:
        count = sum(_ends(consumer, side.copy)) - before
        if count and not first:
            first, since = count, time.perf_counter()
        if _last(consumer, side.copy) == wanted:
            end = time.perf_counter()
            consumer.close()
            return first, since, end
        time.sleep(0.05)
    raise SystemExit(f"{side.copy} is not complete after 300 s")


def _last(consumer: Consumer, topic: str) -> dict[int, int]:
    """Partition -> number of the last record that is committed; {} for none that has one."""
    found: dict[int, int] = {}
    for number, end in enumerate(_ends(consumer, topic)):
        consumer.assign([TopicPartition(topic, number, max(0, end - 20))])
        while (message := consumer.poll(5)) is not None and message.error() is None:
            if len(message.value()) == VALUE_BYTES:
                found[number] = _HEAD.unpack_from(message.value())[1]
    return found


def _check(side: Side, there: Connection) -> None:
    """Hold a copy against its source; ends the benchmark where it lacks or changes a record."""
    seen, doubled = bytearray(side.source.sent), 0
    last = [-1] * PARTITIONS
    for message in _all(_consumer(there), side.copy):
        if len(message.value()) != VALUE_BYTES:
            continue
        number, partition = _HEAD.unpack_from(message.value())[1], message.partition()
        if number % PARTITIONS != partition or number < last[partition]:
            raise SystemExit(f"{side.copy}: record {number} is out of order")
        doubled += seen[number]
        seen[number], last[partition] = 1, number
    if missing := seen.count(0):
        raise SystemExit(f"{side.copy}: {missing} records are missing")
    if doubled:
        raise SystemExit(f"{side.copy}: {doubled} records came twice")


def _all(consumer: Consumer, topic: str) -> Iterator[Any]:
    places = [TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
    consumer.assign(places)
    while found := consumer.consume(10_000, 5):
        yield from found
    consumer.close()


@dataclass
class _Link:
    """A link of the mesh, by one of its engines."""

    bench: Bench
    home: Path
    product: str
    engine: Engine
    settings: Mapping[str, object] = field(init=False)

    def __post_init__(self) -> None:
        bench, owner = self.bench, self.bench.owner
        if self.product != bench.product:
            bench.publish(owner, self.product, PARTITIONS)
        self.source = Source(bench.clusters[SOURCE].login, self.product)
        self.copy = self.product
        asked = AccessRequested(
            meta=bench.there.meta(),
            product=self.product,
            application=bench.apps["over the link"],
            reason="figures",
        )
        bench.submit(bench.there, asked)
        about = {"product": self.product, "request": asked.meta.id}
        bench.submit(owner, AccessGranted(meta=owner.meta(), **about))
        self._wait_for("ACTIVE")
        if self.engine is Engine.SPARK:
            self.settings = {"batch.size": BATCH_BYTES, "-Xmx": f"{HEAP_MB}m"}
        else:
            self.settings = {"engine": "as the mesh configures MirrorMaker 2"}
            self.resume()
            self._wait_for("ACTIVE")

    def pause(self) -> None:
        owner = self.bench.owner
        meta = owner.meta()
        self.bench.submit(owner, LinkPaused(meta=meta, product=self.product, cluster="west"))
        self._wait_for("PAUSED")

    def resume(self) -> None:
        if self._state() == "ACTIVE" and self._found().engine is self.engine:
            return
        owner = self.bench.owner
        about = {"product": self.product, "cluster": "west"}
        self.bench.submit(owner, LinkResumed(meta=owner.meta(), **about, engine=self.engine))

    def cpu_s(self) -> float:
        kind = SPARK if self.engine is Engine.SPARK else CONNECT
        return cpu_s(service_pid(self.home, f"{kind.prefix}own{self.bench.tag}"))

    def _wait_for(self, state: str) -> None:
        wait(lambda: self._state() == state, 120)

    def _state(self) -> str | None:
        found = self._found()
        return str(found.state) if found is not None else None

    def _found(self) -> Any:
        return self.bench.image().links.get(link_id(self.product, "west"))


@dataclass
class _Peer:
    """MirrorMaker 2 by itself."""

    source: Source
    copy: str
    worker: MirrorMaker

    @classmethod
    def started(
        cls,
        bench: Bench,
        settings: PlatformSettings,
        folder: Path,
        port: int,
        running: ExitStack,
        exactly_once: bool,
    ) -> "_Peer":
        topic = f"bench{bench.tag}.{'eos' if exactly_once else 'alos'}"
        here, there = (bench.clusters[name] for name in ("east", "west"))
        here.create_topic(topic, PARTITIONS, {})
        there.create_topic(f"{SOURCE}.{topic}", PARTITIONS, {})
        worker = running.enter_context(
            MirrorMaker(
                settings,
                folder / f"bench{bench.tag}-{port}",
                port,
                here.login,
                there.login,
                exactly_once=exactly_once,
            )
        )
        worker.copy(topic)
        return cls(Source(here.login, topic), f"{SOURCE}.{topic}", worker)

    @property
    def settings(self) -> Mapping[str, object]:
        return self.worker.settings

    def pause(self) -> None:
        self.worker.pause()

    def resume(self) -> None:
        self.worker.resume()

    def cpu_s(self) -> float:
        return cpu_s(self.worker.pid)
