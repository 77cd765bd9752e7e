"""Statements with two to four JOINs: each looks its rows up in its own table, whatever its place.

The tables are real topics with keys of other types and rows of other schemas. What comes out is
held against an oracle in plain Python.
"""

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import Endpoints
from spark_streams.jvm import register
from spark_streams.sql.running.tables import settings
from tests.integration.sql.join_oracle import Join, results
from tests.integration.sql.records import Statement, record, wire
from tests.kafka_client import topic_id
from tests.selection import draws

pytestmark = pytest.mark.platform

NULLABLE = {kind: ["null", kind] for kind in ("int", "long", "string", "bytes")}
ORDER = record(
    "Order",
    id="long",
    cust=NULLABLE["int"],
    item=NULLABLE["long"],
    code=NULLABLE["string"],
    raw=NULLABLE["bytes"],
    paid="boolean",
)
RECORDS, KEYS = 60, 12


@dataclass(frozen=True)
class Sample:
    """A table: schemas of its keys and rows, key -> row, and how the text finds a row.

    on: the condition of a JOIN with this table.
    wanted: of the stream's record, the key that is looked for.
    label: the column that tells whose row was found.
    """

    name: str
    key: Any
    row: Any
    rows: Mapping[Any, Mapping[str, Any]]
    on: str
    wanted: str
    label: str

    def key_bytes(self, key: Any) -> bytes:
        [first, *_] = self.key.get("fields", [None]) if isinstance(self.key, dict) else [None]
        return wire(1, self.key, key if first is None else {first["name"]: key})


def keyed(kind: str, column: str) -> Any:
    return record("Key", **{column: kind})


