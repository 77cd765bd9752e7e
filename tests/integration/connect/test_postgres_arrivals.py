"""What arrives of each type of PostgreSQL is what docs/reference/postgres-types.md says.

Each value is captured twice: by the snapshot, and from PostgreSQL's log.
"""

import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from local_platform import Endpoints
from processors.connect.postgres_types import ARRIVALS
from projections.connectors.tables import slot_of
from self_service.cli.framework.exits import ExitCode
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.integration.test_cli_connect import drop_slots
from tests.kafka_client import eventually, fresh, reading

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.slow
NOUN = ("connect", "connector")
UUID = "7f2c1f7e-5c53-4d0b-9d6a-0d3b8f1f0a11"
POINT = {"x": 1.5, "y": 2.0, "wkb": struct.pack("<BIdd", 1, 1, 1.5, 2.0), "srid": None}
PRECISE: dict[str, tuple[str, str, Any]] = {
    **{f"time{p}": (f"time({p})", "'23:59:59'", 86_399_000) for p in range(4)},
    **{f"time{p}": (f"time({p})", "'23:59:59'", 86_399_000_000) for p in range(4, 7)},
    **{f"stamp{p}": (f"timestamp({p})", "'1970-01-01 00:00:01'", 1_000) for p in range(4)},
    **{f"stamp{p}": (f"timestamp({p})", "'1970-01-01 00:00:01'", 1_000_000) for p in range(4, 7)},
    "midnight": ("time(3)", "'24:00'", 86_400_000),
}
"""Column -> (declared with its precision, literal, what arrives)."""
ARRIVE: dict[str, tuple[str, str, Any]] = {
    "boolean": ("boolean", "true", True),
    "smallint": ("smallint", "-32768", -32768),
    "integer": ("integer", "2147483647", 2147483647),
    "bigint": ("bigint", "9223372036854775807", 9223372036854775807),
    "oid": ("oid", "4000000000", 4000000000),
    "real": ("real", "0.5", 0.5),
    "double precision": ("double precision", "0.1", 0.1),
    "numeric": ("numeric(20, 4)", "1234567890123456.7891", Decimal("1234567890123456.7891")),
    "text": ("text", "'Zoë ☃'", "Zoë ☃"),
    "character varying": ("varchar(8)", "'ab '", "ab "),
    "character": ("char(5)", "'ab'", "ab   "),
    '"char"': ('"char"', "'a'", "a"),
    "bytea": ("bytea", r"'\xdeadbeef00'", b"\xde\xad\xbe\xef\0"),
    "uuid": ("uuid", f"'{UUID}'", UUID),
    "json": ("json", """'{"a":  1, "a": 2}'""", '{"a":  1, "a": 2}'),
    "jsonb": ("jsonb", """'{"b": 1.50}'""", '{"b": 1.50}'),
    "enum": ("{schema}.mood", "'sad'", "sad"),
    "domain": ("{schema}.word", "'x'", "x"),
    "timestamp with time zone": (
        "timestamptz",
        "'2026-01-31 23:59:59.123456+05:30'",
        "2026-01-31T18:29:59.123456Z",
    ),
    "timestamp without time zone": ("timestamp", "'1969-12-31 23:59:59.999999'", -1),
    "date": ("date", "'1582-10-04'", -141438),
    "time without time zone": ("time", "'23:59:59.999999'", 86_399_999_999),
    "time with time zone": ("timetz", "'23:59:59.123456+05:30'", "18:29:59.123456Z"),
    "interval": ("interval", "'1 year 2 mons 3 days 04:05:06.789'", "P1Y2M3DT4H5M6.789S"),
    "inet": ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    "cidr": ("cidr", "'10.0.0.0/8'", "10.0.0.0/8"),
    "macaddr": ("macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
    "macaddr8": ("macaddr8", "'08:00:2b:01:02:03:04:05'", "08:00:2b:01:02:03:04:05"),
    "bit": ("bit(12)", "B'101000010001'", b"\x11\x0a"),
    "bit varying": ("varbit(5)", "B'101'", b"\x05"),
    "point": ("point", "'(1.5,2)'", POINT),
    "tsvector": ("tsvector", "'a:1 b:2'", "'a':1 'b':2"),
    "int4range": ("int4range", "'[1,5)'", "[1,5)"),
    "int8range": ("int8range", "'[1,5)'", "[1,5)"),
    "numrange": ("numrange", "'[1.5,)'", "[1.5,)"),
    "tsrange": (
        "tsrange",
        "'[2026-01-01,2026-02-01)'",
        '["2026-01-01 00:00:00","2026-02-01 00:00:00")',
    ),
    "tstzrange": (
        "tstzrange",
        "'[2026-01-01 00:00+02,2026-02-01 00:00+02)'",
        '["2025-12-31 22:00:00+00","2026-01-31 22:00:00+00")',
    ),
    "daterange": ("daterange", "'[2026-01-01,2026-02-01)'", "[2026-01-01,2026-02-01)"),
    "smallint[]": ("smallint[]", "ARRAY[1, NULL]", [1, None]),
    "integer[]": ("integer[]", "ARRAY[1, NULL]", [1, None]),
    "bigint[]": ("bigint[]", "ARRAY[9007199254740993]", [9007199254740993]),
    "boolean[]": ("boolean[]", "ARRAY[true, NULL]", [True, None]),
    "real[]": ("real[]", "ARRAY[0.5, NULL]", [0.5, None]),
    "double precision[]": ("double precision[]", "ARRAY[0.1]", [0.1]),
    "numeric[]": ("numeric(10, 2)[]", "ARRAY[1.25, NULL]", [Decimal("1.25"), None]),
    "text[]": ("text[]", "ARRAY['x', NULL, 'y z']", ["x", None, "y z"]),
    "uuid[]": ("uuid[]", f"ARRAY['{UUID}'::uuid]", [UUID]),
    "date[]": ("date[]", "ARRAY['2026-01-01'::date]", [20454]),
    "json[]": ("json[]", "ARRAY['1'::json]", ["1"]),
    "inet[]": ("inet[]", "ARRAY['10.0.0.1'::inet]", ["10.0.0.1"]),
    "enum[]": ("{schema}.mood[]", "ARRAY['sad'::{schema}.mood]", ["sad"]),
}
"""Kind -> (declared, literal, what arrives)."""
LOST: dict[str, tuple[str, str, Any, Any]] = {
    "early_day": ("date", "'0044-03-15 BC'", -703383, -735160),
    "first_lost": ("date", "'1582-10-05'", -141427, -141437),
    "last_lost": ("date", "'1582-10-14'", -141418, -141428),
    "after_lost": ("date", "'1582-10-15'", -141427, -141427),
    "all_days": ("date", "'infinity'", -622191234, -2147472692),
    "days": ("date[]", "'{1582-10-04,1582-10-05,1582-10-14,1582-10-15}'",
             [-141438, -141427, -141418, -141427], [-141438, -141427, -141418, -141427]),
    "early_days": ("date[]", "'{0044-03-15 BC,0001-01-01}'",
                   [-703383, -719162], [-703383, -719162]),
    "endless_days": ("date[]", "'{infinity,-infinity}'",
                     [-622191234, -625821272], [-622191234, -625821272]),
    "moment": ("timestamp", "'1582-10-05 12:00'", -12220113600000000, -12220113600000000),
    "early_moment": ("timestamp", "'0044-03-15 12:00 BC'", -63517780800000000, -63517780800000000),
    "moment_tz": ("timestamptz", "'1582-10-05 12:00Z'", "1582-10-05T12:00:00.000000Z",
                  "1582-10-05T12:00:00.000000Z"),
    "for_ever": ("timestamp", "'infinity'", 9223372036825200000, 9223372036825200000),
    "ever_tz": ("timestamptz", "'infinity'", "infinity", "infinity"),
    "early_tz": ("timestamptz", "'0044-03-15 12:00:00+00 BC'", "-0043-03-15T12:00:00.000000Z",
                 "-0043-03-15T12:00:00.000000Z"),
    "always": ("interval", "'infinity'", "P0Y0M0DT0H0M0S", "P0Y0M0DT0H0M0S"),
    "always_before": ("interval", "'-infinity'", "P0Y0M0DT0H0M0S", "P0Y0M0DT0H0M0S"),
    "midnight": ("timetz", "'24:00:00+00'", "00:00:00Z", "00:00:00Z"),
    "three_zeros": ("bit(3)", "B'000'", b"", b""),
    "grid": ("integer[]", "'{{1,2},{3,4}}'", [None, None], [None, None]),
    "from_zero": ("integer[]", "'[0:1]={1,2}'", [1, 2], [1, 2]),
    "zeros": ("varbit", "B'00101'", b"\x05", b"\x05"),
    "any_scale": ("numeric", "1.50", {"scale": 1, "value": b"\x0f"},
                  {"scale": 1, "value": b"\x0f"}),
    "any_scales": ("numeric[]", "'{1.50}'", [{"scale": 1, "value": b"\x0f"}],
                   [{"scale": 1, "value": b"\x0f"}]),
}  # fmt: skip
"""Column -> (declared, literal, what arrives of a snapshot, and of PostgreSQL's log)."""
REFUSED = {
    "a_name": "name",
    "a_box": "box",
    "a_line": "line",
    "a_path": "path",
    "a_pair": "{schema}.pair",
    "a_domain": "{schema}.moment",
    "a_multirange": "int4multirange",
    "a_query": "tsquery",
    "an_lsn": "pg_lsn",
    "cash": "money",
    "moneys": "money[]",
    "intervals": "interval[]",
    "grid": "integer[][]",
    "scaled": "numeric(5, -2)",
    "fine": "numeric(3, 5)",
    "many_scaled": "numeric(5, -2)[]",
    "fine_domain": "{schema}.fine",
}


@pytest.fixture
def schema(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """A schema with types of its own, and a connection to its database."""
    name = f"kinds_{uuid4().hex[:8]}"
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        database.execute(
            f"CREATE SCHEMA {name}; CREATE TYPE {name}.mood AS ENUM ('sad', 'ok');"
            f"CREATE TYPE {name}.pair AS (a int, b text); CREATE DOMAIN {name}.word AS text;"
            f"CREATE DOMAIN {name}.moment AS timestamptz;"
            f"CREATE DOMAIN {name}.fine AS numeric(2, 5);"
            f"CREATE DOMAIN {name}.amount AS numeric(20, 4);"
            f"CREATE DOMAIN {name}.any_scale AS numeric"
        )
        yield name, database
        drop_slots(database, f"{name}_rows")
        database.execute(f"DROP SCHEMA {name} CASCADE")


def make(database: Any, schema: str, columns: dict[str, str]) -> str:
    """A table with these columns, column -> type."""
    every = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    table = f"{schema}.{schema}"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {every})".replace(
        "{schema}", schema))  # fmt: skip
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    return table


