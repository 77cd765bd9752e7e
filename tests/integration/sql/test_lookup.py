"""Tables that are looked up: real topics, read by Spark's executors, held against a dict."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException

from local_platform import Endpoints
from spark_streams.jvm import register
from spark_streams.sql.running.tables import settings
from tests.integration.sql.records import Statement, record, wire
from tests.kafka_client import delete_and_create, eventually, topic_id
from tests.selection import draws

pytestmark = pytest.mark.platform

CLICK = record("Click", ip="string", userid=["null", "int"])
KEY = record("Key", userid="int")
ROW = record("Value", userid="int", first=["null", "string"], phone=["null", "string"])
CHANGE = record("Envelope", before=["null", ROW], after=["null", "shop.Value"], op="string")
PARTITIONS = 3


@dataclass
class Table:
    """A topic that is read as a table, and what a session is told of it."""

    spark: Any
    platform: Endpoints
    topic: str = field(default_factory=lambda: f"east.t-{secrets.token_hex(4)}")

    def make(self, cleanup: str = "compact") -> None:
        admin = AdminClient(self.platform.administration("east").config())
        config = {"cleanup.policy": cleanup}
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1, config=config)])[
            self.topic
        ].result(15)
        self.producer = Producer(self.platform.administration("east").config())

    def put(self, rows: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        failed: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(error)

        for key, value in rows:
            self.producer.produce(self.topic, value, key, on_delivery=delivered)
        assert self.producer.flush(15) == 0
        assert failed == []

    def find(self, statement: Statement) -> Any:
        """The lookup in a table that is opened now."""
        from pyspark.sql.connect import functions as f

        [alias] = set(statement.schemas) - {"c"}
        name = f"{self.topic}/{secrets.token_hex(4)}"
        login = self.platform.administration("east")
        found = topic_id(AdminClient(login.config()), self.topic)
        for key, value in settings(name, self.topic, found, statement.topic(alias), login).items():
            self.spark.conf.set(key, value)
        register(self.spark)
        return lambda _, column: f.call_function(
            "mesh_lookup", f.lit(name), column, f.col("partition")
        )


@pytest.fixture
def table(spark: Any, platform: Endpoints) -> Iterator[Table]:
    made = Table(spark, platform)
    made.make()
    yield made
    AdminClient(platform.administration("east").config()).delete_topics([made.topic])


def key(userid: int) -> bytes:
    return wire(1, KEY, {"userid": userid})


def row(userid: int, first: str | None) -> dict[str, Any]:
    return {"userid": userid, "first": first, "phone": None}


def change(op: str, before: Any, after: Any) -> bytes:
    return wire(2, CHANGE, {"before": before, "after": after, "op": op})


def clicks(*userids: int | None) -> list[tuple[Any, ...]]:
    return [
        (b"k", wire(7, CLICK, {"ip": f"ip{at}", "userid": userid}), 0, at)
        for at, userid in enumerate(userids)
    ]


def joined(spark: Any, text: str, schemas: Any = None, keys: Any = None) -> Statement:
    every = {"c": {7: CLICK}, "u": schemas or {2: CHANGE}}
    return Statement(spark, text, every, {"u": keys or KEY}, key_ids=[1])


def test_inner_and_left_join_find_the_latest_row_and_no_deleted_one(
    spark: Any, table: Table
) -> None:
    table.put(
        [
            (key(1), change("c", None, row(1, "old"))),
            (key(2), change("c", None, row(2, "two"))),
            (key(3), change("c", None, row(3, "three"))),
            (key(1), change("u", row(1, "old"), row(1, "new"))),
            (key(2), change("d", row(2, "two"), None)),
            (key(3), change("d", row(3, "three"), None)),
            (key(3), None),
            (key(4), change("c", None, row(4, None))),
        ]
    )
    text = "SELECT ip, u.first FROM x c {} y u ON c.userid = u.userid"
    inner = joined(spark, text.format("JOIN"))
    assert inner.values(clicks(1, 2, 3, 4, 5, None), table.find(inner)) == [
        {"ip": "ip0", "first": "new"},
        {"ip": "ip3", "first": None},
    ]
    left = joined(spark, text.format("LEFT JOIN"))
    found = left.values(clicks(1, 2, 3, 4, 5, None), table.find(left))
    assert [one["first"] for one in found] == ["new", None, None, None, None, None]
    assert [one["ip"] for one in found] == [f"ip{at}" for at in range(6)]


def test_a_condition_on_the_row_is_part_of_the_join(spark: Any, table: Table) -> None:
    table.put([(key(n), change("c", None, row(n, f"name{n}"))) for n in (1, 2)])
    text = "SELECT ip, u.first FROM x c {} y u ON c.userid = u.userid AND u.first <> 'name1'"
    inner = joined(spark, text.format("JOIN"))
    assert inner.values(clicks(1, 2), table.find(inner)) == [{"ip": "ip1", "first": "name2"}]
    left = joined(spark, text.format("LEFT JOIN"))
    assert [one["first"] for one in left.values(clicks(1, 2), table.find(left))] == [None, "name2"]


def test_every_row_is_what_a_dict_says_after_random_changes(spark: Any, table: Table) -> None:
    chance, known, said = draws("rows"), {}, []
    for number in range(3000):
        userid, dice = chance.randrange(200), chance.random()
        if dice < 0.8:
            said.append((key(userid), change("u", None, row(userid, f"v{number}"))))
            known[userid] = f"v{number}"
        else:
            tombstone = None if dice < 0.9 else change("d", row(userid, "x"), None)
            said.append((key(userid), tombstone))
            known.pop(userid, None)
    table.put(said)
    made = joined(
        spark, "SELECT u.first, c.userid AS n FROM x c LEFT JOIN y u ON c.userid=u.userid"
    )
    found = made.values(clicks(*range(210)), table.find(made))
    assert {one["n"]: one["first"] for one in found} == {n: known.get(n) for n in range(210)}


def test_a_key_of_two_parts_and_a_key_that_is_no_record(spark: Any, table: Table) -> None:
    order = record("Order", region="string", number="int", total="long")
    both = record("Key", region="string", number="int")
    one = {"region": "eu", "number": 7}
    table.put([(wire(1, both, one), wire(5, order, {**one, "total": 70}))])
    for number, found in (("c.userid", [{"total": 70}]), ("7", [{"total": 70}] * 2), ("8", [])):
        made = joined(
            spark,
            f"SELECT u.total FROM x c JOIN y u ON u.number = {number} AND u.region = 'eu'",
            {5: order},
            both,
        )
        assert made.values(clicks(7, 8), table.find(made)) == found


def test_a_key_that_is_a_string_is_a_column_of_its_table(spark: Any, table: Table) -> None:
    name = record("Name", text="string")
    table.put([(wire(1, "string", "ip1"), wire(5, name, {"text": "one"}))])
    made = joined(spark, "SELECT u.* FROM x c JOIN y u ON c.ip = u._key", {5: name}, "string")
    assert made.values(clicks(1, 2), table.find(made)) == [{"text": "one", "_key": "ip1"}]


def test_rows_of_an_older_schema_are_read_with_the_newer_one(spark: Any, table: Table) -> None:
    newer = {
        **ROW,
        "fields": [*ROW["fields"], {"name": "city", "type": "string", "default": "nowhere"}],
    }
    later = record("Envelope", before=["null", newer], after=["null", "shop.Value"], op="string")
    moved = {"before": None, "after": {**row(2, "b"), "city": "Rome"}, "op": "c"}
    table.put([(key(1), change("c", None, row(1, "a"))), (key(2), wire(3, later, moved))])
    made = joined(
        spark, "SELECT u.city FROM x c JOIN y u ON c.userid = u.userid", {2: CHANGE, 3: later}
    )
    found = made.values(clicks(1, 2), table.find(made))
    assert found == [{"city": "nowhere"}, {"city": "Rome"}]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ((key(1), b"garbage"), "offset 0 cannot be read"),
        ((key(1), wire(99, ROW, row(1, "a"))), "its schema 99 is not known to the statement"),
        ((key(1), change("d", None, row(1, "a"))), "its op and its after contradict each other"),
        ((key(1), change("u", row(1, "a"), None)), "its op and its after contradict each other"),
    ],
)
def test_a_row_that_cannot_be_read_is_no_answer_until_it_is_written_again(
    spark: Any, table: Table, bad: tuple[bytes, bytes], told: str
) -> None:
    table.put([bad, (key(2), change("c", None, row(2, "b")))])
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    find = table.find(made)
    with pytest.raises(PySparkException) as failed:
        made.values(clicks(1), find)
    assert f"the table {table.topic}" in str(failed.value)
    assert told in str(failed.value)
    assert "write the row with this key again" in str(failed.value)
    assert "ScramLoginModule" not in str(failed.value)
    # the others are as they were
    assert made.values(clicks(2), find) == [{"first": "b"}]
    table.put([(key(1), change("u", None, row(1, "again")))])

    def mended() -> bool:
        try:
            return bool(made.values(clicks(1), find) == [{"first": "again"}])
        except PySparkException:
            return False

    eventually(mended, "the row is read again")


def refusal(made: Statement, find: Any, first: str) -> str:
    """Why the row of key 1 is not looked up; nothing while it is, and is the one with `first`."""
    try:
        assert made.values(clicks(1), find) == [{"first": first}]
    except PySparkException as error:
        return str(error)
    return ""


def test_a_key_with_a_schema_that_came_later_ends_the_table(spark: Any, table: Table) -> None:
    newer = record("Key", userid=["null", "int"])
    table.put([(key(1), change("c", None, row(1, "a")))])
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    find = table.find(made)
    assert made.values(clicks(1), find) == [{"first": "a"}]
    table.put([(key(1), change("u", None, row(1, "b")))])
    eventually(lambda: made.values(clicks(1), find) == [{"first": "b"}], "the row is read")
    table.put([(wire(8, newer, {"userid": 1}), change("u", None, row(1, "c")))])

    refused = partial(refusal, made, find, "b")
    eventually(refused, "lookups fail instead of missing the row")
    # nor is it read when the table is opened again
    assert "has the schema 8, which was not registered for keys when" in refused()


def test_keys_of_two_schemas_in_several_partitions_end_the_table(spark: Any, table: Table) -> None:
    """Each key's partition follows from its bytes, and so from the id of its schema."""
    table.put([(key(1), change("c", None, row(1, "a")))])
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    made.key_ids = [1, 2]
    find = table.find(made)
    assert made.values(clicks(1), find) == [{"first": "a"}]
    table.put([(wire(2, KEY, {"userid": 1}), change("u", None, row(1, "b")))])

    refused = partial(refusal, made, find, "a")
    eventually(refused, "lookups fail instead of giving either row")
    assert "rows of one key may stand in two of them" in refused()


