"""A sink's table has each value of the topic as it is, or the record is refused."""

import json
import math
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from confluent_kafka import Producer
from fastavro import parse_schema, schemaless_writer

from local_platform import Endpoints
from tests.integration.connect.test_sink_values import (
    DECIMAL,
    NOUN,
    Sinking,
    capture,
    produce,
    rows,
    sink,
    table,
    write,
)
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, register_schema

__all__ = ["owner", "sdm", "sink", "table"]
pytestmark = pytest.mark.slow
FIRST_DAY = -2440550
"""1 January 4713 BC."""
PLAIN_UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
UUID, SOURCE = "io.debezium.data.Uuid", "__debezium.source.column"
DAY_MS, DAY_US = 86_400_000, 86_400_000_000


def of(kind: str, name: str) -> Any:
    """A value of a type of Debezium's, or null."""
    return ["null", {"type": kind, "connect.name": f"io.debezium.time.{name}"}]


def logical(kind: str, name: str) -> Any:
    return ["null", {"type": kind, "logicalType": name}]


TIMES: dict[str, tuple[Any, Any, str, list[Any]]] = {
    "nano": (
        of("long", "NanoTimestamp"),
        1_700_000_000_000_001_000,
        "2023-11-14 22:13:20.000001",
        [1_700_000_000_999_999_999, -1],
    ),
    "nano_time": (of("long", "NanoTime"), 1_000, "00:00:00.000001", [1_001]),
    "zoned": (
        of("string", "ZonedTimestamp"),
        "2020-01-01T00:00:00.1234560Z",
        "2020-01-01 00:00:00.123456+00",
        ["9999-12-31T23:59:59.9999999Z", "-4713-11-24T00:00:00Z"],
    ),
    "zoned_time": (
        of("string", "ZonedTime"),
        "10:00:00.123456Z",
        "10:00:00.123456+00",
        ["10:00:00.1234567Z"],
    ),
    "ms": (
        logical("long", "timestamp-millis"),
        FIRST_DAY * DAY_MS,
        "4713-01-01 00:00:00 BC",
        [FIRST_DAY * DAY_MS - 1],
    ),
    "us": (
        of("long", "MicroTimestamp"),
        FIRST_DAY * DAY_US,
        "4713-01-01 00:00:00 BC",
        [FIRST_DAY * DAY_US - 1],
    ),
    "day": (logical("int", "date"), FIRST_DAY, "4713-01-01 BC", [FIRST_DAY - 1, -(2**31)]),
}
"""Column -> its type, a value that tables have, how PostgreSQL shows it, and others."""


def dead_letters(sdm: Sdm, owner: Party, connector: str) -> list[Any]:
    dead = f"{owner.name}.{connector}.dead"
    return sdm("topic", "consume", dead, "--headers", "-d", owner.name).lines


def letters(sdm: Sdm, owner: Party, connector: str) -> str:
    return str(dead_letters(sdm, owner, connector))


def write_keys(
    mesh: Endpoints, topic: str, subject: str, kind: Any, writer: str, keys: list[Any]
) -> None:
    """Write a record for each key: key and value are a record with the field k of this kind.

    `writer` is the type by which the field is written.
    """
    schema = {"type": "record", "name": "Row", "fields": [{"name": "k", "type": kind}]}
    number = register_schema(mesh, subject, json.dumps(schema))
    writing = Producer(mesh.administration("east").config())
    for one in keys:
        wire = BytesIO()
        schemaless_writer(wire, writer, one)
        found = b"\0" + number.to_bytes(4, "big") + wire.getvalue()
        writing.produce(topic, found, key=found)
    assert writing.flush(60) == 0