def is_streaming(database: Any, connector: str) -> bool:
    """Whether its snapshot has ended."""
    active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
    return database.execute(active, (slot_of(connector),)).fetchone() is not None


def captured_twice(
    sdm: Sdm,
    owner: Party,
    mesh: Endpoints,
    schema: tuple[str, Any],
    values: list[str],
    *settings: str,
) -> list[dict[str, Any]]:
    """The row of a snapshot, and that of an insert from PostgreSQL's log."""
    place, database = schema
    row, name = ", ".join(values).replace("{schema}", place), f"{place}-rows".replace("_", "-")
    database.execute(f"INSERT INTO {place}.{place} VALUES (1, {row})")
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", f"{place}.{place}")
    # another test may hold the last slot for a moment
    sdm(*adding, *settings, "-d", owner.name, "--until", "decided")
    try:
        eventually(lambda: is_streaming(database, f"{owner.name}.{name}"), "the connector streams")
        database.execute(f"INSERT INTO {place}.{place} VALUES (2, {row})")
        return read(mesh, f"{owner.name}.{place}")
    finally:
        sdm(*NOUN, "delete", name, "-d", owner.name)


def read(mesh: Endpoints, topic: str) -> list[dict[str, Any]]:
    """Both rows, decoded by Confluent's client."""
    decode = AvroDeserializer(
        SchemaRegistryClient({"url": mesh.registry_url}),
        conf={"subject.name.strategy": topic_subject_name_strategy},
    )
    consumer = Consumer(reading(mesh.administration("east"), fresh("kinds")))
    rows: dict[int, dict[str, Any]] = {}

    def both() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            context = SerializationContext(topic, MessageField.VALUE)
            value: Any = decode(message.value(), context)
            rows[value["after"]["id"]] = value["after"]
        return len(rows) == 2

    try:
        consumer.subscribe([topic])
        eventually(both, "both rows arrived")
    finally:
        consumer.close()
    return [rows[1], rows[2]]


