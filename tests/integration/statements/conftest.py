"""A domain with a stream and a table, whose statements run on its own Spark Connect server."""

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from local_platform import PlatformSettings
from mesh_events.rows import StatementState
from mesh_events.statements import StatementAdded, StatementStarted, StatementStopped
from projections.statements import Statement
from tests.integration.sql.records import bare, record
from tests.kafka_client import register_schema, registrar
from tests.mesh_fixtures import governor_pid, kit, pid_of
from tests.mesh_kit import Domain, Mesh, eventually, fresh

__all__ = ["governor_pid", "kit"]

PARTITIONS = 2
USER_KEY = record("UserKey", userid="int")
CLICK = record("Click", number="long", userid="int")
ROW = record("User", userid="int", name=["null", "string"])


@dataclass(frozen=True)
class Landed:
    """A record that came out."""

    partition: int
    offset: int
    value: bytes
    headers: dict[str, bytes]
    key: bytes | None = None


@dataclass
class Stage:
    """One test's topics of the domain, and what was written into them."""

    kit: Mesh
    domain: Domain
    stem: str = field(default_factory=lambda: fresh("t"))
    clicked: list[tuple[int, int, int]] = field(default_factory=list)
    """(number, userid, partition) in the order of writing."""

    def __post_init__(self) -> None:
        self.clicks, self.users = f"{self.name}-clicks", f"{self.name}-users"
        login = self.kit.login(self.domain.name, self.domain.cluster)
        self.admin, self.producer = AdminClient(login.config()), Producer(login.config(acks="all"))
        self.login = login
        made = self.admin.create_topics(
            [
                NewTopic(self.clicks, PARTITIONS, 1),
                NewTopic(self.users, 1, 1, config={"cleanup.policy": "compact"}),
            ]
        )
        for one in made.values():
            one.result(15)
        self.ids = {
            "click": self.register(f"{self.clicks}-value", CLICK),
            "key": self.register(f"{self.users}-key", USER_KEY),
            "user": self.register(f"{self.users}-value", ROW),
        }
        self._next = dict.fromkeys(range(PARTITIONS), 0)
        self.offsets: dict[int, int] = {}

    @property
    def name(self) -> str:
        """Begins every topic of this test."""
        return f"{self.domain.name}.{self.stem}"

    @property
    def out(self) -> str:
        """What the statement fills."""
        return f"{self.name}-out"

    @property
    def statement(self) -> str:
        """The statement's id."""
        return f"{self.name}-s"

    def register(self, subject: str, schema: Any) -> int:
        """The id of a schema."""
        return register_schema(self.kit.endpoints, subject, json.dumps(schema))

    def unchecked(self, subject: str) -> None:
        """Let the registry take any schema for a subject."""
        registrar(self.kit.endpoints).set_compatibility(subject, "NONE")

    def know(self, users: dict[int, str | None]) -> None:
        """Rows of the table; None: the user is gone."""
        for userid, name in users.items():
            key = framed(self.ids["key"], bare(USER_KEY, {"userid": userid}))
            row = {"userid": userid, "name": name}
            value = None if name is None else framed(self.ids["user"], bare(ROW, row))
            self.producer.produce(self.users, value, key)
        assert self.producer.flush(20) == 0

    def click(self, numbers: range, userids: list[int]) -> None:
        """Clicks in turn; every hundredth cannot be read."""
        for number in numbers:
            userid = userids[number % len(userids)]
            value = framed(self.ids["click"], bare(CLICK, {"number": number, "userid": userid}))
            self.put(number, userid, b"poison %d" % number if number % 100 == 57 else value)
            if number % 1000 == 0:
                self.producer.poll(0)
        assert self.producer.flush(30) == 0

    def put(self, number: int, userid: int, value: bytes) -> None:
        """One record of the stream."""
        partition = number % PARTITIONS
        self.offsets[number] = self._next[partition]
        self._next[partition] += 1
        self.clicked.append((number, userid, partition))
        self.producer.produce(self.clicks, value, b"key", partition)

    def make_stream_again(self) -> None:
        """Delete the stream's topic and make one of its name."""
        self.admin.delete_topics([self.clicks])[self.clicks].result(15)

        def made() -> bool:
            try:
                new = NewTopic(self.clicks, PARTITIONS, 1)
                self.admin.create_topics([new])[self.clicks].result(15)
            except KafkaException:
                return False
            return True

        eventually(made, "the topic can be made again")
        self._next = dict.fromkeys(range(PARTITIONS), 0)

    def say(self, kind: Any, **fields: Any) -> None:
        """Say something about the statement, which has to be accepted."""
        self.kit.accepted(self.domain.say(kind, statement=self.statement, **fields))

    def add(self, sql: str, **fields: Any) -> None:
        """Add the statement, and wait until it runs."""
        usual = {"stream": self.clicks, "destination": self.out}
        self.say(StatementAdded, **{**usual, "sql": sql, **fields})
        self.until_active()

    def stop(self) -> None:
        """Stop it, and wait until it stands still."""
        self.say(StatementStopped)
        self.wait_for(lambda one: one.state is StatementState.STOPPED, "it is stopped")

    def start(self) -> None:
        """Start it again, and wait until it runs."""
        self.say(StatementStarted)
        self.until_active()

    def until_active(self) -> Statement:
        """The statement, once it runs."""
        return self.wait_for(lambda one: one.state is StatementState.ACTIVE, "it runs")

    def wait_for(self, condition: Callable[[Statement], object], what: str) -> Statement:
        """The statement, once the log says so."""
        found = self.kit.wait_for(
            lambda image: (
                self.statement in image.statements and condition(image.statements[self.statement])
            ),
            what,
        )
        return found.statements[self.statement]

    def ends(self, topic: str, partitions: int = PARTITIONS) -> dict[int, int]:
        """Partition -> its end."""
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        answers = self.admin.list_offsets(asked, request_timeout=15)
        return {place.partition: answers[place].result().offset for place in asked}

    def landed(self, topic: str, partitions: int = PARTITIONS) -> list[Landed]:
        """Every record of a topic, by partition and offset."""
        ends, found = self.ends(topic, partitions), list[Landed]()
        consumer = Consumer({**self.login.config(), "group.id": f"{self.domain.name}.all"})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        while len(found) < sum(ends.values()):
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None
            headers = dict(message.headers() or [])
            at = (message.partition(), message.offset())
            found.append(Landed(*at, message.value(), headers, message.key()))
        consumer.close()
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def until_landed(self, count: int, partitions: int = PARTITIONS) -> None:
        """Wait until so many records came out."""
        eventually(
            lambda: sum(self.ends(self.out, partitions).values()) >= count, f"{count} came out"
        )

    def numbers(self) -> dict[int, list[int]]:
        """Partition -> the numbers that came out, in their order; each names its own click."""
        found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        for one in self.landed(self.out):
            number = self.number_of(one)
            place = one.headers["mesh.source"].decode().rsplit("/", 2)[1:]
            assert place == [str(one.partition), str(self.offsets[number])]
            found[one.partition].append(number)
        return found

    def number_of(self, one: Landed) -> int:
        """The first column of a record of the result, which is a long that may be null."""
        assert one.value[0] == 0
        assert one.value[5] == 2  # the branch of the union that is no null
        return zigzag(one.value, 6)


def framed(number: int, body: bytes) -> bytes:
    """Bare Avro behind a schema's id."""
    return b"\0" + struct.pack(">I", number) + body


def zigzag(data: bytes, at: int) -> int:
    """Avro's long at a place."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)


@pytest.fixture(scope="session")
def shop(kit: Mesh) -> Domain:
    """The domain of all these tests, with a server that they may kill."""
    return kit.register_domain("ownflow")


@pytest.fixture
def stage(kit: Mesh, shop: Domain) -> Iterator[Stage]:
    """A stream, a table, and room for a statement; the statement is deleted at the end."""
    from mesh_events.statements import StatementDeleted

    made = Stage(kit, shop)
    yield made
    known = kit.image().statements.get(made.statement)
    if known is not None and known.stands:
        made.say(StatementDeleted)
        made.wait_for(lambda one: one.state is StatementState.DELETED, "it is deleted")


@pytest.fixture(scope="session")
def spark_pid(settings: PlatformSettings, shop: Domain) -> Callable[[], int | None]:
    """Tells the process that runs the domain's statements now."""
    return lambda: pid_of(settings, f"spark-{shop.name}")
