"""CLICK_USERS: clicks joined with users, by a statement and by Kafka Streams, in turn.

All read the same topics, with rows of users changing meanwhile, and write a topic of their own.
What came out is held against what was written: each click once, in its order, with a name that its
user had, never an older one than the click before got. Each side has a round that does not count,
in the JVM that the others run in; the sides take turns at being first. The rate is that behind the
first record of the result: neither a statement's way over the log nor the build of either's table
is in it. The seconds are all of that, from the command to the last record. The CPU time is that of
the JVM which joins, while the rate is measured; brokers have theirs on the same cores.
"""

import io
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import fastavro
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.clicks import CLICK, OUT, PARTITIONS, USER, Ground, bounds
from benchmarks.control import Bench
from benchmarks.members import wait
from benchmarks.processes import cpu_s, service_pid
from benchmarks.report import spread, surroundings, tell
from benchmarks.streams.peer import Peer
from local_platform import Endpoints, PlatformSettings
from local_platform.domain_servers import SPARK
from local_platform.services.spark import HEAP_MB
from mesh_events.statements import StatementAdded, StatementDeleted
from projections.statements import Statement
from spark_streams.spark import BATCH_BYTES

RATE_PER_S = 1000
SECONDS = 20
STATEMENT, STREAMS, EXACTLY = "statement", "Kafka Streams", "Kafka Streams, exactly once"
SQL = """
SELECT c.number, c.ip, c.userid, c.request, c.status, c.time, u.username, u.level
FROM clicks c JOIN users u ON c.userid = u.userid"""


class Side(Protocol):
    """What joins the clicks of a ground with its users."""

    ground: Ground
    settings: Mapping[str, object]
    """What it has otherwise than by default."""

    def topic(self, number: int) -> str:
        """Where the rows of a round go."""
        ...

    def start(self, number: int) -> None:
        """Join from the first click on."""
        ...

    def stop(self, number: int) -> None:
        """End what `start` has begun, also where it failed."""
        ...

    def cpu_s(self) -> float:
        """CPU time that its process has taken."""
        ...


def run(
    settings: PlatformSettings, endpoints: Endpoints, clicks: int, users: int, rounds: int
) -> None:
    """Each in turn, `rounds` times: a backlog is drained, then clicks come at a steady rate."""
    around = surroundings()
    ground = Ground.filled(Bench(endpoints, settings.home), endpoints, clicks, users)
    with tempfile.TemporaryDirectory() as folder, Peer(settings, Path(folder), HEAP_MB) as peer:
        sides: dict[str, Side] = {
            STATEMENT: _Statements(ground, settings.home),
            STREAMS: _Streams(ground, peer, Path(folder), "alos", _AT_LEAST_ONCE),
            EXACTLY: _Streams(ground, peer, Path(folder), "eos", _EXACTLY_ONCE),
        }
        found = _rounds(sides, rounds)
    figures = {name: _figures(turns) for name, turns in found.items()}
    ours = figures[STATEMENT]
    for name in (STREAMS, EXACTLY):
        figures[f"ratio, statement to {name}"] = _ratio(ours, figures[name])
    around |= {"clicks": clicks, "users": users, "partitions": PARTITIONS, "rounds": rounds}
    around["warm_up_rounds"] = 1
    around["settings"] = {name: dict(side.settings) for name, side in sides.items()}
    tell("click_users", around, figures)


