"""Clicks and users: what is written for a benchmark, and whether what came of it is right."""

import io
import itertools
import json
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from benchmarks.control import Bench
from local_platform import Endpoints
from mesh_events.kafka.connection import Connection
from mesh_events.references import resolve

PARTITIONS = 2
"""One for each core: Streams gets as many threads, a statement as many tasks."""
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

    @classmethod
    def filled(cls, bench: Bench, endpoints: Endpoints, clicks: int, users: int) -> "Ground":
        """A row of each user, and clicks behind them."""
        ground = cls(bench, endpoints, users)
        for userid in range(users):
            ground.know(userid)
        # Streams takes records by their times: a row has to be older than its first click
        ground.producer.flush(300)
        for _ in range(clicks):
            ground.click()
        ground.producer.flush(300)
        return ground

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
        newest: dict[int, int] = {}
        seen = bytearray(self.written)
        for message in read_all(self.east.login, topic):
            row: Any = fastavro.schemaless_reader(io.BytesIO(message.value()[5:]), reader)
            number, userid = row["number"], row["userid"]
            stem, _, version = row["username"].rpartition(" v")
            wrong = (
                seen[number]
                or userid != (number * 7919) % self.users
                or stem != f"user {userid}"
                or not newest.get(userid, 0) <= int(version) <= self.versions[userid]
                or last.get(userid, -1) >= number
            )
            if wrong:
                raise SystemExit(f"{topic}: click {number} came out wrong: {row}")
            seen[number], last[userid], newest[userid] = 1, number, int(version)
        if missing := seen.count(0):
            raise SystemExit(f"{topic}: {missing} clicks did not come out")


def bounds(consumer: Consumer, topic: str) -> list[tuple[int, int]]:
    """Of each partition in turn, its first offset and its end."""
    return [
        consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)
        for number in range(PARTITIONS)
    ]


def read_all(login: Connection, topic: str) -> Iterator[Any]:
    """Every record of a topic, as it is now."""
    consumer = Consumer(login.config(group_id="admin.figures"))
    ends = bounds(consumer, topic)
    consumer.assign([TopicPartition(topic, number, low) for number, (low, _) in enumerate(ends)])
    left = sum(high - low for low, high in ends)
    while left > 0:
        found = consumer.consume(10_000, 5)
        if not found:
            break
        left -= len(found)
        yield from found
    consumer.close()
