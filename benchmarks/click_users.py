"""CLICK_USERS: clicks joined with users, by a statement and by Kafka Streams, in turn.

Both read the same topics, with rows of users changing meanwhile, and write a topic of their own.
What came out is held against what was written: each click once, in its order, with a name that its
user had. The rate is that behind the first record of the result: neither the start of Streams'
JVM, nor a statement's way over the log, nor the build of either's table is in it. The seconds are
all of that, from the command to the last record.
"""

import io
import itertools
import json
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from benchmarks.control import Bench, wait
from benchmarks.report import spread, surroundings, tell
from benchmarks.streams.peer import Peer
from local_platform import Endpoints, PlatformSettings
from mesh_events.kafka import Connection
from mesh_events.references import resolve
from mesh_events.statements import StatementAdded, StatementDropped
from projections.statements import Statement

PARTITIONS = 2
"""One for each core: Streams gets as many threads, a statement as many tasks."""
RATE_PER_S = 1000
SECONDS = 20
CHANGES_PER_S = 200
KEY = {"type": "record", "name": "Key", "namespace": "bench",
       "fields": [{"name": "userid", "type": "int"}]}  # fmt: skip
_FIELDS = [
    {"name": "number", "type": "long"}, {"name": "ip", "type": "string"},
    {"name": "userid", "type": "int"}, {"name": "request", "type": "string"},
    {"name": "status", "type": "int"}, {"name": "time", "type": "long"}]  # fmt: skip
CLICK = {"type": "record", "name": "Click", "namespace": "bench", "fields": _FIELDS}
USER = {"type": "record", "name": "User", "namespace": "bench", "fields": [
    {"name": "userid", "type": "int"}, {"name": "username", "type": "string"},
    {"name": "level", "type": "string"}]}  # fmt: skip
OUT = {"type": "record", "name": "Out", "namespace": "bench", "fields": [
    *({"name": one["name"], "type": ["null", one["type"]]} for one in _FIELDS),
    *({"name": name, "type": ["null", "string"]} for name in ("username", "level"))]}  # fmt: skip
SQL = """
SELECT c.number, c.ip, c.userid, c.request, c.status, c.time, u.username, u.level
FROM clicks c JOIN users u ON c.userid = u.userid"""


