"""Columns and fields that change: no value is made up, and none is rounded, without a word."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from local_platform import Endpoints
from tests.integration.connect.test_sink_values import (
    NOUN,
    capture,
    produce,
    rows,
    table,
    write,
)
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, registrar

__all__ = ["owner", "sdm", "table"]
pytestmark = pytest.mark.slow

UUID = "00000000-0000-4000-8000-000000000001"


def test_a_default_that_has_to_be_computed_is_none_in_the_topic(
    sdm: Sdm,
    owner: Party,
    mesh: Endpoints,
    table: tuple[str, Any],
    request: pytest.FixtureRequest,
) -> None:
    """PostgreSQL has computed it for each row that was there; the topic cannot know how."""
    name, database = table
    capture(sdm, owner, table, request, "id int PRIMARY KEY", f"INSERT INTO {name} VALUES (1)")
    computed = {
        "at": "timestamptz DEFAULT now()",
        "who": "text DEFAULT current_user",
        "made": "text DEFAULT ('a' || 'c')",
        "code": "uuid DEFAULT gen_random_uuid()",
        "len": "int DEFAULT length('four')",
        # PostgreSQL stores another value than the text says, by a cast that it does not tell
        "half": "int DEFAULT 1.5",
        "cents": "numeric(5,2) DEFAULT 1.565",
        "seconds": "timestamp(0) DEFAULT '2020-01-01 00:00:00.6'",
        "filled": "char(5) DEFAULT 'ab'",
        "cut": "varchar(2) DEFAULT 'ab '",
        "wide": "double precision DEFAULT '0.1'::real",
        "chopped": "text DEFAULT 'abc'::varchar(1)",
        "rounded": "numeric DEFAULT '-1.565'::numeric(5,2)",
    }
    constant = {
        "n": ("int DEFAULT -7", -7),
        "t": ("text DEFAULT 'it''s'", "it's"),
        "d": ("numeric(5,2) DEFAULT 1.5", "\x00\x96"),
        "e": ("double precision DEFAULT 2", 2.0),
        "b": ("boolean DEFAULT true", True),
        "s": ("varchar(9) DEFAULT 'x'", "x"),
        "c": ("char(2) DEFAULT 'ab'", "ab"),
        "r": ("real DEFAULT 0.5", 0.5),
        "i": ("smallint DEFAULT 4", 4),
        "day": ("date DEFAULT '2020-01-02'", 18263),
        "u": (f"uuid DEFAULT '{UUID}'", UUID),
        "j": ("jsonb DEFAULT '{}'", "{}"),
        "k": ("numeric(5,2) DEFAULT 0.07", "\x07"),
    }
    added = {**computed, **{column: kind for column, (kind, _) in constant.items()}}
    columns = ", ".join(f"ADD {column} {kind}" for column, kind in added.items())
    database.execute(f"ALTER TABLE {name} {columns}")
    database.execute(f"INSERT INTO {name} (id) VALUES (2)")

    def defaults() -> dict[str, Any]:
        try:
            # a client keeps what it once took for the latest version
            latest = registrar(mesh).get_latest_version(f"{owner.name}.{name}-value")
        except SchemaRegistryError as error:
            # the first record is still to come
            assert error.http_status_code == 404  # noqa: PT017 - it is looked for again
            return {}
        text = latest.schema.schema_str
        row = next(one for one in json.loads(text)["fields"] if one["name"] == "before")["type"][1]
        return {one["name"]: one.get("default", "none") for one in row["fields"]}

    eventually(lambda: "at" in defaults(), "the new columns are there")
    found = defaults()
    assert {column: found[column] for column in computed} == dict.fromkeys(computed)
    shown = {column: found[column] for column in constant}
    assert shown == {column: value for column, (_, value) in constant.items()}


def items(kind: Any) -> dict[str, Any]:
    return {"type": "array", "items": kind}


def test_a_number_that_its_column_would_round_fails_the_sink(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any]
) -> None:
    """The column is as the sink made it by the first schema."""
    name, database = table
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    wider = decimal | {"precision": 12, "scale": 4}
    kinds: dict[str, tuple[Any, Any, Any, Any]] = {
        "whole": ("int", 3, "double", 1.5),
        "real": ("float", 0.5, "double", 0.1),
        "places": (decimal, b"\x00\x96", wider, b"\x30\x39"),
        "items": (items("int"), [3], items("double"), [1.5]),
        "floats": (items("float"), [0.5], items("double"), [0.1]),
    }
    for column, (before, first_value, after, value) in kinds.items():
        topic = f"{name}_{column}"
        fields = {"id": "int", column: before}
        rows_of = [{"id": 1, column: first_value}]
        produce(sdm, owner, mesh, f"{owner.name}.{topic}", fields, rows_of)
        adding = ("--type", "jdbc-sink", "--topic", topic, "-d", owner.name)
        table_of = ("--set", f"collection.name.format={topic}")
        sdm(*NOUN, "add", topic.replace("_", "-"), *adding, *table_of)
        eventually(lambda t=topic: len(rows(database, t, "id, id")) == 1, "the first row is there")
        write(mesh, f"{owner.name}.{topic}", fields | {column: after}, [{"id": 2, column: value}])
    for column in kinds:
        told = f"column_not_exact: public.{name}_{column}.{column};"
        connector = f"{owner.name}.{name}_{column}".replace("_", "-")

        def failed(told: str = told, connector: str = connector) -> bool:
            return told in str(sdm(*NOUN, "describe", connector).document["failure"])

        eventually(failed, f"the column {column} is told")
        assert len(rows(database, f"{name}_{column}", "id, id")) == 1
        sdm(*NOUN, "delete", f"{name}_{column}".replace("_", "-"), "-d", owner.name)