def test_a_time_that_no_table_has_is_a_dead_letter_and_the_next_one_arrives(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """The database would round it, or its driver would write -infinity."""
    name, database = table
    topic = f"{owner.name}.{name}"
    empty: dict[str, Any] = dict.fromkeys(TIMES)
    written = [empty | {column: bad} for column, found in TIMES.items() for bad in found[3]]
    written.append({column: found[1] for column, found in TIMES.items()})
    fields = {"id": "int", **{column: found[0] for column, found in TIMES.items()}}
    numbered = [{"id": at, **one} for at, one in enumerate(written)]
    produce(sdm, owner, mesh, topic, fields, numbered)
    sink("position")
    last = len(written) - 1
    columns = ", ".join(f"{column}::text" for column in TIMES)
    expected = [(last, *(found[2] for found in TIMES.values()))]
    eventually(
        lambda: rows(database, f"{name}_position", f"id, {columns}") == expected,
        "what a table has is there",
    )
    found = letters(sdm, owner, f"{name}-position")
    for offset in range(last):
        assert f"value_not_exact: {topic}-0 at offset {offset}: " in found


def test_the_begin_of_time_is_what_it_was(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    name, database = table
    columns = "id int PRIMARY KEY, t timestamp, t3 timestamp(3), z timestamptz, d date"
    row = "1, '-infinity', '-infinity', '-infinity', '-infinity'"
    capture(sdm, owner, table, request, columns, f"INSERT INTO {name} VALUES ({row})")
    database.execute(f"INSERT INTO {name} VALUES ({row.replace('1', '2', 1)})")
    sink("record", "--key", "record")
    asked = "id, t::text, t3::text, z::text, d::text"
    expected = rows(database, name, asked)
    eventually(lambda: rows(database, f"{name}_record", asked) == expected, "both are there")


def test_a_text_that_is_no_utf8_is_a_dead_letter_and_no_other_text(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """Avro puts one character in the place of all bytes that are none."""
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    kinds = {"plain": "string", "java": {"type": "string", "avro.java.string": "String"}}
    texts = [b"\xff", b"\xfe", b"\xc3(", b"\xed\xa0\x80", b"\xc0\x80", "é€🙂".encode()]
    for name_of, kind in kinds.items():
        # a text and bytes are written alike
        write_keys(mesh, topic, f"{topic}-{name_of}", kind, "bytes", texts)
    sink("record", "--key", "record")
    eventually(lambda: rows(database, f"{name}_record", "k, k"), "what is a text is there")
    assert rows(database, f"{name}_record", "k, k") == [("é€🙂", "é€🙂")]
    wrong = (len(texts) - 1) * len(kinds)
    connector = f"{name}-record"
    eventually(lambda: len(dead_letters(sdm, owner, connector)) == wrong, "the others are dead")
    assert all("text_not_utf8" in str(one) for one in dead_letters(sdm, owner, connector))


def test_a_number_that_connect_would_read_as_another_is_a_dead_letter(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """By its own attributes of a schema, which Avro's readers do not look at."""
    name, database = table
    topic = f"{owner.name}.{name}"
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = {
        "id": "int",
        "byte": {"type": "int", "connect.type": "int8"},
        "short": {"type": "int", "connect.type": "int16"},
        "n": {**decimal, "connect.parameters": {"scale": "2"}},
    }
    numbers = [(300, 1), (1, 70_000), (-129, 1), (-128, -32_768), (127, 32_767)]
    written = [
        {"id": at, "byte": byte, "short": short, "n": b"\x7b"}
        for at, (byte, short) in enumerate(numbers)
    ]
    produce(sdm, owner, mesh, topic, fields, written)
    two = {"type": "record", "name": "Row", "fields": [
        {"name": "id", "type": "int"},
        {"name": "n", "type": {**decimal, "connect.parameters": {"scale": "4"}}},
    ]}  # fmt: skip
    number = register_schema(mesh, f"{topic}-other", json.dumps(two))
    writing = Producer(mesh.administration("east").config())
    # id 5, and one byte
    writing.produce(topic, b"\0" + number.to_bytes(4, "big") + b"\x0a\2\x7b")
    assert writing.flush(60) == 0
    write(mesh, topic, fields, [{**written[4], "id": 6}])
    sink("position")
    expected = [(3, -128, -32_768, "1.23"), (4, 127, 32_767, "1.23"), (6, 127, 32_767, "1.23")]
    asked = "id, byte, short, n::text"
    eventually(lambda: rows(database, f"{name}_position", asked) == expected, "others are there")
    found = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    assert sum("value_not_exact: a number" in one for one in found) == 3
    assert sum("schema_ambiguous: a decimal" in one for one in found) == 1


def test_a_default_that_connect_would_read_as_another_is_a_dead_letter(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """By `connect.default`, which Avro's readers do not look at."""
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    writing = Producer(mesh.administration("east").config())
    defaults = {
        "string": ("a", "b"), "int": (1, 2), "long": (2**62, 2**62 + 1), "float": (0.1, 0.2),
        "double": (0.1, 0.2), "boolean": (True, False), "bytes": ("\u00ff", "\u00fe"),
    }  # fmt: skip
    values = {"string": b"\2x", "bytes": b"\2x", "float": bytes(4), "double": bytes(8)}
    for alike in (False, True):
        for kind, (default, other) in defaults.items():
            named = {"type": kind, "connect.default": default if alike else other}
            for at, types in enumerate([named, [named, "null"]]):
                row = {"type": "record", "name": "Row", "fields": [
                    {"name": "id", "type": "string"},
                    {"name": f"{kind}_{at}", "type": types, "default": default},
                ]}  # fmt: skip
                told = f"{kind}-{at}-{alike}"
                number = register_schema(mesh, f"{topic}-{told}", json.dumps(row))
                identity = bytes([len(told) * 2]) + told.encode()
                value = b"\0" * at + values.get(kind, b"\0")
                writing.produce(topic, b"\0" + number.to_bytes(4, "big") + identity + value)
    assert writing.flush(60) == 0
    sink("position")
    expected = sorted(f"{kind}-{at}-True" for kind in defaults for at in (0, 1))
    eventually(
        lambda: [one for one, _ in rows(database, f"{name}_position", "id, id")] == expected,
        "what has one default is there",
    )
    found = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    assert sum("schema_ambiguous: a default" in one for one in found) == len(expected)


def test_a_number_that_its_type_has_not_is_a_dead_letter(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """Avro's library for Java takes the last 32 bits of an int, and false for the byte 2."""
    name, database = table
    topic = f"{owner.name}.{name}"
    fields = {"id": "int", "number": "int", "flag": "boolean"}
    produce(sdm, owner, mesh, topic, fields, [{"id": 0, "number": -(2**31), "flag": True}])
    numbers = [(2**32 + 5, 0), (-(2**31) - 1, 0), (1, 1), (2**31 - 1, 0)]
    written = [{"id": at, "number": one, "flag": flag} for at, (one, flag) in enumerate(numbers, 1)]
    # an int is written as a long is, a boolean as one byte
    write(mesh, topic, fields, written, {"number": "long", "flag": "int"})
    sink("position")
    expected = [(0, -(2**31), True), (4, 2**31 - 1, False)]
    asked = "id, number, flag"
    eventually(lambda: rows(database, f"{name}_position", asked) == expected, "others are there")
    assert len(dead_letters(sdm, owner, f"{name}-position")) == 3
    shown = str(sdm("topic", "consume", topic, "-d", owner.name, "-o", "json"))
    for told in (f"Row.number is {2**32 + 5}", f"Row.number is {-(2**31) - 1}"):
        assert f"it does not fit the schema: {told}, and is to be int" in shown


def test_bits_that_a_column_of_the_schema_has_not_are_dead_letters(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """The sink makes a column of the length in the schema, and cuts what is more."""
    name, database = table
    named = {"type": "bytes", "connect.name": "io.debezium.data.Bits"}
    fields = {"id": "int", "v": {**named, "connect.parameters": {"length": "4"}}}
    bits = [b"\xff\x01", b"\x10", b"\x05", b"\x0f\0"]
    written = [{"id": at, "v": one} for at, one in enumerate(bits)]
    produce(sdm, owner, mesh, f"{owner.name}.{name}", fields, written)
    sink("position")
    expected = [(2, "0101"), (3, "1111")]
    eventually(lambda: rows(database, f"{name}_position", "id, v::text") == expected, "bits")
    found = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    assert sum("value_not_exact" in one and "more bits" in one for one in found) == 2


def test_a_schema_does_not_choose_a_column_in_which_texts_become_others(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """Debezium's parameters of a captured column may be written by whoever owns the topic."""
    name, database = table
    kinds = {"MONEY": "1.239", "VARCHAR": "abc  ", "INT4RANGE": "[1,3]", "INET": "10.0.0.1/32"}
    fields: dict[str, Any] = {"id": "int", "u": {"type": "string", "connect.name": UUID}}
    for kind in kinds:
        source = {f"{SOURCE}.type": kind, f"{SOURCE}.length": "3"}
        fields[kind.lower()] = {"type": "string", "connect.parameters": source}
    fields["many"] = {"type": "array", "items": fields["money"]}
    fields["named"] = {"type": "string", "connect.name": "INET"}
    row: dict[str, Any] = {kind.lower(): text for kind, text in kinds.items()}
    row |= {"many": ["1.239"], "named": "10.0.0.1/32"}
    uuids = [PLAIN_UUID.upper(), f"{{{PLAIN_UUID}}}", PLAIN_UUID.replace("-", ""), PLAIN_UUID]
    written = [{"id": at, "u": one, **row} for at, one in enumerate(uuids)]
    produce(sdm, owner, mesh, f"{owner.name}.{name}", fields, written)
    sink("position")
    asked = f"id, u::text, {', '.join(kind.lower() for kind in kinds)}, many::text, named"
    expected = [(3, PLAIN_UUID, *kinds.values(), "{1.239}", "10.0.0.1/32")]
    eventually(lambda: rows(database, f"{name}_position", asked) == expected, "texts as they are")
    found = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    assert sum("value_not_exact" in one and "a UUID in small" in one for one in found) == 3


def test_texts_and_days_that_postgresql_has_not_are_dead_letters(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """A sink that failed at them would read nothing behind them."""
    name, database = table
    kinds = {
        "words": "string",
        "items": {"type": "array", "items": "string"},
        "day": of("int", "Date"),
        "at": of("long", "Timestamp"),
        "zoned": of("string", "ZonedTimestamp"),
        "hour": of("string", "ZonedTime"),
        "json": {"type": "string", "connect.name": "io.debezium.data.Json"},
    }
    good: dict[str, Any] = {
        "words": "a",
        "items": ["b"],
        "day": 2145042905,
        "at": 9224318015999999,
        "zoned": "+294276-12-31T23:59:59.999999Z",
        "hour": "23:59:59.999999+01:00",
        "json": '{"a": [1, "b"]}',
    }
    wrong: list[dict[str, Any]] = [
        {"words": "a\0b"},
        {"items": ["b", "\0"]},
        {"day": good["day"] + 1},
        {"at": good["at"] + 1},
        {"zoned": "+294277-01-01T00:00:00Z"},
        *({"zoned": one} for one in ("abc", "", "2026-01-01T24:00:01Z", "2026-01-01T00:00:00")),
        *({"hour": one} for one in ("abc", "24:00:00Z", "12:00:00")),
        *({"json": one} for one in ("{bad", "1 2", "", '["\\u0000"]', "{'a': 1}", "[1")),
    ]
    written = [{"id": at, **good, **one} for at, one in enumerate([*wrong, {}])]
    produce(sdm, owner, mesh, f"{owner.name}.{name}", {"id": "int", **kinds}, written)
    sink("position")
    asked = "id, words, items::text, day::text, at::text, json::text"
    last = "294276-12-31 23:59:59.999"
    expected = [(len(wrong), "a", "{b}", "5874897-12-31", last, good["json"])]
    eventually(lambda: rows(database, f"{name}_position", asked) == expected, "what there is")
    found = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    assert sum("U+0000" in one for one in found) == 2
    assert sum("no day after" in one for one in found) == 3
    assert sum("no JSON" in one for one in found) == 6
    assert sum("no time in it" in one for one in found) == 7


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ({"type": "string", "connect.name": "io.debezium.data.Json"}, "abc"),
        ({"type": "string", "connect.name": UUID}, "nope"),
        ({"type": "int", "connect.name": "io.debezium.time.Date"}, 2**31 - 1),
        ({"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}, "abc"),
    ],
    ids=["json", "uuid", "date", "zoned"],
)
def test_a_default_that_no_table_has_makes_a_dead_letter_and_ends_no_sink(
    sdm: Sdm,
    owner: Party,
    mesh: Endpoints,
    table: tuple[str, Any],
    sink: Sinking,
    kind: dict[str, str],
    default: Any,
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    produce(sdm, owner, mesh, topic, {"id": "int"}, [{"id": 1}])
    sink("position")
    read = f"{name}_position"
    eventually(lambda: len(rows(database, read)) == 1, "the first row")
    fields = {"id": "int", "more": {"type": kind, "default": default}}
    good = {"json": "{}", "uuid": PLAIN_UUID, "date": 1, "zoned": "2026-01-01T00:00:00Z"}
    value = next(one for key, one in good.items() if key in str(kind).lower() or key == "zoned")
    write(mesh, topic, fields, [{"id": 2, "more": value}])
    write(mesh, topic, {"id": "int"}, [{"id": 3}])
    eventually(lambda: rows(database, read, "id, id") == [(1, 1), (3, 3)], "what can be")
    [found] = map(str, dead_letters(sdm, owner, f"{name}-position"))
    assert "value_not_exact" in found


def test_an_array_with_a_default_is_added_to_a_table(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """The sink has no words for such a default: rows before have null."""
    name, database = table
    topic = f"{owner.name}.{name}"
    produce(sdm, owner, mesh, topic, {"id": "int"}, [{"id": 1}])
    sink("position")
    read = f"{name}_position"
    eventually(lambda: len(rows(database, read)) == 1, "the first row")
    kind = {"type": {"type": "array", "items": "string"}, "default": []}
    write(mesh, topic, {"id": "int", "tags": kind}, [{"id": 2, "tags": ["a"]}])
    eventually(lambda: len(rows(database, read)) == 2, "the row with an array")
    assert rows(database, read, "id, tags") == [(1, None), (2, ["a"])]


def test_a_value_with_the_name_of_another_type_is_written_as_what_it_is(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """Debezium goes by the name alone, and takes any number for that of a time."""
    name, database = table
    values: dict[str, tuple[Any, Any, str]] = {
        "ms": (of("double", "Timestamp"), 1732951338123.75, "1732951338123.75"),
        "day": (of("float", "Date"), 20000.75, "20000.75"),
        "us": (of("double", "MicroTimestamp"), math.nan, "NaN"),
        "far": (of("double", "NanoTimestamp"), -math.inf, "-Infinity"),
        "early": (of("double", "Time"), -1.5, "-1.5"),
        "lasts": (of("string", "MicroDuration"), "1.0000004 seconds", "1.0000004 seconds"),
        "zoned": (of("int", "ZonedTime"), 7, "7"),
        "words": (
            {"type": "string", "connect.name": "io.debezium.data.Tsvector"},
            "the cat's mat  the",
            "the cat's mat  the",
        ),
        "path": ({"type": "string", "connect.name": "io.debezium.data.Ltree"}, " a.b ", " a.b "),
        "bits": ({"type": "string", "connect.name": "io.debezium.data.Bits"}, "0101", "0101"),
        "id_of": ({"type": "long", "connect.name": UUID}, 2**62, str(2**62)),
    }
    fields = {"id": "int", **{column: found[0] for column, found in values.items()}}
    row = {column: found[1] for column, found in values.items()}
    produce(sdm, owner, mesh, f"{owner.name}.{name}", fields, [{"id": 1, **row}])
    sink("position")
    asked = ", ".join(f"{column}::text" for column in values)
    expected = [(1, *(found[2] for found in values.values()))]
    eventually(lambda: rows(database, f"{name}_position", f"id, {asked}") == expected, "the row")


def test_a_change_that_contradicts_itself_is_a_dead_letter_and_ends_no_sink(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}]}
    change = {"type": "record", "name": "Envelope", "namespace": name, "fields": [
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", f"{name}.Value"]},
        {"name": "op", "type": "string"},
    ]}  # fmt: skip
    key = {"type": "record", "name": "Key", "fields": row["fields"]}
    ids = [
        register_schema(mesh, f"{topic}-{side}", json.dumps(schema))
        for side, schema in (("key", key), ("value", change))
    ]
    one = {"id": 1}
    wrong = [
        ("d", one, one),
        ("t", None, one),
        ("x", None, one),
        ("u", one, None),
        ("d", None, None),
    ]
    writing = Producer(mesh.administration("east").config())
    for op, before, after in [("c", None, one), *wrong, ("u", one, one), ("c", None, {"id": 2})]:
        wires = []
        for number, schema, datum in zip(
            ids,
            (key, change),
            (after or one, {"before": before, "after": after, "op": op}),
            strict=True,
        ):
            wire = BytesIO()
            schemaless_writer(wire, parse_schema(schema), datum)
            wires.append(b"\0" + number.to_bytes(4, "big") + wire.getvalue())
        writing.produce(topic, wires[1], wires[0])
    assert writing.flush(60) == 0
    sink("record", "--key", "record")
    sink("position")
    written = {"record": [(1, 1), (2, 2)], "position": [(1, 1), (1, 1), (2, 2)]}

    def is_written(kind: str) -> bool:
        return rows(database, f"{name}_{kind}", "id, id") == written[kind]

    for kind in written:
        eventually(partial(is_written, kind), f"rows of {kind}")
        found = [str(one) for one in dead_letters(sdm, owner, f"{name}-{kind}")]
        assert sum("change_ambiguous" in one for one in found) == len(wrong)


ID = {"name": "id", "type": "int"}
OP = {"name": "op", "type": "string"}
ROW = {"type": "record", "name": "east.Row", "fields": [ID]}
NO_NAME = "io.confluent.connect.avro.ConnectDefault"
NAMED_AS_CHANGES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("east.SchemaChangeValue", [ID], {"id": 10}),
    ("east.SchemaChangeValueOfOurs", [ID], {"id": 11}),
    (NO_NAME, [ID, OP], {"id": 12, "op": "t"}),
    (NO_NAME, [ID, OP], {"id": 13, "op": "x"}),
    ("east.Envelope", [ID, OP], {"id": 14, "op": "t"}),
    (
        "east.CloudEvents.Envelope",
        [ID, {"name": "data", "type": ROW}],
        {"id": 15, "data": {"id": 1}},
    ),
    (
        NO_NAME,
        [{"name": "before", "type": ROW}, {"name": "after", "type": "east.Row"}, OP],
        {"before": {"id": 1}, "after": {"id": 1}, "op": "d"},
    ),
]  # fmt: skip


def test_a_schemas_name_has_no_record_passed_by_as_a_change(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    writing = Producer(mesh.administration("east").config())
    key = {"type": "record", "name": "Key", "fields": [ID]}
    # the first field of a plain row may be called as one of a change
    plain: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("east.Value", [ID, OP], {"id": 1, "op": "t"}),
        ("east.EnvelopeSent", [ID, OP], {"id": 2, "op": "u"}),
    ]

    def wire(subject: str, schema: dict[str, Any], datum: dict[str, Any]) -> bytes:
        encoded = BytesIO()
        schemaless_writer(encoded, parse_schema(schema), datum)
        number = register_schema(mesh, subject, json.dumps(schema))
        return b"\0" + number.to_bytes(4, "big") + encoded.getvalue()

    for place, (called, fields, datum) in enumerate([plain[0], *NAMED_AS_CHANGES, plain[1]]):
        schema = {"type": "record", "name": called, "fields": fields}
        number = datum.get("id", 1)
        writing.produce(
            topic,
            wire(f"{topic}-{place}-value", schema, datum),
            wire(f"{topic}-key", key, {"id": number}),
        )
    # of which the sink would make a column of this name
    maps = {"type": "map", "values": {"type": "map", "values": "string"}}
    named = {**maps, "connect.name": "east.CloudEvents.Envelope"}
    column = {"data": {'b" text; DROP TABLE x; --': "x"}}
    writing.produce(
        topic, wire(f"{topic}-map-value", named, column), wire(f"{topic}-key", key, {"id": 16})
    )
    assert writing.flush(60) == 0
    sink("position")
    sink("record", "--key", "record")
    expected = [(1, "t"), (2, "u")]

    def is_written(kind: str) -> bool:
        return rows(database, f"{name}_{kind}", "id, op") == expected

    for kind in ("position", "record"):
        eventually(partial(is_written, kind), f"rows of {kind}")
        found = [str(one) for one in dead_letters(sdm, owner, f"{name}-{kind}")]
        assert len(found) == len(NAMED_AS_CHANGES) + 1
        # a sink by position looks for the row of a change in what is no record before
        told = "change_ambiguous", "schema_missing", "Only Struct objects"
        assert all(any(one in letter for one in told) for letter in found), found


def test_numbers_that_a_table_does_not_tell_apart_are_no_keys(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    keys = [0.0, -0.0, math.nan, math.inf, 1.5]
    write_keys(mesh, topic, f"{topic}-value", "double", "double", keys)
    sink("record", "--key", "record")
    sink("position")
    expected = [("0", "0"), ("1.5", "1.5"), ("Infinity", "Infinity")]
    asked = "k::text, k::text"
    eventually(lambda: rows(database, f"{name}_record", asked) == expected, "others are there")
    found = letters(sdm, owner, f"{name}-record")
    for offset in (1, 2):
        assert f"value_not_exact: {topic}-0 at offset {offset}: k" in found
    eventually(lambda: len(rows(database, f"{name}_position", asked)) == 5, "as values they are")


MICROS = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}
COLUMNS: dict[str, tuple[str, Any, Any, Any]] = {
    "cents": ("numeric(5,2)", "double", 1.25, 1.255),
    "digits": ("numeric", "double", 0.1, 0.1 + 0.2),
    "float": ("numeric", "float", 0.5, 0.1),
    "any_scale": (
        "numeric(6,1)",
        DECIMAL,
        {"scale": 3, "value": b"\x05\xdc"},
        {"scale": 2, "value": b"\x7d"},
    ),
    "whole": ("bigint", DECIMAL, {"scale": 1, "value": b"\x14"}, {"scale": 1, "value": b"\x0f"}),
    "large": ("double precision", "long", 2**53, 2**53 + 1),
    "larger": ("real", "int", 2**24, 2**24 + 1),
    "seconds": ("timestamp(0)", MICROS, 1_000_000, 1_500_000),
    "day": ("date", MICROS, DAY_US, DAY_US + 1),
    "clock": (
        "time(3)",
        {"type": "long", "connect.name": "io.debezium.time.MicroTime"},
        1_000,
        1_001,
    ),
    "zoned": (
        "time",
        {"type": "string", "connect.name": "io.debezium.time.ZonedTime"},
        "10:00:00Z",
        "10:00:00+02:00",
    ),
    "paid": ("money", CENTS, b"\x04\xe2", b"\x04\xe7"),
    "thousands": ("numeric(5,-3)", "int", 12_000, 12_345),
    "short": ("varchar(3)", "string", "ab ", "abc "),
    "padded": ("char(3)", "string", "abc", "abc "),
    "named": ("name", "string", "a" * 63, "a" * 64),
    "letter": ('"char"', "string", "a", "ab"),
    "number": ("oid", "int", 2**31 - 1, -1),
    "domain": ("coins", "double", 1.25, 1.255),
    "rough": ("floats", "double", 0.5, 0.1),
    "uuid": ("uuid", "string", PLAIN_UUID, PLAIN_UUID.upper()),
    "items": ("numeric(5,2)[]", {"type": "array", "items": "double"}, [1.25, 2], [1.25, 1.255]),
}
"""Column -> its type, the field's, a value that it has as it is, and one that it rounds or cuts.

`coins` is a domain over a domain of numeric(5,2), `floats` one over real.
"""


def test_a_value_that_its_column_would_round_or_cut_fails_the_sink(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any]
) -> None:
    name, database = table
    adding = ("--type", "jdbc-sink", "-d", owner.name, "--no-wait")
    database.execute(f"CREATE DOMAIN {name}_two_places AS numeric(5,2)")
    database.execute(f"CREATE DOMAIN {name}_coins AS {name}_two_places CHECK (VALUE > 0)")
    database.execute(f"CREATE DOMAIN {name}_floats AS real")
    for column, (kind, field, exact, other) in COLUMNS.items():
        topic = f"{name}_{column}"
        fields = {"id": "int", column: field}
        both = [{"id": 1, column: exact}, {"id": 2, column: other}]
        produce(sdm, owner, mesh, f"{owner.name}.{topic}", fields, both)
        place = "__connect_topic, __connect_partition, __connect_offset"
        made = f"{name}_{kind}" if kind in ("coins", "floats") else kind
        database.execute(
            f"CREATE TABLE {topic} (__connect_topic text, __connect_partition int, "
            f"__connect_offset bigint, id int, {column} {made}, PRIMARY KEY ({place}))"
        )
        of_table = ("--set", f"collection.name.format={topic}", "--set", "batch.size=1")
        sdm(*NOUN, "add", topic.replace("_", "-"), "--topic", topic, *adding, *of_table)
    for column in COLUMNS:
        told = f"column_not_exact: public.{name}_{column}.{column};"
        connector = f"{name}_{column}".replace("_", "-")

        def failed(told: str = told, connector: str = f"{owner.name}.{connector}") -> bool:
            return told in str(sdm(*NOUN, "describe", connector).document["failure"])

        eventually(failed, f"the column {column} is told")
        assert [one[0] for one in rows(database, f"{name}_{column}", "id, id")] == [1]
        sdm(*NOUN, "delete", connector, "-d", owner.name)