@pytest.mark.parametrize("spare", [b"\x82\x00", b"\x02\x00", b""])
def test_a_key_of_other_bytes_than_writers_give_it_ends_the_table(
    spark: Any, table: Table, spare: bytes
) -> None:
    """A number with more bytes than it needs, and a byte behind it: readers take both for 1."""
    table.put([(key(1), change("c", None, row(1, "a")))])
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    find = table.find(made)
    assert made.values(clicks(1), find) == [{"first": "a"}]
    table.put([(key(1)[:5] + spare, change("u", None, row(1, "b")))])

    refused = partial(refusal, made, find, "a")
    eventually(refused, "lookups fail instead of giving the earlier row")
    assert "has not the bytes that Avro's writers give it" in refused()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_key_in_two_partitions_ends_the_table(spark: Any, table: Table, is_deleted: bool) -> None:
    """As after partitions were added: no order is between records of two partitions."""
    table.put([(key(1), change("c", None, row(1, "a"))), (key(2), change("c", None, row(2, "b")))])
    later = None if is_deleted else change("u", None, row(1, "c"))
    for partition in range(PARTITIONS):
        table.producer.produce(table.topic, later, key(1), partition)
    assert table.producer.flush(15) == 0
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    with pytest.raises(PySparkException, match="which of its rows is the latest is not known"):
        made.values(clicks(2), table.find(made))