def test_each_type_arrives_as_the_reference_says(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    assert list(ARRIVE) == [one.kind for one in ARRIVALS]
    names = {kind: f"c{number}" for number, kind in enumerate(ARRIVE)}
    make(schema[1], schema[0], {names[kind]: one[0] for kind, one in ARRIVE.items()})
    values = [one[1] for one in ARRIVE.values()]
    for row in captured_twice(sdm, owner, mesh, schema, values):
        found = {kind: row[name] for kind, name in names.items()}
        assert found == {kind: one[2] for kind, one in ARRIVE.items()}


def test_times_up_to_a_precision_of_3_arrive_in_milliseconds(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    make(schema[1], schema[0], {name: one[0] for name, one in PRECISE.items()})
    values = [one[1] for one in PRECISE.values()]
    for row in captured_twice(sdm, owner, mesh, schema, values):
        assert {name: row[name] for name in PRECISE} == {n: one[2] for n, one in PRECISE.items()}


def test_what_is_lost_is_what_the_reference_says(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    make(schema[1], schema[0], {name: one[0] for name, one in LOST.items()})
    values = [one[1] for one in LOST.values()]
    for index, row in enumerate(captured_twice(sdm, owner, mesh, schema, values)):
        expected = {name: one[2 + index] for name, one in LOST.items()}
        assert {name: row[name] for name in LOST} == expected


def test_days_that_the_calendar_left_out_are_the_keys_of_others_in_a_snapshot(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    place, database = schema
    database.execute(f"CREATE TABLE {place}.{place} (id int, day date PRIMARY KEY)")
    database.execute(f"INSERT INTO {place}.{place} VALUES (1, '1582-10-06'), (2, '1582-10-16')")
    name = f"{place}-rows".replace("_", "-")
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", f"{place}.{place}")
    told = sdm(*adding, "-d", owner.name, "--until", "decided").err
    try:
        assert f"{place}.{place}.day (date) is in a key: by such values two rows" in told
        assert [row["day"] for row in read(mesh, f"{owner.name}.{place}")] == [-141426, -141426]
    finally:
        sdm(*NOUN, "delete", name, "-d", owner.name)


@pytest.mark.parametrize(
    ("kind", "value", "advice", "is_change"),
    [
        ("numeric(20, 4)", "NaN", "decimal.handling.mode=string", False),
        ("{schema}.amount", "NaN", "decimal.handling.mode=string", False),
        ("{schema}.amount", "NaN", "decimal.handling.mode=string", True),
        ("{schema}.any_scale", "NaN", "decimal.handling.mode=string", False),
        ("{schema}.any_scale", "NaN", "decimal.handling.mode=string", True),
        ("numeric", "NaN", "decimal.handling.mode=string", True),
        ("numeric[]", "{NaN}", "a NaN in an array of decimals", False),
        ("{schema}.mood[]", "{sad,NULL}", "a NULL in one of an enum", False),
        ("{schema}.mood[]", "{sad,NULL}", "a NULL in one of an enum", True),
    ],
)
def test_a_value_that_has_none_in_the_topic_fails_its_connector_and_is_no_null(
    sdm: Sdm,
    owner: Party,
    schema: tuple[str, Any],
    kind: str,
    value: str,
    advice: str,
    is_change: bool,
) -> None:
    place, database = schema
    table, name = make(database, place, {"n": kind}), f"{place}-rows".replace("_", "-")
    if not is_change:
        database.execute(f"INSERT INTO {table} VALUES (1, '{value}')")
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", table)
    sdm(*adding, "-d", owner.name, "--until", "decided")
    if is_change:
        eventually(lambda: is_streaming(database, f"{owner.name}.{name}"), "the connector streams")
        database.execute(f"INSERT INTO {table} VALUES (1, '{value}')")

    def stands() -> bool:
        found = sdm(*NOUN, "describe", f"{owner.name}.{name}").document
        return found["state"] == "FAILED" and f"{table}.n" in found["failure"]

    try:
        eventually(stands, "the connector has failed")
        failure = sdm(*NOUN, "describe", f"{owner.name}.{name}").document["failure"]
        assert advice in failure
    finally:
        sdm(*NOUN, "delete", name, "-d", owner.name)


def test_every_decimal_arrives_as_text_where_that_is_set(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    text = {
        "nan": ("numeric(20, 4)", "'NaN'", "NAN"),
        "infinite": ("numeric", "'Infinity'", "POSITIVE_INFINITY"),
        "wide": ("numeric(50, 2)", "123456789012345678901234567890123456789012.25", None),
    }
    make(schema[1], schema[0], {name: one[0] for name, one in text.items()})
    values = [one[1] for one in text.values()]
    as_text = ("--set", "decimal.handling.mode=string")
    for row in captured_twice(sdm, owner, mesh, schema, values, *as_text):
        found = {name: row[name] for name in text}
        assert found == {name: one[2] or one[1] for name, one in text.items()}


def test_a_scale_above_the_precision_arrives_as_text(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    text = {
        "small": ("numeric(3, 5)", "0.00123", "0.00123"),
        "tiny": ("numeric(3, 20)", "0.00000000000000000123", "0.00000000000000000123"),
    }
    make(schema[1], schema[0], {name: one[0] for name, one in text.items()})
    values = [one[1] for one in text.values()]
    as_text = ("--set", "decimal.handling.mode=string")
    for row in captured_twice(sdm, owner, mesh, schema, values, *as_text):
        assert {name: row[name] for name in text} == {name: one[2] for name, one in text.items()}


def test_a_scale_below_zero_is_refused_as_text_as_well(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table = make(database, place, {"hundreds": "numeric(5, -2)", "small": "numeric(3, 5)"})
    adding = (*NOUN, "add", fresh("kinds"), "--type", "debezium-postgres", "--table", table)
    as_text = ("--set", "decimal.handling.mode=string")
    told = " ".join(sdm(*adding, *as_text, "-d", owner.name, code=ExitCode.REFUSED).err.split())
    assert "refused (column_not_captured)" in told
    assert f"--set column.exclude.list={table}.hundreds" in told


NAMESAKES = ("text", "int4", "numeric", "uuid", "timestamptz", "point", "bool", "jsonb")
"""Names of types that tables of anybody may have as well."""


def test_each_type_arrives_beside_tables_of_another_schema_that_are_named_like_types(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    place, database = schema
    other = f"{place}_other"
    database.execute(f"CREATE SCHEMA {other}")
    try:
        for name in NAMESAKES:
            database.execute(f'CREATE TABLE {other}."{name}" (id int PRIMARY KEY)')
        names = {kind: f"c{number}" for number, kind in enumerate(ARRIVE)}
        make(database, place, {names[kind]: one[0] for kind, one in ARRIVE.items()})
        values = [one[1] for one in ARRIVE.values()]
        for row in captured_twice(sdm, owner, mesh, schema, values):
            found = {kind: row.get(name, "missing") for kind, name in names.items()}
            assert found == {kind: one[2] for kind, one in ARRIVE.items()}
    finally:
        database.execute(f"DROP SCHEMA {other} CASCADE")


def test_a_column_whose_type_has_the_name_of_a_table_beside_it_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    for name in NAMESAKES:
        database.execute(f'CREATE TABLE {place}."{name}" (id int PRIMARY KEY)')
    database.execute(f"CREATE TYPE {place}.inet AS ENUM ('a')")
    columns = {"a": "uuid", "b": "uuid[]", "c": "boolean[]", "d": "inet", "e": "date"}
    table = make(database, place, columns)
    adding = (*NOUN, "add", fresh("kinds"), "--type", "debezium-postgres", "--table", table)
    told = " ".join(sdm(*adding, "-d", owner.name, code=ExitCode.REFUSED).err.split())
    # without its column the key would be another one
    assert f"refused (key_not_captured): {table}.id is of the type integer" in told
    assert f"takes {place}.int4," in told
    database.execute(f'DROP TABLE {place}."int4"')
    told = " ".join(sdm(*adding, "-d", owner.name, code=ExitCode.REFUSED).err.split())
    assert "refused (column_not_captured)" in told
    for column, namesake in (("a", "uuid"), ("b", "uuid"), ("c", "bool"), ("d", "inet")):
        assert f"{table}.{column} is of the type" in told
        assert f"takes {place}.{namesake}," in told
    assert f"{table}.e" not in told


def test_values_that_would_be_lost_are_told_before_the_connector_starts(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    make(database, place, {"day": "date", "list": "int[]", "word": "text"})
    adding = (*NOUN, "add", fresh("told"), "--type", "debezium-postgres", "-d", owner.name)
    captured = (*adding, "--table", f"{place}.{place}", "--dry-run")
    told = sdm(*captured).err
    assert f"values of {place}.{place}.day (date) that do not arrive as they are: infinity" in told
    assert f"values of {place}.{place}.list (integer[]) that do not" in told
    assert "word" not in told
    without = sdm(*captured, "--set", f"column.exclude.list={place}.{place}.day").err
    assert "(date)" not in without


@pytest.mark.parametrize(
    ("key", "is_told"),
    [
        ("PRIMARY KEY (id, day)", True),
        # a unique index is no key
        ("UNIQUE (day)", False),
        ("PRIMARY KEY (id) INCLUDE (day)", False),
        ("PRIMARY KEY (id), UNIQUE (day)", False),
    ],
)
def test_a_key_whose_values_would_be_lost_is_told_before_the_connector_starts(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], key: str, is_told: bool
) -> None:
    place, database = schema
    table = f"{place}.keyed"
    database.execute(f"CREATE TABLE {table} (id int NOT NULL, day date NOT NULL, {key})")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    adding = (*NOUN, "add", fresh("told"), "--type", "debezium-postgres", "-d", owner.name)
    told = sdm(*adding, "--table", table, "--dry-run").err
    assert f"values of {table}.day (date)" in told
    assert (f"{table}.day (date) is in a key" in told) is is_told


def test_a_column_that_would_not_arrive_is_refused_and_can_be_left_out(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table = make(database, place, REFUSED)
    adding = (*NOUN, "add", fresh("kinds"), "--type", "debezium-postgres", "--table", table)
    own = ("-d", owner.name)
    told = sdm(*adding, *own, code=ExitCode.REFUSED).err
    assert "refused (column_not_captured)" in told
    left = ",".join(f"{table}.{name}" for name in REFUSED)
    assert f"--set column.exclude.list={left}" in " ".join(told.split())
    sdm(*adding, "--set", f"column.exclude.list={left}", "--dry-run", *own)


def test_a_table_whose_generated_column_would_stop_its_changes_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table = make(
        database, place, {"n": "text", "double": "int GENERATED ALWAYS AS (id * 2) STORED"}
    )
    adding = (*NOUN, "add", fresh("kinds"), "--type", "debezium-postgres", "--table", table)
    told = sdm(*adding, "-d", owner.name, code=ExitCode.REFUSED).err
    assert "refused (table_without_identity)" in told
    assert "DROP EXPRESSION" in told
