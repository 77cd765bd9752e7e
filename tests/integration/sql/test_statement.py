"""A statement as a query that runs: joined, stopped, gone on with, and held against an oracle."""

import io
import itertools
import json
import random
import secrets
import struct
import time
import uuid
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import Endpoints
from spark_streams.engine import CopySpec
from spark_streams.log import KafkaLog
from spark_streams.provenance import HEADER, Origin, Provenance
from spark_streams.spark import SparkEngine
from spark_streams.sql.errors import SqlError
from spark_streams.sql.running.again import again
from spark_streams.sql.running.analysis import analysed
from spark_streams.sql.running.frame import Result, Topic
from spark_streams.sql.running.work import Statement, Table
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import resolve
from spark_streams.sql.types.shape import key_columns, shape_of
from spark_streams.standing import Filled, standing
from spark_streams.tail import read_tail
from tests.integration.sql.records import record, wire
from tests.kafka_client import topic_id
from tests.mesh_kit import eventually
from tests.selection import draws

pytestmark = pytest.mark.platform

PARTITIONS = 2
RESULT_ID = 901
KEY = record("Key", userid="int")
CLICK = record("Click", number="long", userid="int")
ROW = record("Value", userid="int", name=["null", "string"])
CHANGE = record("Envelope", before=["null", ROW], after=["null", "shop.Value"], op="string")
TEXT = """
SELECT c.number, u.name
FROM clicks c JOIN users u ON c.userid = u.userid
WHERE c.number % 10 <> 3"""


class Running:
    """A statement over topics of its own, as its controller would run it."""

    def __init__(self, platform: Endpoints, server: tuple[str, str]) -> None:
        self.login = platform.administration("east")
        self.admin = AdminClient(self.login.config())
        # a batch that is sent again must not come behind a later one: offsets are counted here
        self.producer = Producer({**self.login.config(), "enable.idempotence": True})
        stem = f"east.s-{secrets.token_hex(4)}"
        self.clicks, self.users = f"{stem}.clicks", f"{stem}.users"
        self.out, self.dead = f"{stem}.out", f"{stem}.out.dead"
        topics = [NewTopic(name, PARTITIONS, 1) for name in (self.clicks, self.out, self.dead)]
        topics.append(NewTopic(self.users, 1, 1, config={"cleanup.policy": "compact"}))
        for made in self.admin.create_topics(topics).values():
            made.result(15)
        self.engine = SparkEngine(*server, f"sql-{uuid.uuid4()}")
        self.log = KafkaLog(self.login)
        self.said: list[tuple[int, int, int]] = []
        self.offsets: dict[int, int] = {}
        self.produced = dict.fromkeys(range(PARTITIONS), 0)
        self.ids = {name: topic_id(self.admin, name) for name in (self.clicks, self.users)}
        self.origin = Origin("east", self.ids[self.clicks])

    def close(self) -> None:
        self.engine.stop(self.out)
        self.engine.close()
        self.log.close()
        self.admin.delete_topics([self.clicks, self.users, self.out, self.dead])

    def know(self, users: dict[int, str | None]) -> None:
        for userid, name in users.items():
            row = None if name is None else {"userid": userid, "name": name}
            value = wire(
                2, CHANGE, {"before": None, "after": row, "op": "d" if row is None else "u"}
            )
            self.producer.produce(self.users, value, wire(1, KEY, {"userid": userid}))
        assert self.producer.flush(15) == 0

    def click(self, numbers: range, userids: range, chance: random.Random) -> None:
        for number in numbers:
            userid, partition = chance.choice(userids), number % PARTITIONS
            value = wire(7, CLICK, {"number": number, "userid": userid})
            if number % 100 == 50:
                value = b"poison %d" % number
            self.offsets[number] = self.produced[partition]
            self.produced[partition] += 1
            self.said.append((number, userid, partition))
            self.producer.produce(self.clicks, value, b"key", partition)
            if number % 1000 == 0:
                self.producer.poll(0)
        assert self.producer.flush(30) == 0

    def start(self, text: str = TEXT) -> None:
        """One incarnation, which reads all again, and passes over what stands in a topic."""
        parsed = parse(text)
        stream = Topic("c", shape_of(_text(CLICK), "c"), {7: _text(CLICK)}, _text(KEY))
        shape, key = shape_of(_text(CHANGE), "u"), _text(KEY)
        table = Topic("u", shape, {2: _text(CHANGE)}, key, {1: key})
        columns = {one.alias: [each.name for each in one.shape.row] for one in (stream, table)}
        query = resolve(parsed, columns, {"u": key_columns(table.key, "u")})
        session = self.engine._session
        schema = session.call(
            "analysing",
            lambda found: analysed(found, query, stream, {"u": table}, "Out", "shop"),
        )
        self.reader = fastavro.parse_schema(json.loads(schema))
        floor = dict.fromkeys(range(PARTITIONS), 0)
        stood = []
        for topic in (self.out, self.dead):
            tails = read_tail(self.log, topic, PARTITIONS, self.origin)
            filled = Filled(topic, tails, {}, {}, says=topic == self.dead)
            stood.append(standing(self.log, filled, floor, self.origin))
        out, dead = ({p: one.next for p, one in found.items()} for found in stood)
        writer = f"mesh.sql.{secrets.token_hex(4)}"
        result = Result(self.out, self.dead, RESULT_ID, schema, dead, out, again(*stood))
        joined = {"u": Table(self.users, table)}
        work = Statement(writer, query, stream, joined, result, self.login, self.ids)
        self.engine.start(
            CopySpec(
                link=self.out,
                writer=writer,
                source=self.login,
                source_topic=self.clicks,
                origin=self.origin,
                destination=self.login,
                destination_topic=self.out,
                start=floor,
                max_record_bytes=1_000_000,
                work=work,
            )
        )

    def stop(self) -> None:
        """Stop, and wait until nothing lands any more, as a fence does."""
        self.engine.stop(self.out)
        last, since = self.ends(self.out), time.monotonic()
        while time.monotonic() - since < 1:
            now = self.ends(self.out)
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)

    def ends(self, topic: str) -> dict[int, int]:
        bounds = self.log.bounds(topic, range(PARTITIONS))
        return {partition: end for partition, (_, end) in bounds.items()}

    def read(self, topic: str) -> list[tuple[int, bytes, bytes]]:
        """(partition, value, source) of every record."""
        ends, found = self.ends(topic), []
        consumer = Consumer({**self.login.config(), "group.id": "east.reader"})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        while len(found) < sum(ends.values()):
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None
            source = dict(message.headers())["mesh.source"]
            found.append((message.partition(), message.value(), source))
        consumer.close()
        return found

    def results(self) -> list[tuple[int, int, str]]:
        """(partition, number, name) of every record of the destination."""
        found = []
        for partition, value, source in self.read(self.out):
            assert struct.unpack(">bI", value[:5]) == (0, RESULT_ID)
            row = fastavro.schemaless_reader(io.BytesIO(value[5:]), self.reader)
            place = Provenance(self.origin, partition, self.offsets[row["number"]])
            assert source == place.encode()
            found.append((partition, row["number"], row["name"]))
        return found