def test_a_table_that_is_made_anew_is_not_read_on(
    spark: Any, table: Table, platform: Endpoints
) -> None:
    """Its rows would come from wherever the old topic had ended."""
    table.put([(key(1), change("c", None, row(1, "old")))] * 3)
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    find = table.find(made)
    assert made.values(clicks(1), find) == [{"first": "old"}]
    admin = AdminClient(platform.administration("east").config())
    delete_and_create(admin, table.topic, PARTITIONS, cleanup_policy="compact")
    table.put([(key(1), change("c", None, row(1, "new")))] * 5)

    refused = partial(refusal, made, find, "old")
    eventually(refused, "lookups fail")
    assert "was deleted and made again" in refused()


@pytest.mark.parametrize("stranger", [None, b"k", b"a key without any schema"])
def test_a_record_without_a_key_that_a_row_could_have_is_no_row(
    spark: Any, platform: Endpoints, stranger: bytes | None
) -> None:
    table = Table(spark, platform)
    # Kafka refuses a record without a key where it compacts, and all that is sent with it
    table.make("delete")
    table.put([(stranger, b"garbage"), (key(1), change("c", None, row(1, "a")))])
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    assert made.values(clicks(1), table.find(made)) == [{"first": "a"}]


def test_a_change_is_seen_by_the_records_after_it(spark: Any, table: Table) -> None:
    """Not at once: the table is followed, and a lookup waits for nobody but its beginning."""
    table.put([(key(1), change("c", None, row(1, "old")))])
    made = joined(spark, "SELECT u.first FROM x c JOIN y u ON c.userid = u.userid")
    find = table.find(made)
    assert made.values(clicks(1), find) == [{"first": "old"}]
    table.put([(key(1), change("u", None, row(1, "new")))])
    for _ in range(50):
        if made.values(clicks(1), find) == [{"first": "new"}]:
            return
    raise AssertionError("the change was not seen")