def _rounds(sides: "Mapping[str, Side]", rounds: int) -> "dict[str, list[Round]]":
    """The rounds of each side; the first one of each, in which its JVM gets warm, is left out."""
    found: dict[str, list[Round]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(rounds + 1):
        for name in names:
            done = _round(sides[name], number)
            if number:
                found[name].append(done)
        # whoever was first is last
        names.append(names.pop(0))
    return found


def run_sizes(
    settings: PlatformSettings, endpoints: Endpoints, clicks: int, sizes: list[int], rounds: int
) -> None:
    """The same statement over tables of other sizes, in turn: what a row more of a table costs."""
    around = surroundings()
    grounds = {
        users: Ground.filled(Bench(endpoints, settings.home), endpoints, clicks, users)
        for users in sizes
    }
    sides: dict[str, Side] = {
        f"{users} users": _Statements(ground, settings.home) for users, ground in grounds.items()
    }
    figures = {name: _figures(turns) for name, turns in _rounds(sides, rounds).items()}
    least, most = (figures[f"{users} users"] for users in (min(sizes), max(sizes)))
    figures["ratio, the largest to the smallest"] = _ratio(most, least)
    around |= {"clicks": clicks, "partitions": PARTITIONS, "rounds": rounds}
    tell("join_size", around, figures)


def _figures(turns: list["Round"]) -> dict[str, Any]:
    return {
        "drain, records/s": round(statistics.median(one.rate for one in turns)),
        "each": ", ".join(str(round(one.rate)) for one in turns),
        "seconds": ", ".join(str(round(one.seconds, 1)) for one in turns),
        "cpu_us": round(statistics.median(one.cpu_us for one in turns), 1),
        **spread([took for one in turns for took in one.late]),
    }


def _ratio(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    names = ("drain, records/s", "cpu_us", "p50_ms", "p99_ms")
    return {name: round(one[name] / other[name], 2) for name in names}


@dataclass(frozen=True)
class Round:
    """One drain and one steady load.

    Attributes:
        rate: records/s behind the first.
        seconds: in all.
        cpu_us: CPU time of the process for each of these records, microseconds.
        late: of each click, seconds.
    """

    rate: float
    seconds: float
    cpu_us: float
    late: list[float]


def _round(side: Side, number: int) -> Round:
    ground, topic = side.ground, side.topic(number)
    try:
        with ground.changing():
            rate, seconds, cpu_us = _drain(side, number)
        took = _latency(ground, topic)
    finally:
        side.stop(number)
    return _checked(ground, topic, Round(rate, seconds, cpu_us, took))


@dataclass
class _Statements:
    """A statement of each round, on the domain's Spark server."""

    ground: Ground
    home: Path
    settings: Mapping[str, object] = field(
        default_factory=lambda: {
            "trigger": "real time",
            "batch.size": BATCH_BYTES,
            "max.in.flight.requests.per.connection": 1,
            "-Xmx": f"{HEAP_MB}m",
            "delivery": "exactly once, by the tail of the result",
        }
    )

    def topic(self, number: int) -> str:
        return f"{self.ground.domain}.out{number}"

    def start(self, number: int) -> None:
        _statement(self.ground, number)

    def stop(self, number: int) -> None:
        _drop(self.ground, number)

    def cpu_s(self) -> float:
        return cpu_s(service_pid(self.home, f"{SPARK.prefix}{self.ground.domain}"))


@dataclass
class _Streams:
    """An application of Kafka Streams of each round, all in one JVM."""

    ground: Ground
    peer: Peer
    folder: Path
    name: str
    settings: Mapping[str, object]

    def topic(self, number: int) -> str:
        return f"{self.ground.domain}.{self.name}{number}"

    def start(self, number: int) -> None:
        topic = self.topic(number)
        self.ground.east.create_topic(topic, PARTITIONS, {})
        told = {name: str(value) for name, value in self.settings.items()}
        self.peer.start({**_settings(self.ground, self.folder, topic), **told})

    def stop(self, number: int) -> None:  # noqa: ARG002 - the statements' need it
        self.peer.stop()

    def cpu_s(self) -> float:
        return cpu_s(self.peer.pid)


_TUNED: Mapping[str, object] = {
    "num.stream.threads": PARTITIONS,
    # a table that is only looked up gains nothing by the cache of its updates
    "statestore.cache.max.bytes": 0,
    # the topic of the users is the table's own changelog, and not written a second time
    "topology.optimization": "all",
    # as the statement's producer
    "producer.batch.size": BATCH_BYTES,
    # the default of Kafka's producer; Streams would wait for 100 ms
    "producer.linger.ms": 5,
}
_AT_LEAST_ONCE = {**_TUNED, "processing.guarantee": "at_least_once"}
_EXACTLY_ONCE = {**_TUNED, "processing.guarantee": "exactly_once_v2"}


def _checked(ground: Ground, topic: str, done: Round) -> Round:
    ground.check(topic)
    ground.east.delete_topic(topic)
    return done


def _drain(side: Side, number: int) -> tuple[float, float, float]:
    """Records/s, seconds in all, and microseconds of CPU time for a record."""
    ground, topic = side.ground, side.topic(number)
    wanted = ground.written
    began = time.perf_counter()
    thread = threading.Thread(target=side.start, args=(number,))
    thread.start()
    first, since, count, used = 0, began, 0, 0.0
    consumer = Consumer(ground.east.login.config(group_id="admin.figures"))
    while count < wanted:
        time.sleep(0.1)
        if time.perf_counter() - began > 300:
            raise SystemExit(f"{topic} stands at {count} of {wanted}")
        if not count and ground.east.topic(topic) is None:
            continue
        try:
            count = sum(end for _, end in bounds(consumer, topic))
        except KafkaException:
            # a topic that was just created has no leader yet
            if count:
                raise
            continue
        if count and not first:
            first, since, used = count, time.perf_counter(), side.cpu_s()
    now = time.perf_counter()
    used = side.cpu_s() - used
    consumer.close()
    thread.join()
    left = wanted - first
    return left / (now - since), now - began, used / left * 1_000_000


def _latency(ground: Ground, topic: str) -> list[float]:
    """Seconds from producing a click to reading what came of it."""
    login = ground.east.login
    consumer = Consumer(login.config(group_id="admin.figures", fetch_wait_max_ms=50))
    ends = [end for _, end in bounds(consumer, topic)]
    consumer.assign([TopicPartition(topic, number, end) for number, end in enumerate(ends)])
    consumer.poll(0.5)
    reader, took = fastavro.parse_schema(OUT), list[float]()
    wanted, sent, start = RATE_PER_S * SECONDS, 0, time.perf_counter()
    with ground.changing():
        while len(took) < wanted and time.perf_counter() - start < SECONDS + 30:
            due = min(wanted, round((time.perf_counter() - start) * RATE_PER_S))
            for _ in range(due - sent):
                ground.click(time.perf_counter())
            sent = due
            ground.producer.flush(0)
            for message in consumer.consume(500, 0.001):
                now = time.perf_counter()
                row: Any = fastavro.schemaless_reader(io.BytesIO(message.value()[5:]), reader)
                took.append(now - row["time"] / 1_000_000)
    consumer.close()
    return took


def _statement(ground: Ground, number: int) -> int:
    bench, name = ground.bench, f"{ground.domain}.join{number}"
    bench.submit(
        bench.owner,
        StatementAdded(
            meta=bench.owner.meta(),
            statement=name,
            sql=SQL,
            stream=ground.clicks,
            tables=[ground.table],
            names={"clicks": ground.clicks, "users": ground.table},
            destination=f"{ground.domain}.out{number}",
        ),
    )
    wait(lambda: _found(ground, name).is_active, 120)
    return number


def _drop(ground: Ground, number: int) -> None:
    bench, name = ground.bench, f"{ground.domain}.join{number}"
    bench.submit(bench.owner, StatementDeleted(meta=bench.owner.meta(), statement=name))
    wait(lambda: _found(ground, name).is_over, 60)


def _found(ground: Ground, name: str) -> Statement:
    return ground.bench.image().statements[name]


def _settings(ground: Ground, folder: Path, topic: str) -> dict[str, str]:
    return {
        **ground.east.login.java(),
        "application.id": topic.replace(".", "-"),
        "state.dir": str(folder / "state"),
        "auto.offset.reset": "earliest",
        "replication.factor": "1",
        "bench.clicks": ground.clicks,
        "bench.users": ground.table,
        "bench.out": topic,
        "bench.id": str(ground.out_id),
        "bench.schema.click": json.dumps(CLICK),
        "bench.schema.user": json.dumps(USER),
        "bench.schema.out": json.dumps(OUT),
    }