def _text(schema: Any) -> str:
    return json.dumps(schema)


@pytest.fixture
def running(platform: Endpoints, server: tuple[str, str]) -> Iterator[Running]:
    made = Running(platform, server)
    yield made
    made.close()


def test_a_join_that_is_stopped_under_load_loses_and_doubles_nothing(running: Running) -> None:
    """Names change between the incarnations; what came out once stays as it was."""
    users, chance, turns, each = range(40), draws("names"), 4, 5000
    known = [userid for userid in users if userid % 4]
    for turn in range(turns):
        running.know({userid: f"{turn}-{userid}" for userid in known})
        running.click(range(turn * each, turn * each + each), users, chance)
        running.start()
        before = sum(running.ends(running.out).values())
        eventually(
            lambda before=before: sum(running.ends(running.out).values()) > before, "it runs"
        )
        if turn < turns - 1:
            running.stop()
    expected = [
        (partition, number, userid)
        for number, userid, partition in running.said
        if userid in known and number % 10 != 3 and number % 100 != 50
    ]
    eventually(lambda: sum(running.ends(running.out).values()) >= len(expected), "all is there")
    running.stop()

    found = []
    for partition, number, name in running.results():
        turn, _, userid = name.partition("-")
        # all that was known before an incarnation began is in its first record
        assert number // each <= int(turn) < turns
        found.append((partition, number, int(userid)))
    for partition in range(PARTITIONS):
        mine = [one for one in found if one[0] == partition]
        assert mine == [one for one in expected if one[0] == partition]
    assert_names_go_on(running.results())
    dead = running.read(running.dead)
    assert sorted(value for _, value, _ in dead) == sorted(
        b"poison %d" % number for number, *_ in running.said if number % 100 == 50
    )


DECODED = """
SELECT c.number, url_decode(u.name) AS name
FROM clicks c JOIN users u ON c.userid = u.userid"""