def samples(chance: random.Random) -> dict[str, Sample]:
    """One table for each type of key; two thirds of the keys have a row."""
    ints = chance.sample(range(KEYS), KEYS * 2 // 3)
    longs = [2**40 + one for one in chance.sample(range(KEYS), KEYS * 2 // 3)]
    texts = [f"k{one}" for one in chance.sample(range(KEYS), KEYS * 2 // 3)]
    raws = [b"\0%d" % one for one in chance.sample(range(KEYS), KEYS * 2 // 3)]
    every = [
        # two tables with the same type of key and the same row, told apart by what they hold
        Sample("city", keyed("int", "cid"), record("City", cid="int", name="string"),
               {one: {"cid": one, "name": f"city-{one}"} for one in ints},
               "c.cust = city.cid", "cust", "name"),
        Sample("tier", keyed("int", "cid"), record("Tier", cid="int", name="string"),
               {one: {"cid": one, "name": f"tier-{one}"} for one in ints[::-2]},
               "c.cust = tier.cid", "cust", "name"),
        Sample("item", keyed("long", "iid"),
               record("Item", weight="double", iid="long", title=NULLABLE["string"]),
               {one: {"weight": one / 7, "iid": one, "title": f"item-{one}"} for one in longs},
               "item.iid = c.item", "item", "title"),
        Sample("code", "string",
               record("Code", text="string", more={"type": "map", "values": "int"}),
               {one: {"text": f"code-{one}", "more": {one: 1}} for one in texts},
               "c.code = code._key", "code", "text"),
        # an enum that lacks some of the stream's texts
        Sample("grade", {"type": "enum", "name": "Grade", "symbols": sorted(texts)},
               record("Grade2", text="string"), {one: {"text": f"grade-{one}"} for one in texts},
               "c.code = grade._key", "code", "text"),
        Sample("raw", "bytes", record("Raw", size="int", text="string"),
               {one: {"size": len(one), "text": f"raw-{one!r}"} for one in raws},
               "c.raw = raw._key", "raw", "text"),
        Sample("paid", keyed("boolean", "paid"), record("Paid", word="string", paid="boolean"),
               {True: {"word": "paid-yes", "paid": True}},
               "c.paid = paid.paid", "paid", "word"),
    ]  # fmt: skip
    return {one.name: one for one in every}


def orders(chance: random.Random) -> list[dict[str, Any]]:
    """Records of the stream; some columns are null, some name a row that is not there."""

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    return [
        {
            "id": number,
            "cust": maybe(chance.randrange(KEYS)),
            "item": maybe(2**40 + chance.randrange(KEYS)),
            "code": maybe(f"k{chance.randrange(KEYS)}"),
            "raw": maybe(b"\0%d" % chance.randrange(KEYS)),
            "paid": chance.random() < 0.5,
        }
        for number in range(RECORDS)
    ]


class Topics:
    """The tables as topics, and a session's lookup in them."""

    def __init__(self, spark: Any, platform: Endpoints, tables: Mapping[str, Sample]) -> None:
        self.spark, self.login, self.tables = spark, platform.administration("east"), tables
        self.topics = {name: f"east.j-{secrets.token_hex(4)}-{name}" for name in tables}
        self.admin = AdminClient(self.login.config())
        compact = {"cleanup.policy": "compact"}
        new = [NewTopic(topic, 2, 1, config=compact) for topic in self.topics.values()]
        for made in self.admin.create_topics(new).values():
            made.result(15)
        producer = Producer(self.login.config())
        for name, table in tables.items():
            for key, row in table.rows.items():
                value = wire(2, table.row, row)
                producer.produce(self.topics[name], value, table.key_bytes(key))
        assert producer.flush(15) == 0

    def close(self) -> None:
        self.admin.delete_topics(list(self.topics.values()))

    def statement(self, text: str, aliases: Mapping[str, str]) -> Statement:
        """A statement over the stream and tables; alias -> table."""
        schemas = {alias: {2: self.tables[name].row} for alias, name in aliases.items()}
        keys = {alias: self.tables[name].key for alias, name in aliases.items()}
        return Statement(self.spark, text, {"c": {7: ORDER}, **schemas}, keys, key_ids=[1])

    def values(self, text: str, aliases: Mapping[str, str], stream: Sequence[Any]) -> list[Any]:
        """What comes out, sorted by the record's number."""
        from pyspark.sql.connect import functions as f

        statement, turn = self.statement(text, aliases), secrets.token_hex(4)
        for alias, name in aliases.items():
            topic = self.topics[name]
            wanted = settings(
                f"{turn}/{alias}",
                topic,
                topic_id(self.admin, topic),
                statement.topic(alias),
                self.login,
            )
            for key, value in wanted.items():
                self.spark.conf.set(key, value)
        register(self.spark)

        def find(alias: str, key: Any) -> Any:
            name = f.lit(f"{turn}/{alias}")
            return f.call_function("mesh_lookup", name, key, f.col("partition"))

        rows = [(b"k", wire(7, ORDER, one), one["id"] % 3, one["id"]) for one in stream]
        return sorted(statement.values(rows, find), key=lambda one: one["id"])


@pytest.fixture(scope="module")
def tables() -> dict[str, Sample]:
    return samples(draws("tables"))


@pytest.fixture(scope="module")
def topics(spark: Any, platform: Endpoints, tables: dict[str, Sample]) -> Iterator[Topics]:
    made = Topics(spark, platform, tables)
    yield made
    made.close()


def expected(
    tables: Mapping[str, Sample], joined: Sequence[tuple[str, bool]], stream: Sequence[Any]
) -> tuple[str, list[dict[str, Any]]]:
    """A text with these JOINs in this order, and what it gives."""

    def key(wanted: str) -> Any:
        return lambda rows: rows["c"][wanted]

    columns, selected, clauses, joins = [("id", "c", "id")], ["c.id"], [], []
    for name, outer in joined:
        table = tables[name]
        columns.append((f"of_{name}", name, table.label))
        selected.append(f"{name}.{table.label} AS of_{name}")
        clauses.append(f"{'LEFT ' if outer else ''}JOIN t_{name} {name} ON {table.on}")
        joins.append(Join(name, table.rows, key(table.wanted), outer))
    text = f"SELECT {', '.join(selected)} FROM x c {' '.join(clauses)}"
    return text, results(stream, joins, columns)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_each_join_finds_the_rows_of_its_own_table(
    topics: Topics, tables: dict[str, Sample], seed: int
) -> None:
    """Two to four tables in any order, INNER and LEFT mixed."""
    chance = draws(f"joins {seed}")
    stream, order = orders(chance), chance.sample(list(tables), chance.randint(2, 4))
    joined = [(name, chance.random() < 0.6) for name in order]
    text, wanted = expected(tables, joined, stream)
    assert topics.values(text, {name: name for name in order}, stream) == wanted


@pytest.mark.sample(2)
@pytest.mark.parametrize("order", [("city", "tier"), ("tier", "city")])
@pytest.mark.parametrize("outer", [(True, True), (True, False), (False, True), (False, False)])
def test_tables_with_keys_of_one_type_are_told_apart(
    topics: Topics, tables: dict[str, Sample], order: tuple[str, str], outer: tuple[bool, bool]
) -> None:
    stream = orders(draws("keys of one type"))
    text, wanted = expected(tables, list(zip(order, outer, strict=True)), stream)
    assert wanted
    assert topics.values(text, {name: name for name in order}, stream) == wanted


def test_one_topic_is_joined_twice_by_different_columns(
    topics: Topics, tables: dict[str, Sample]
) -> None:
    stream, rows = orders(draws("one topic twice")), tables["city"].rows
    text = (
        "SELECT c.id, a.name AS home, b.name AS other FROM x c "
        "LEFT JOIN t a ON c.cust = a.cid LEFT JOIN t b ON b.cid = c.cust + 1"
    )
    joins = [
        Join("a", rows, lambda found: found["c"]["cust"], outer=True),
        Join("b", rows, lambda found: _next(found["c"]["cust"]), outer=True),
    ]
    wanted = results(
        stream, joins, [("id", "c", "id"), ("home", "a", "name"), ("other", "b", "name")]
    )
    assert topics.values(text, {"a": "city", "b": "city"}, stream) == wanted


def test_a_join_by_a_column_of_the_table_before_it(
    topics: Topics, tables: dict[str, Sample]
) -> None:
    stream = orders(draws("a column of the table before it"))
    text = (
        "SELECT c.id, city.name AS city, tier.name AS tier FROM x c "
        "LEFT JOIN t city ON c.cust = city.cid JOIN t2 tier ON tier.cid = city.cid"
    )
    joins = [
        Join("city", tables["city"].rows, lambda found: found["c"]["cust"], outer=True),
        Join(
            "tier",
            tables["tier"].rows,
            lambda found: None if found["city"] is None else found["city"]["cid"],
            outer=False,
        ),
    ]
    wanted = results(
        stream, joins, [("id", "c", "id"), ("city", "city", "name"), ("tier", "tier", "name")]
    )
    assert wanted
    assert topics.values(text, {"city": "city", "tier": "tier"}, stream) == wanted


def _next(value: int | None) -> int | None:
    return None if value is None else value + 1
