"""A sink's table has the values of the captured table as they are, or says that it has not."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import SEEK_END, BytesIO
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from fastavro import parse_schema, schemaless_writer
from psycopg import sql

from local_platform import Endpoints
from tests.integration.connect_owner import owner, topics_of
from tests.integration.test_cli import Party, Sdm, sdm
from tests.integration.test_cli_connect import drop_slots
from tests.kafka_client import PATIENCE_S, eventually, reading, register_schema, seen_within

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.slow
NOUN = ("connect", "connector")
FIRST, SECOND = Decimal(100000000000000000000000000001), Decimal(100000000000000000000000000002)
"""As floating point they are one number."""
Sinking = Callable[..., Any]


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """The name of a table and of all that is made of it, and a connection."""
    name = f"values_{uuid4().hex[:8]}"
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        yield name, database
        drop_slots(database, name)
        made = "SELECT tablename FROM pg_tables WHERE tablename LIKE %s"
        for (one,) in database.execute(made, (f"{name}%",)).fetchall():
            database.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(one)))
        database.execute(f"DROP DOMAIN IF EXISTS {name}_rougher, {name}_rough")


@pytest.fixture
def sink(sdm: Sdm, owner: Party, table: tuple[str, Any], request: pytest.FixtureRequest) -> Sinking:
    """Adds a sink of the table's topic into the table with a suffix."""

    def add(suffix: str, *more: str) -> Any:
        name = f"{table[0]}-{suffix}"
        done = sdm(
            *(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", table[0], "-d", owner.name),
            *("--set", f"collection.name.format={table[0]}_{suffix}", *more),
        )
        request.addfinalizer(lambda: sdm(*NOUN, "delete", name, "-d", owner.name))
        return done

    return add


def capture(
    sdm: Sdm,
    owner: Party,
    table: tuple[str, Any],
    request: pytest.FixtureRequest,
    columns: str,
    first: str,
    *more: str,
) -> None:
    """Captures a new table with these columns, and has its first rows in the topic."""
    name, database = table
    database.execute(f"CREATE TABLE {name} ({columns})")
    database.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    sdm(*NOUN, "add", name, "--type", "debezium-postgres", "--table", name, *more, "-d", owner.name)
    request.addfinalizer(lambda: sdm(*NOUN, "delete", name, "-d", owner.name))
    database.execute(first)
    topic = f"{owner.name}.{name}"
    eventually(lambda: topic in topics_of(sdm, owner.name), f"there is the topic {topic}")


def rows(database: Any, table: str, columns: str = "*") -> list[Any]:
    try:
        found: list[Any] = database.execute(
            f"SELECT {columns} FROM {table} ORDER BY 1, 2"
        ).fetchall()
    except psycopg.errors.UndefinedTable:
        return []
    return found


def first(config: Any, topic: str) -> dict[str, bytes]:
    """Key and value of the first record of a topic."""
    consumer = Consumer(config)
    try:
        consumer.subscribe([topic])
        found: list[Any] = []
        eventually(lambda: found.extend(_records(consumer)) or found, f"{topic} has a record")
        return {"key": found[0].key(), "value": found[0].value()}
    finally:
        consumer.close()


def _records(consumer: Consumer) -> list[Any]:
    return [one for one in consumer.consume(1, 1) if one.error() is None]


def test_a_decimal_of_any_scale_is_exact_in_a_sink_or_the_sink_fails(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    """Two keys are never one row, and no value is rounded in silence."""
    name, database = table
    columns = (
        "k numeric PRIMARY KEY, v numeric, many numeric[], days date[], scaled numeric(5, 2)[]"
    )
    written = (
        f"INSERT INTO {name} VALUES ({FIRST}, 0.1000000000000000000000001, '{{1.50,NULL,-2e-30}}',"
        f" '{{2298-05-24,1583-01-01,NULL}}', '{{1.5,NULL,-123.45}}'),"
        f" ({SECOND}, 3, NULL, '{{}}', '{{}}'),"
        " (5, 2.675, '{}', NULL, NULL), (-1e-40, -1e40, NULL, NULL, '{0}')"
    )
    capture(sdm, owner, table, request, columns, written)
    database.execute(f"CREATE TABLE {name}_own ({columns})")
    database.execute(f"CREATE TABLE {name}_old (k double precision PRIMARY KEY)")
    database.execute(f"CREATE DOMAIN {name}_rough AS double precision[]")
    database.execute(f"CREATE DOMAIN {name}_rougher AS {name}_rough")
    database.execute(f"CREATE TABLE {name}_domain (k numeric PRIMARY KEY, many {name}_rougher)")
    sink("record", "--key", "record")
    sink("position")
    sink("own", "--key", "record", "--set", "dialect.postgres.unnest.insert.enabled=false")
    # it may be active for a moment: the table is looked at with the first record
    sink("old", "--key", "record", "--until", "decided")
    sink("domain", "--key", "record", "--until", "decided")

    def failure(suffix: str) -> str:
        shown = sdm(*NOUN, "describe", f"{owner.name}.{name}-{suffix}").document
        return str(shown["failure"])

    for suffix, column in (("old", "k"), ("domain", "many")):
        told = f"column_not_exact: public.{name}_{suffix}.{column};"
        eventually(lambda s=suffix, t=told: t in failure(s), "the column is told")
        assert "ALTER TABLE" in failure(suffix)
        assert rows(database, f"{name}_{suffix}", "k, k") == []

    database.execute(f"UPDATE {name} SET v = v / 3 WHERE k = %s", (FIRST,))
    database.execute(f"DELETE FROM {name} WHERE k = %s", (SECOND,))
    database.execute(f"INSERT INTO {name} VALUES (%s + 0.5, -0.0, NULL, NULL, NULL)", (SECOND,))
    asked = "k, v, many, days::text, scaled::text"
    expected = rows(database, name, asked)
    assert len(expected) == 4
    for suffix in ("record", "own"):
        eventually(
            lambda s=suffix: rows(database, f"{name}_{s}", asked) == expected, f"{suffix} is exact"
        )
    kinds = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum > 0 "
    for suffix in ("record", "position"):
        made = dict(database.execute(f"{kinds} AND attrelid = '{name}_{suffix}'::regclass"))
        found = {one: made[one] for one in ("k", "v", "many", "days", "scaled")}
        decimals = {"k": "numeric", "v": "numeric", "many": "numeric[]", "scaled": "numeric[]"}
        assert found == {**decimals, "days": "date[]"}
    eventually(
        lambda: (
            {one[0] for one in rows(database, f"{name}_position", "k, v")}
            == {FIRST, SECOND, Decimal(f"{SECOND}.5"), Decimal(5), Decimal("-1e-40")}
        ),
        "the sink by position is exact",
    )


def test_no_header_stops_a_sink(
    sdm: Sdm,
    owner: Party,
    mesh: Endpoints,
    table: tuple[str, Any],
    sink: Sinking,
    request: pytest.FixtureRequest,
) -> None:
    """Debezium writes the new key of a row as JSON, and anybody may write any bytes."""
    name, database = table
    columns = "id int, k text, v int, PRIMARY KEY (id, k)"
    capture(sdm, owner, table, request, columns, f"INSERT INTO {name} VALUES (1, '1', 1)")
    database.execute(f"UPDATE {name} SET k = '11'")
    sink("record", "--key", "record")
    eventually(lambda: rows(database, f"{name}_record") == [(1, "11", 1)], "the row has its key")

    topic, login = f"{owner.name}.{name}", mesh.administration("east")
    headers = [("x", b'{"a":1,"b":"y"}'), ("y", b"\xff\xfe{"), ("z", b""), ("z", None)]
    writing = Producer(login.config())
    writing.produce(topic, headers=headers, **first(reading(login, f"first-{name}"), topic))
    assert writing.flush(30) == 0
    database.execute(f"INSERT INTO {name} VALUES (2, '2', 2)")
    eventually(lambda: rows(database, f"{name}_record")[-1:] == [(2, "2", 2)], "the sink goes on")


def test_a_time_that_a_sink_cannot_write_is_a_dead_letter_and_the_next_one_arrives(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    name, database = table
    written = f"INSERT INTO {name} VALUES (1, '24:00', NULL), (2, NULL, '24:00'), (3, NULL, NULL)"
    capture(sdm, owner, table, request, "id int PRIMARY KEY, t time, t3 time(3)", written)
    database.execute(f"UPDATE {name} SET t = '23:59:59.999999' WHERE id = 1")
    sink("record", "--key", "record")
    eventually(lambda: len(rows(database, f"{name}_record")) == 2, "what can be written is there")
    assert [str(one[1]) for one in rows(database, f"{name}_record")] == ["23:59:59.999999", "None"]
    dead = f"{owner.name}.{name}-record.dead"
    letters = sdm("topic", "consume", dead, "--headers", "-d", owner.name).out
    assert letters.count(f"value_not_exact: {owner.name}.{name}-0 at offset") >= 2


DECIMAL = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    "connect.name": "io.debezium.data.VariableScaleDecimal",
    "connect.version": 1,
}


def produce(
    sdm: Sdm,
    owner: Party,
    mesh: Endpoints,
    topic: str,
    fields: dict[str, Any],
    rows: list[dict[str, Any]],
) -> None:
    """Make the topic with these fields, name -> type in Avro, and write its rows.

    A field with a default is given as Avro has it, without its name.

    Values of logical types are given as the numbers that they are.
    """
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    write(mesh, topic, fields, rows)


def write(
    mesh: Endpoints,
    topic: str,
    fields: dict[str, Any],
    rows: list[dict[str, Any]],
    written_as: dict[str, Any] | None = None,
) -> None:
    """Write rows with these fields, as `produce` does, into a topic that there is.

    `written_as` has the types by which values are written, where they are others.
    """
    number = register_schema(mesh, f"{topic}-value", json.dumps(_row(fields)))
    writer = json.dumps(_row(fields | (written_as or {}))).replace("logicalType", "kind")
    parsed = parse_schema(json.loads(writer))
    writing = Producer(mesh.administration("east").config())
    for one in rows:
        text = BytesIO(b"\0" + number.to_bytes(4, "big"))
        text.seek(0, SEEK_END)
        schemaless_writer(text, parsed, one)
        writing.produce(topic, text.getvalue())
    assert writing.flush(60) == 0


def _row(fields: dict[str, Any]) -> dict[str, Any]:
    named = [
        {"name": name, **(kind if "default" in kind else {"type": kind})}
        for name, kind in fields.items()
    ]
    return {"type": "record", "name": "Row", "fields": named}


def test_a_decimal_of_too_many_digits_is_a_dead_letter_and_the_next_one_arrives(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """PostgreSQL has none of them, and to make their digits would take minutes."""
    name, database = table
    topic = f"{owner.name}.{name}"
    digits = (
        *((400_000_000, b"\1"), (-262_144, b"\1"), (-400_000_000, b"\1"), (0, b"")),
        *((16_384, b"\1"), (0, b"\x7f" * 70_000), (2, b"\x0f"), (-131_071, b"\1")),
        (16_383, b"\1"),
    )
    written: list[dict[str, Any]] = [
        {"id": at, "n": {"scale": scale, "value": value}, "many": []}
        for at, (scale, value) in enumerate(digits)
    ]
    written.append({"id": 9, "n": {"scale": 1, "value": b"\x0f"}, "many": [written[0]["n"]]})
    fields = {
        "id": "int",
        "n": DECIMAL,
        "many": {"type": "array", "items": DECIMAL["connect.name"]},
    }
    produce(sdm, owner, mesh, topic, fields, written)
    sink("position")
    expected = [(6, Decimal("0.15")), (7, Decimal(10**131_071)), (8, Decimal((0, (1,), -16_383)))]
    eventually(
        lambda: rows(database, f"{name}_position", "id, n") == expected, "what is exact is there"
    )
    dead = f"{owner.name}.{name}-position.dead"
    letters = sdm("topic", "consume", dead, "--headers", "-d", owner.name).out
    for offset in (0, 1, 2, 3, 4, 5, 9):
        assert f"value_not_exact: {topic}-0 at offset {offset}: " in letters


def test_a_schema_whose_decimals_have_too_many_digits_is_no_different(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic, many = f"{owner.name}.{name}", 400_000_000
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    writing = Producer(mesh.administration("east").config())
    for scale in (many, 2):
        decimal = {"type": "bytes", "logicalType": "decimal", "precision": scale, "scale": scale}
        fields = [{"name": "id", "type": "int"}, {"name": "n", "type": decimal}]
        schema = {"type": "record", "name": "Row", "fields": fields}
        number = register_schema(mesh, f"{topic}-{scale}-value", json.dumps(schema))
        # id 1, and digits of one byte, 15
        writing.produce(topic, b"\0" + number.to_bytes(4, "big") + b"\2\2\x0f")
    assert writing.flush(60) == 0
    sink("position")
    expected = [(1, Decimal("0.15"))]
    eventually(lambda: rows(database, f"{name}_position", "id, n") == expected, "it goes on")


def test_days_and_times_of_connects_own_types_are_as_they_were(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    name, database = table
    columns = "id int PRIMARY KEY, t time, d date, days date[], at timestamp"
    days = "'{1500-03-01,2026-01-01,NULL}'"
    written = (
        f"INSERT INTO {name} VALUES (1, '24:00', NULL, NULL, NULL),"
        f" (2, '23:59:59.999', '1500-03-01', {days}, '1500-03-01 12:00:00.123')"
    )
    connect = ("--set", "time.precision.mode=connect")
    capture(sdm, owner, table, request, columns, written, *connect)
    database.execute(f"INSERT INTO {name} VALUES (3, '0:00', '2026-01-01', {days}, NULL)")
    sink("record", "--key", "record")
    asked = "id, t::text, d::text, days::text, at::text"
    expected = [one for one in rows(database, name, asked) if one[0] > 1]
    assert len(expected) == 2
    seen_within(PATIENCE_S, lambda: rows(database, f"{name}_record", asked) == expected)
    assert rows(database, f"{name}_record", asked) == expected
    dead = f"{owner.name}.{name}-record.dead"
    letters = sdm("topic", "consume", dead, "--headers", "-d", owner.name).out
    assert f"value_not_exact: {owner.name}.{name}-0 at offset" in letters


def test_days_in_arrays_are_as_they_were(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """Java's Date makes texts of them in a zone, and in another calendar."""
    name, database = table
    kind: list[Any] = ["null", {"type": "int", "logicalType": "date"}]
    fields = {"id": "int", "days": {"type": "array", "items": kind}}
    days = [-171_605, 20_454, None, -719_163]
    produce(sdm, owner, mesh, f"{owner.name}.{name}", fields, [{"id": 1, "days": days}])
    sink("position")
    expected = [(1, '{1500-03-01,2026-01-01,NULL,"0001-12-31 BC"}')]
    seen_within(
        PATIENCE_S, lambda: rows(database, f"{name}_position", "id, days::text") == expected
    )
    assert rows(database, f"{name}_position", "id, days::text") == expected


def test_the_words_of_a_tsvector_are_as_they_were_or_the_sink_fails(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    """Debezium leaves out the quotes of words, by which two of them are one."""
    name, database = table
    words = "'''fat cat'':1 ''it''''s'':2 plain'"
    written = f"INSERT INTO {name} VALUES (1, {words})"
    capture(sdm, owner, table, request, "id int PRIMARY KEY, v tsvector", written)
    database.execute(f"CREATE TABLE {name}_old (id int PRIMARY KEY, v tsvector)")
    sink("record", "--key", "record")
    sink("old", "--key", "record", "--until", "decided")
    expected = rows(database, name, "id, v::text")
    assert expected == [(1, "'fat cat':1 'it''s':2 'plain'")]
    eventually(lambda: rows(database, f"{name}_record", "id, v") == expected, "the words are there")
    connector = f"{owner.name}.{name}-old"

    def failure() -> str:
        return str(sdm(*NOUN, "describe", connector).document["failure"])

    eventually(lambda: "42804" in failure(), "the column is none of texts")
    assert rows(database, f"{name}_old", "id, v") == []
    database.execute(f"ALTER TABLE {name}_old ALTER COLUMN v TYPE text")
    sdm(*NOUN, "restart", connector, "-d", owner.name)
    eventually(lambda: rows(database, f"{name}_old", "id, v") == expected, "they are there as well")