@dataclass
class Ground:
    """The topics, and what was written into them."""

    bench: Bench
    endpoints: Endpoints
    users: int
    versions: dict[int, int] = field(default_factory=dict)
    written: int = 0

    def __post_init__(self) -> None:
        self.domain = self.bench.product.partition(".")[0]
        self.east = self.bench.clusters["east"]
        self.clicks, self.table = f"{self.domain}.clicks", f"{self.domain}.users"
        self.east.create_topic(self.clicks, PARTITIONS, {})
        self.east.create_topic(self.table, PARTITIONS, {"cleanup.policy": "compact"})
        user = f"{self.endpoints.registry_user}:{resolve(self.endpoints.registry_password)}"
        registry = SchemaRegistryClient(
            {"url": self.endpoints.registry_url, "basic.auth.user.info": user, "timeout": 10}
        )

        def register(subject: str, schema: Any) -> int:
            return int(registry.register_schema(subject, Schema(json.dumps(schema), "AVRO")))

        self.key_id = register(f"{self.clicks}-key", KEY)
        register(f"{self.table}-key", KEY)
        self.click_id = register(f"{self.clicks}-value", CLICK)
        self.user_id = register(f"{self.table}-value", USER)
        self.out_id = register(f"{self.domain}.peer-value", OUT)
        self._parsed = {id(one): fastavro.parse_schema(one) for one in (KEY, CLICK, USER)}
        config = self.east.login.config(
            # Java's own partitioner, since both topics have to agree
            partitioner="murmur2_random",
            linger_ms=5,
            queue_buffering_max_messages=500_000,
        )
        self.producer = Producer(config)
        self.keys = [self._framed(self.key_id, KEY, {"userid": one}) for one in range(self.users)]

    def _framed(self, number: int, schema: Any, value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._parsed[id(schema)], value)
        return b"\0" + struct.pack(">I", number) + out.getvalue()

    def know(self, userid: int) -> None:
        """The next version of a user."""
        self.versions[userid] = version = self.versions.get(userid, -1) + 1
        row = {"userid": userid, "username": f"user {userid} v{version}", "level": "gold"}
        self._put(self.table, userid, self._framed(self.user_id, USER, row))

    def click(self, sent: float = 0.0) -> None:
        """The next click; a user's clicks come in turn."""
        number, userid = self.written, (self.written * 7919) % self.users
        value = {
            "number": number, "ip": "10.0.0.1", "userid": userid, "status": 200,
            "request": "GET /site/user_status.html HTTP/1.1", "time": int(sent * 1_000_000),
        }  # fmt: skip
        self.written += 1
        self._put(self.clicks, userid, self._framed(self.click_id, CLICK, value))

    def _put(self, topic: str, userid: int, value: bytes) -> None:
        while True:
            try:
                self.producer.produce(topic, value, self.keys[userid])
            except BufferError:
                self.producer.poll(0.1)
            else:
                return

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Rows change at a steady rate meanwhile."""
        over = threading.Event()

        def run() -> None:
            start = time.perf_counter()
            for number in itertools.count():
                if over.wait(max(0.0, start + number / CHANGES_PER_S - time.perf_counter())):
                    return
                self.know(number * 31 % self.users)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.producer.flush(60)

    def check(self, topic: str) -> None:
        """Hold a result against what was written; ends the benchmark where it is wrong."""
        reader = fastavro.parse_schema(OUT)
        last: dict[int, int] = {}
        seen = bytearray(self.written)
        for message in read_all(self.east.login, topic):
            row: Any = fastavro.schemaless_reader(io.BytesIO(message.value()[5:]), reader)
            number, userid = row["number"], row["userid"]
            stem, _, version = row["username"].rpartition(" v")
            wrong = (
                seen[number]
                or userid != (number * 7919) % self.users
                or stem != f"user {userid}"
                or not 0 <= int(version) <= self.versions[userid]
                or last.get(userid, -1) >= number
            )
            if wrong:
                raise SystemExit(f"{topic}: click {number} came out wrong: {row}")
            seen[number], last[userid] = 1, number
        if missing := seen.count(0):
            raise SystemExit(f"{topic}: {missing} clicks did not come out")


def read_all(login: Connection, topic: str) -> Iterator[Any]:
    """Every record of a topic, as it is now."""
    consumer = Consumer(login.config(group_id="admin.figures"))
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)
        for number in range(PARTITIONS)
    ]
    consumer.assign([TopicPartition(topic, number, low) for number, (low, _) in enumerate(ends)])
    left = sum(high - low for low, high in ends)
    while left > 0:
        found = consumer.consume(10_000, 5)
        if not found:
            break
        left -= len(found)
        yield from found
    consumer.close()


def end_of(consumer: Consumer, topic: str) -> int:
    """How many records a topic has had."""
    found: int = sum(
        consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1]
        for number in range(PARTITIONS)
    )
    return found


def run(
    settings: PlatformSettings, endpoints: Endpoints, clicks: int, users: int, rounds: int
) -> None:
    """Each in turn, `rounds` times: a backlog is drained, then clicks come at a steady rate."""
    around = surroundings()
    ground = Ground(Bench(endpoints, settings.home), endpoints, users)
    for userid in range(users):
        ground.know(userid)
    for _ in range(clicks):
        ground.click()
    ground.producer.flush(300)
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(settings, Path(folder))
        found: dict[str, list[Round]] = {"statement": [], "Kafka Streams": []}
        warm = _statement(ground, 0)
        _drop(ground, warm)
        for number in range(1, rounds + 1):
            for name, turns in found.items():
                turns.append(_round(ground, peer, Path(folder), name, number))
    figures: dict[str, dict[str, Any]] = {}
    for name, turns in found.items():
        figures[name] = {
            "drain, records/s": round(sum(one.rate for one in turns) / len(turns)),
            "each": ", ".join(str(round(one.rate)) for one in turns),
            "seconds": ", ".join(str(round(one.seconds, 1)) for one in turns),
            **spread([took for one in turns for took in one.late]),
        }
    ours, theirs = (figures[name] for name in ("statement", "Kafka Streams"))
    figures["ratio, statement to Streams"] = {
        "drain, records/s": round(ours["drain, records/s"] / theirs["drain, records/s"], 2),
        "p50_ms": round(ours["p50_ms"] / theirs["p50_ms"], 2),
        "p99_ms": round(ours["p99_ms"] / theirs["p99_ms"], 2),
    }
    around |= {"clicks": clicks, "users": users, "partitions": PARTITIONS, "rounds": rounds}
    tell("click_users", around, figures)


@dataclass(frozen=True)
class Round:
    """One drain and one steady load: records/s behind the first, s in all, s of each click."""

    rate: float
    seconds: float
    late: list[float]


def _round(ground: Ground, peer: Peer, folder: Path, name: str, number: int) -> Round:
    if name == "statement":
        topic = f"{ground.domain}.out{number}"
        with ground.changing():
            rate, seconds = _drain(ground, topic, lambda: _statement(ground, number))
        took = _latency(ground, topic)
        _drop(ground, number)
    else:
        topic = f"{ground.domain}.peer{number}"
        ground.east.create_topic(topic, PARTITIONS, {})
        told = _settings(ground, folder, topic)
        running: list[subprocess.Popen[bytes]] = []
        with ground.changing():
            rate, seconds = _drain(ground, topic, lambda: running.append(peer.start(told)))
        took = _latency(ground, topic)
        running[0].terminate()
        running[0].wait(60)
    ground.check(topic)
    ground.east.delete_topic(topic)
    return Round(rate, seconds, took)


def _drain(ground: Ground, topic: str, start: Any) -> tuple[float, float]:
    wanted = ground.written
    began = time.perf_counter()
    thread = threading.Thread(target=start)
    thread.start()
    first, since, count = 0, began, 0
    consumer = Consumer(ground.east.login.config(group_id="admin.figures"))
    while count < wanted:
        time.sleep(0.1)
        if time.perf_counter() - began > 300:
            raise SystemExit(f"{topic} stands at {count} of {wanted}")
        if not count and ground.east.topic(topic) is None:
            continue
        count = end_of(consumer, topic)
        if count and not first:
            first, since = count, time.perf_counter()
    now = time.perf_counter()
    consumer.close()
    thread.join()
    return (wanted - first) / (now - since), now - began


def _latency(ground: Ground, topic: str) -> list[float]:
    """Seconds from producing a click to reading what came of it."""
    login = ground.east.login
    consumer = Consumer(login.config(group_id="admin.figures", fetch_wait_max_ms=50))
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1]
        for number in range(PARTITIONS)
    ]
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
    bench.say(
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
    bench.say(bench.owner, StatementDropped(meta=bench.owner.meta(), statement=name))
    wait(lambda: _found(ground, name).is_over, 60)


def _found(ground: Ground, name: str) -> Statement:
    return ground.bench.image().statements[name]


def _settings(ground: Ground, folder: Path, topic: str) -> dict[str, str]:
    return {
        **ground.east.login.java(),
        "application.id": topic.replace(".", "-"),
        "state.dir": str(folder / "state"),
        "num.stream.threads": str(PARTITIONS),
        "auto.offset.reset": "earliest",
        "replication.factor": "1",
        # Streams would wait for 100 ms by default; this is what every other producer here does
        "producer.linger.ms": "5",
        "bench.clicks": ground.clicks,
        "bench.users": ground.table,
        "bench.out": topic,
        "bench.id": str(ground.out_id),
        "bench.schema.click": json.dumps(CLICK),
        "bench.schema.user": json.dumps(USER),
        "bench.schema.out": json.dumps(OUT),
    }
