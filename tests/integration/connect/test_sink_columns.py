"""No record and no version of a schema ends a sink whose columns were made of others."""

from decimal import Decimal
from string import ascii_letters
from typing import Any

import pytest

from local_platform import Endpoints
from tests.integration.connect.test_exact_values import dead_letters
from tests.integration.connect.test_sink_keys import Writing
from tests.integration.connect.test_sink_values import (
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
from tests.kafka_client import eventually
from tests.selection import draws

__all__ = ["owner", "sdm", "sink", "table"]
pytestmark = pytest.mark.slow
MOST_BYTES = 2592
"""The longest text that is a key by itself."""


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


def test_a_table_that_is_there_gets_a_column_that_takes_null_for_a_field_that_has_to_be_there(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    """Debezium adds none without a default, since the rows of the table have no value for it."""
    name, database = table
    columns = "id int PRIMARY KEY, note text NOT NULL"
    capture(sdm, owner, table, request, columns, f"INSERT INTO {name} VALUES (2, 'x')")
    database.execute(f"CREATE TABLE {name}_own (id int PRIMARY KEY)")
    database.execute(f"INSERT INTO {name}_own VALUES (1)")
    sink("own", "--key", "record")
    there = [(1, None), (2, "x")]
    eventually(lambda: len(rows(database, f"{name}_own", "id, id")) == 2, "the row is there")
    assert rows(database, f"{name}_own", "id, note") == there


def test_a_table_that_lacks_a_column_of_the_key_gets_none_and_its_sink_says_so(
    sdm: Sdm, owner: Party, table: tuple[str, Any], sink: Sinking, request: pytest.FixtureRequest
) -> None:
    name, database = table
    columns = "id int PRIMARY KEY, a text"
    capture(sdm, owner, table, request, columns, f"INSERT INTO {name} VALUES (1, 'x')")
    database.execute(f"CREATE TABLE {name}_own (a text PRIMARY KEY)")
    sink("own", "--key", "record", "--until", "decided")

    def told() -> str:
        return str(sdm(*NOUN, "describe", f"{owner.name}.{name}-own").document)

    eventually(lambda: f"table_not_fit: public.{name}_own" in told(), "the sink has failed")
    found = database.execute(f"SELECT * FROM {name}_own")
    assert [one.name for one in found.description] == ["a"]


def test_a_record_in_a_field_is_a_dead_letter_also_where_it_is_null_and_the_next_one_arrives(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    plain: dict[str, Any] = {"id": "int"}
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
    nested = {**plain, "inner": {"type": ["null", inner], "default": None}}
    produce(sdm, owner, mesh, topic, plain, [{"id": 0}])
    write(mesh, topic, nested, [{"id": 1, "inner": None}, {"id": 2, "inner": {"x": 1}}])
    write(mesh, topic, plain, [{"id": 3}])
    sink("position")
    # who leaves the field out has the record
    sink("cut", "--set", f"field.exclude.list={topic}:inner")
    eventually(lambda: len(rows(database, f"{name}_position", "id, id")) == 2, "others are there")
    assert rows(database, f"{name}_position", "id, id") == [(0, 0), (3, 3)]
    letters = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    for offset in (1, 2):
        told = f"value_not_exact: {topic}-0 at offset {offset}: inner"
        assert any(told in one for one in letters), letters
    eventually(lambda: len(rows(database, f"{name}_cut", "id, id")) == 4, "all are there")


def test_a_key_that_is_larger_than_an_index_takes_is_a_dead_letter_and_the_next_one_arrives(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    writing = Writing(mesh, topic)
    # a text that PostgreSQL cannot press together
    text = "".join(draws("text").choices(ascii_letters, k=3000))
    for number, length in enumerate((2700, MOST_BYTES + 1, MOST_BYTES, 1)):
        writing({"k": text[:length]}, {"n": number})
    half = MOST_BYTES // 2
    writing({"k": text[:half], "l": text[:half]}, {"n": 5})
    sink("record", "--key", "record")
    expected = [(2, MOST_BYTES), (3, 1)]
    asked = "n, length(k)"
    eventually(lambda: rows(database, f"{name}_record", asked) == expected, "shorter ones arrive")
    eventually(lambda: len(dead_letters(sdm, owner, f"{name}-record")) == 3, "others are dead")
    for letter in map(str, dead_letters(sdm, owner, f"{name}-record")):
        assert "value_not_exact" in letter
        assert "an index of PostgreSQL takes 2600 bytes" in letter


def test_a_decimal_with_more_digits_than_its_schema_says_is_a_dead_letter_and_the_next_one_arrives(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """Its bytes may be any number, whoever wrote them."""
    name, database = table
    topic = f"{owner.name}.{name}"
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    numbers = (100_000, -100_000, -99_999, 0)
    written = [
        {"id": at, "n": one.to_bytes(4, "big", signed=True)} for at, one in enumerate(numbers)
    ]
    produce(sdm, owner, mesh, topic, {"id": "int", "n": kind}, written)
    sink("position")
    expected = [(2, Decimal("-999.99")), (3, Decimal(0))]
    eventually(lambda: rows(database, f"{name}_position", "id, n") == expected, "others arrive")
    letters = [str(one) for one in dead_letters(sdm, owner, f"{name}-position")]
    for offset in (0, 1):
        told = f"value_not_exact: {topic}-0 at offset {offset}: n"
        assert any(told in one for one in letters), letters


def test_json_that_jsonb_does_not_take_is_a_dead_letter_and_the_next_one_arrives(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    """A column of one's own may be of jsonb, which takes less than json."""
    name, database = table
    topic = f"{owner.name}.{name}"
    fields = {"id": "int", "j": {"type": "string", "connect.name": "io.debezium.data.Json"}}
    refused = [
        r'"\ud800"',
        r'"\udc00\ud800"',
        r'{"a\ud800":1}',
        r'"\u0000"',
        "1e131072",
        "1e-16384",
    ]
    taken = [r'"\ud83d\ude42"', "1e131071", "1e-16383", '"🙂"']
    written = [{"id": at, "j": text} for at, text in enumerate([*refused, *taken])]
    database.execute(
        f"CREATE TABLE {name}_own (__connect_topic text, __connect_partition int,"
        " __connect_offset bigint, id int, j jsonb,"
        " PRIMARY KEY (__connect_topic, __connect_partition, __connect_offset))"
    )
    produce(sdm, owner, mesh, topic, fields, written)
    sink("own")
    eventually(lambda: len(rows(database, f"{name}_own", "id, id")) == len(taken), "others arrive")
    same = f"SELECT id FROM {name}_own WHERE j = '\"🙂\"' ORDER BY 1"
    assert database.execute(same).fetchall() == [(6,), (9,)]
    letters = [str(one) for one in dead_letters(sdm, owner, f"{name}-own")]
    for offset in range(len(refused)):
        told = f"value_not_exact: {topic}-0 at offset {offset}: j"
        assert any(told in one for one in letters), letters