def test_a_record_whose_row_changes_before_a_restart_is_neither_lost_nor_doubled(
    running: Running,
) -> None:
    """What Spark had sent to one topic stands there, and not all that it had sent to the other."""
    chance = draws("left")
    running.know({1: "good", 2: "%zz"})
    # all in one partition, at the offsets 0 to 4
    for number, userid in ((0, 1), (2, 2), (4, 1), (50, 1), (6, 2)):
        running.click(range(number, number + 1), range(userid, userid + 1), chance)
    value = struct.pack(">bI", 0, RESULT_ID) + bytes([2, 0, 2, 8]) + b"good"
    left = [(running.out, value, 0), (running.dead, b"poison 50", 3), (running.dead, b"6", 4)]
    for topic, written, offset in left:
        place = Provenance(running.origin, 0, offset).encode()
        running.producer.produce(topic, written, b"key", 0, headers=[(HEADER, place)])
    assert running.producer.flush(15) == 0

    def stands() -> dict[str, list[int]]:
        topics = {"out": running.out, "dead": running.dead}
        found = {name: running.read(topic) for name, topic in topics.items()}
        return {
            name: [int(source.rpartition(b"/")[2]) for _, _, source in records]
            for name, records in found.items()
        }

    running.start(DECODED)
    eventually(lambda: stands() == {"out": [0, 2], "dead": [3, 4, 1]}, "what was left is written")
    running.stop()
    # the rows are others by now: nothing is written again, and what is new comes out
    running.know({1: "%zz", 2: "good"})
    running.click(range(8, 9), range(2, 3), chance)
    running.start(DECODED)
    eventually(lambda: stands() == {"out": [0, 2, 5], "dead": [3, 4, 1]}, "the new one is there")


def assert_names_go_on(results: list[tuple[int, int, str]]) -> None:
    """In the order of a partition, nobody gets an earlier name back, and some get a later one."""
    seen: dict[tuple[int, str], int] = {}
    changes = 0
    for partition, _, name in results:
        turn, _, userid = name.partition("-")
        before = seen.get((partition, userid), 0)
        assert int(turn) >= before
        changes += int(turn) > before
        seen[partition, userid] = int(turn)
    assert changes


def test_a_changed_row_is_in_every_record_after_it(running: Running) -> None:
    """A change is followed, how soon is not said; behind it nobody sees the row before it."""
    chance, numbers = draws("changes"), itertools.count(10_000_001, 10)
    running.know({1: "old", 2: None})
    running.click(range(1, 2), range(1, 2), chance)
    running.start()
    eventually(lambda: len(running.results()) == 1, "the first one is there")

    def seen(userid: int, name: str) -> None:
        def there() -> bool:
            number = next(numbers)
            running.click(range(number, number + 1), range(userid, userid + 1), chance)
            return name in names(userid)

        eventually(there, f"{userid} is {name}")

    def names(userid: int) -> list[str]:
        asked = {number for number, one, _ in running.said if one == userid}
        return [name for _, number, name in sorted(running.results()) if number in asked]

    running.know({1: "new"})
    seen(1, "new")
    # one table: a record that comes after this one has seen all that was known by then
    running.know({2: "two"})
    seen(2, "two")
    running.know({1: None, 2: "second"})
    seen(2, "second")
    before = len(names(1))
    gone = next(numbers)
    running.click(range(gone, gone + 1), range(1, 2), chance)
    last = next(numbers)
    running.click(range(last, last + 1), range(2, 3), chance)
    eventually(lambda: last in {number for _, number, _ in running.results()}, "the last one")

    assert len(names(1)) == before
    assert list(dict.fromkeys(names(1))) == ["old", "new"]
    assert list(dict.fromkeys(names(2))) == ["two", "second"]


@pytest.mark.parametrize(
    ("text", "place", "code", "told"),
    [
        ("SELECT number + 1 AS a, nosuch(number) AS b FROM x c", "line 1, column 25: ",
         "unknown_function", "nosuch is no function"),
        ("SELECT uper(number) AS a FROM x c\nWHERE number = uper('a')", "line 1, column 8: ",
         "unknown_function", "; is upper meant?"),
        ("SELECT number FROM x c\nWHERE levenstein('a', number) > 3", "line 2, column 7: ",
         "unknown_function", "is levenshtein meant?"),
        ("SELECT number\nFROM x c\nWHERE number", "line 3, column 7", "wrong_type",
         "in WHERE: it is bigint, and a condition is expected"),
        ("SELECT number, array(number, map('a', 1)) AS m FROM x c", "line 1, column 16",
         "wrong_type", "in m"),
    ],
)  # fmt: skip
def test_what_spark_refuses_is_told_with_its_place(
    spark: Any, text: str, place: str, code: str, told: str
) -> None:
    stream = Topic("c", shape_of(_text(CLICK), "c"), {7: _text(CLICK)})

    def understood() -> None:
        query = resolve(parse(text), {"c": ["number", "userid"]}, {})
        analysed(spark, query, stream, {}, "Out", "shop")

    with pytest.raises(SqlError) as refused:
        understood()
    assert refused.value.code == code
    assert str(refused.value).startswith(place)
    assert told in str(refused.value)
    assert "SQLSTATE" not in str(refused.value)
