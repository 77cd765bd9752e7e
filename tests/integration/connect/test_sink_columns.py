"""No record and no version of a schema ends a sink whose columns were made of others."""

from typing import Any

import pytest

from local_platform import Endpoints
from tests.integration.connect.test_sink_values import (
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
from tests.kafka_client import eventually

__all__ = ["owner", "sdm", "sink", "table"]
pytestmark = pytest.mark.slow


def test_the_default_of_a_time_of_day_is_that_of_the_sinks_column(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    """With a zone, which every sink has, Debezium puts today before it."""
    name, database = table
    columns = "id int PRIMARY KEY, t time DEFAULT '12:30'"
    capture(sdm, owner, table, request, columns, f"INSERT INTO {name} (id) VALUES (1)")
    sink("record", "--key", "record")
    asked = "id, t::text"
    there = [(1, "12:30:00")]
    eventually(lambda: rows(database, f"{name}_record", asked) == there, "the table is made")
    database.execute(f"ALTER TABLE {name} ADD u time DEFAULT '23:59'")
    database.execute(f"INSERT INTO {name} (id) VALUES (2)")
    eventually(lambda: len(rows(database, f"{name}_record", asked)) == 2, "a column is added")
    database.execute(f"INSERT INTO {name}_record (id) VALUES (3)")
    expected = [(one, "12:30:00", "23:59:00") for one in (1, 2, 3)]
    assert rows(database, f"{name}_record", f"{asked}, u::text") == expected


def test_a_deletion_by_a_key_with_a_time_of_day_deletes_its_row(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    name, database = table
    key = "room int, t time, s time(3), z timetz, u uuid, d date, at timestamptz, many int[]"
    columns = f"{key}, PRIMARY KEY (room, t, s, z, u, d, at, many)"
    one = (
        "'10:00:00.000001', '23:59:59.999', '10:00+02', gen_random_uuid(), '2026-11-30',"
        " '2026-11-30 10:00+02', '{1,2}'"
    )
    first = f"INSERT INTO {name} VALUES (1, {one}), (2, {one})"
    capture(sdm, owner, table, request, columns, first)
    database.execute(f"CREATE DOMAIN {name}_rough AS time")
    own = columns.replace("t time", f"t {name}_rough", 1)
    database.execute(f"CREATE TABLE {name}_own ({own})")
    for suffix in ("record", "own"):
        sink(suffix, "--key", "record")
        found = f"{name}_{suffix}"
        eventually(lambda f=found: len(rows(database, f)) == 2, "both rows are there")
    database.execute(f"DELETE FROM {name} WHERE room = 1")
    for suffix in ("record", "own"):
        found = f"{name}_{suffix}"
        eventually(lambda f=found: len(rows(database, f)) == 1, "one row is deleted")
        assert rows(database, found, "room, t::text") == [(2, "10:00:00.000001")]


def test_a_field_that_comes_or_goes_leaves_null_where_no_record_had_it(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """Its column was made of a field that each record had to have."""
    name, database = table
    topic = f"{owner.name}.{name}"
    produce(sdm, owner, mesh, topic, {"id": "int", "a": "string"}, [{"id": 1, "a": "x"}])
    sink("position")
    asked = "id, a"
    eventually(lambda: rows(database, f"{name}_position", asked) == [(1, "x")], "a row is there")
    new = {"id": "int", "b": {"type": "int", "default": 5}}
    write(mesh, topic, new, [{"id": 2, "b": 6}])
    expected = [(1, "x", 5), (2, None, 6)]
    asked = "id, a, b"
    eventually(lambda: len(rows(database, f"{name}_position")) == 2, "the sink goes on")
    assert rows(database, f"{name}_position", asked) == expected
    kinds = "SELECT attname FROM pg_attribute WHERE attnum > 0 AND attnotnull AND attrelid = "
    found = database.execute(f"{kinds}'{name}_position'::regclass").fetchall()
    key = {"__connect_topic", "__connect_partition", "__connect_offset"}
    assert {one for (one,) in found} == key
