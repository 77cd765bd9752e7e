"""A sink writes and deletes the rows that a record's key names, in the table that it names."""

import json
from io import BytesIO
from typing import Any

import pytest
from confluent_kafka import Producer
from fastavro import parse_schema, schemaless_writer

from local_platform import Endpoints
from tests.integration.connect.test_exact_values import dead_letters
from tests.integration.connect.test_sink_values import (
    NOUN,
    Sinking,
    produce,
    rows,
    sink,
    table,
)
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, register_schema

__all__ = ["owner", "sdm", "sink", "table"]
pytestmark = pytest.mark.slow


class Writing:
    """Writes records of Avro into a topic: each side with a schema of its own, or without one."""

    def __init__(self, mesh: Endpoints, topic: str) -> None:
        self._mesh, self._topic = mesh, topic
        self._producer = Producer(mesh.administration("east").config())

    def __call__(self, key: dict[str, Any] | str | None, value: dict[str, Any] | None) -> None:
        wires = [
            None if side is None else self._wire(name, side)
            for name, side in (("value", value), ("key", key))
        ]
        self._producer.produce(self._topic, *wires)
        assert self._producer.flush(60) == 0

    def _wire(self, side: str, record: dict[str, Any] | str) -> bytes:
        schema: Any = "string"
        if isinstance(record, dict):
            kinds = {int: "int", str: "string"}
            fields = [{"name": name, "type": kinds[type(one)]} for name, one in record.items()]
            schema = {"type": "record", "name": side.title(), "fields": fields}
        subject = f"{self._topic}-{'-'.join(record)}-{side}"
        number = register_schema(self._mesh, subject, json.dumps(schema))
        encoded = BytesIO()
        schemaless_writer(encoded, parse_schema(schema), record)
        return b"\0" + number.to_bytes(4, "big") + encoded.getvalue()


def test_a_deletion_by_a_key_that_is_none_of_the_tables_deletes_no_row(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """By a key without a field Debezium would delete all rows, by another column several."""
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    write = Writing(mesh, topic)
    for number in (1, 2, 3):
        write({"id": number}, {"land": "de"})
    sink("record", "--key", "record")
    asked = "id, land"
    there = [(number, "de") for number in (1, 2, 3)]
    eventually(lambda: rows(database, f"{name}_record", asked) == there, "rows are there")
    write({}, None)
    write(None, {"land": "fr"})
    write("x", {"land": "fr"})
    write({"id": 3}, None)
    left = there[:2]
    eventually(lambda: rows(database, f"{name}_record", asked) == left, "one row is deleted")
    letters = [str(one) for one in dead_letters(sdm, owner, f"{name}-record")]
    assert all("value_not_exact" in one for one in letters)
    reasons = ["it has no field", *["it is no record with fields"] * 2]
    assert all(why in one for why, one in zip(reasons, letters, strict=True)), letters
    write({"land": "de"}, None)

    def told() -> str:
        return str(sdm(*NOUN, "describe", f"{owner.name}.{name}-record").document)

    eventually(lambda: f"table_not_fit: public.{name}_record" in told(), "the sink has failed")
    assert rows(database, f"{name}_record", asked) == left


def test_a_table_is_found_by_its_name_and_not_by_a_pattern(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """`_` stands for any character in what JDBC's drivers are asked for."""
    name, database = table
    # it would be taken for the sink's table, and its columns for that one's
    database.execute(f"CREATE TABLE {name}xposition (id int PRIMARY KEY, note jsonb, more int)")
    text = '{"b": 1,   "a": 2}'
    fields = {"id": "int", "note": "string", "more": "int"}
    written = [{"id": 1, "note": text, "more": 5}]
    produce(sdm, owner, mesh, f"{owner.name}.{name}", fields, written)
    sink("position")
    expected = [(1, text, 5)]
    asked = "id, note, more"
    eventually(lambda: rows(database, f"{name}_position", asked) == expected, "its own table")
    assert rows(database, f"{name}xposition", asked) == []


ARRAY: dict[str, Any] = {"type": "array"}
DAY = {"type": "int", "logicalType": "date"}
OTHERS: dict[str, tuple[Any, Any]] = {
    "byte_arrays": ({**ARRAY, "items": "bytes"}, [b"\1\2", b"\3"]),
    "pairs": ({"type": "map", "values": "string"}, {"a": 'yes", "admin" => "yes'}),
    "durations": (
        {**ARRAY, "items": {"type": "long", "connect.name": "io.debezium.time.MicroDuration"}},
        [1_000_000],
    ),
}
"""Field -> its type and a value, of which the table would have another one."""


def test_what_a_sink_writes_as_another_text_is_a_dead_letter(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    writing = Producer(mesh.administration("east").config())
    exact: dict[str, tuple[Any, Any]] = {
        "id": ("int", 5),
        "days": ({**ARRAY, "items": DAY}, [0]),
    }
    exact["many"] = ({**ARRAY, "items": "int"}, [1])
    colours = {"type": "enum", "name": "Colour", "namespace": "east", "symbols": ["RED"]}
    exact["colours"] = ({**ARRAY, "items": colours}, ["RED"])
    records = [
        {"id": ("int", place), name: one} for place, (name, one) in enumerate(OTHERS.items())
    ]
    for place, record in enumerate([*records, exact]):
        fields = [{"name": field, "type": kind} for field, (kind, _) in record.items()]
        schema = {"type": "record", "name": "Row", "fields": fields}
        number = register_schema(mesh, f"{topic}-{place}-value", json.dumps(schema))
        encoded = BytesIO()
        datum = {field: value for field, (_, value) in record.items()}
        schemaless_writer(encoded, parse_schema(schema), datum)
        writing.produce(topic, b"\0" + number.to_bytes(4, "big") + encoded.getvalue())
    assert writing.flush(60) == 0
    sink("position")
    expected = [(5, "{1970-01-01}", [1], ["RED"])]
    asked = "id, days::text, many, colours"
    eventually(lambda: rows(database, f"{name}_position", asked) == expected, "others are there")
    found = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    assert len(found) == len(OTHERS)
    assert all("value_not_exact" in one for one in found), found
