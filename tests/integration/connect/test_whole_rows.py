"""A change that does not hold the whole row is never written: the connector fails and says why."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints
from projections.connectors.tables import slot_of
from self_service.cli.framework.exits import ExitCode
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.integration.test_cli_connect import drop_slots
from tests.kafka_client import eventually, fresh, read, reading

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.slow
NOUN = ("connect", "connector")
LARGE = {
    "text": "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 9000) n)",
    "bytea": "(SELECT string_agg(sha256(n::text::bytea), '') FROM generate_series(1, 9000) n)",
    "jsonb": "(SELECT jsonb_agg(md5(n::text)) FROM generate_series(1, 9000) n)",
    "bigint[]": "(SELECT array_agg(hashtextextended(n::text, 0)) FROM generate_series(1, 9000) n)",
    "numeric": "(SELECT string_agg((n * 7919 % 9973)::text, '')::numeric "
    "FROM generate_series(1, 9000) n)",
}
"""Type -> a value of it that PostgreSQL stores out of line."""
OTHERS = {
    "numeric": LARGE["numeric"],
    "numeric(1000, 999)": "(SELECT '0.' || repeat('7919', 249))::numeric",
    "bytea": LARGE["bytea"],
    "varbit": "repeat('1011', 9000)::varbit",
    "tsvector": "(SELECT string_agg(md5(n::text), ' ')::tsvector FROM generate_series(1, 900) n)",
    **{
        f"{kind}[]": f"(SELECT array_agg({item}) FROM generate_series(1, 900) n)"
        for kind, item in {
            "numeric": "n * 79.19", "boolean": "n % 3 = 0", "smallint": "n::int2", "integer": "n",
            "bigint": "n::int8", "real": "n::float4", "double precision": "n::float8",
            "text": "n::text", "uuid": "md5(n::text)::uuid", "date": "'2026-01-01'::date + n",
            "json": "to_json(n)", "inet": "'10.0.0.0'::inet + n",
        }.items()
    },
}  # fmt: skip
"""The same for types with and without a placeholder of Debezium's, in a row of more than 2 kB."""


@pytest.fixture
def schema(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """A schema of the test's own, and a connection to its database."""
    name = f"whole_{uuid4().hex[:8]}"
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        database.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        yield name, database
        for (slot,) in database.execute("SELECT slot_name FROM pg_replication_slots").fetchall():
            if name in slot:
                drop_slots(database, slot)
        database.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def large_table(database: Any, schema: str, kind: str) -> str:
    """A table with REPLICA IDENTITY FULL and a row with a large value; its name."""
    name = f"t_{kind.strip('[]')}"
    table = f"{schema}.{name}"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v {kind}, n int)")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO {table} VALUES (1, {LARGE[kind]}, 0)")
    return name


def captured(sdm: Sdm, owner: Party, schema: tuple[str, Any], table: str, *settings: str) -> str:
    """The id of a connector that captures one table; each change from now on is streamed."""
    place, database = schema
    name = f"{place}-{table}".replace("_", "-")
    sdm(
        *(*NOUN, "add", name, "--type", "debezium-postgres", "--table", f"{place}.{table}"),
        *("-d", owner.name, *(part for one in settings for part in ("--set", one))),
    )
    connector = f"{owner.name}.{name}"
    active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
    slot = (slot_of(connector),)
    eventually(lambda: database.execute(active, slot).fetchone(), f"{connector} streams")
    return connector


def described(sdm: Sdm, connector: str) -> dict[str, Any]:
    found: dict[str, Any] = sdm(*NOUN, "describe", connector).document
    return found


def test_a_table_that_would_lack_large_values_is_refused_with_the_statement_to_run(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    database.execute(f"CREATE TABLE {place}.notes (id int PRIMARY KEY, note text)")
    database.execute(f"CREATE TABLE {place}.counts (id int PRIMARY KEY, n bigint)")
    database.execute(f"CREATE TABLE {place}.parts (id int PRIMARY KEY, note text)"
                     " PARTITION BY RANGE (id)")  # fmt: skip
    database.execute(f"CREATE TABLE {place}.part PARTITION OF {place}.parts DEFAULT")
    database.execute(f"ALTER TABLE {place}.parts REPLICA IDENTITY FULL")
    adding = (*NOUN, "add", fresh("notes"), "--type", "debezium-postgres", "-d", owner.name)
    for table, lacking in (("notes", "notes"), ("parts", "part")):
        named = ("--table", f"{place}.{table}")
        for more in ((), ("--dry-run",)):
            told = sdm(*adding, *named, *more, code=ExitCode.REFUSED)
            assert "refused (table_without_full_identity)" in told.err
            cure = f"ALTER TABLE {place}.{lacking} REPLICA IDENTITY FULL;"
            assert cure in told.err
        database.execute(cure)
        sdm(*adding, *named, "--dry-run")
    sdm(*adding, "--table", f"{place}.counts", "--dry-run")


def test_a_table_whose_key_finds_no_row_in_the_log_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    """PostgreSQL logs no key that is checked late, and none of an index that is gone."""
    place, database = schema
    database.execute(f"CREATE TABLE {place}.late (id int PRIMARY KEY DEFERRABLE, n int)")
    database.execute(f"CREATE TABLE {place}.gone (id int NOT NULL, n int)")
    database.execute(f"CREATE UNIQUE INDEX gone_key ON {place}.gone (id)")
    database.execute(f"ALTER TABLE {place}.gone REPLICA IDENTITY USING INDEX gone_key")
    adding = (*NOUN, "add", fresh("keys"), "--type", "debezium-postgres", "-d", owner.name)
    sdm(*adding, "--table", f"{place}.gone", "--dry-run")
    database.execute(f"DROP INDEX {place}.gone_key")
    for table in ("late", "gone"):
        told = sdm(*adding, "--table", f"{place}.{table}", "--dry-run", code=ExitCode.REFUSED)
        assert "refused (table_without_identity)" in told.err
        database.execute(f"ALTER TABLE {place}.{table} REPLICA IDENTITY FULL")
        sdm(*adding, "--table", f"{place}.{table}", "--dry-run")


@pytest.mark.long
def test_no_placeholder_is_written_for_a_large_value_whatever_its_type(
    sdm: Sdm, owner: Party, mesh: Endpoints, schema: tuple[str, Any]
) -> None:
    place, database = schema
    tables = {kind: large_table(database, place, kind) for kind in LARGE}
    found = {kind: captured(sdm, owner, schema, table) for kind, table in tables.items()}
    for table in tables.values():
        database.execute(f"UPDATE {place}.{table} SET n = 1")
        # somebody changes it after the connector was accepted
        database.execute(f"ALTER TABLE {place}.{table} REPLICA IDENTITY DEFAULT")
    database.execute(f"UPDATE {place}.t_text SET id = 2")
    for table in list(tables.values())[1:]:
        database.execute(f"UPDATE {place}.{table} SET n = 2")

    def stands(connector: str, table: str) -> bool:
        shown = described(sdm, connector)
        # a decimal that is not there cannot be converted, which Debezium finds first
        codes = (f"value_not_captured: {place}.{table}.v;", "the value has none in the topic")
        reason = codes[table.endswith("_numeric")]
        return shown["state"] == "FAILED" and reason in shown["failure"]

    try:
        for kind, connector in found.items():
            eventually(lambda c=connector, k=kind: stands(c, tables[k]), f"{connector} has failed")
            shown = described(sdm, connector)
            assert "REPLICA IDENTITY FULL" in shown["failure"]
        for table in tables.values():
            values = read(
                reading(mesh.administration("east"), fresh("large")), f"{owner.name}.{table}"
            )
            assert not isinstance(values, str), values
            assert [one for one in values if one is not None]
            assert not [one for one in values if one and b"unavailable" in one]
    finally:
        for connector in found.values():
            sdm(*NOUN, "delete", connector, "-d", owner.name)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", OTHERS)
def test_a_row_that_gets_another_key_never_lacks_a_large_value(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], kind: str
) -> None:
    """Debezium makes a deletion and an insert of it, which is to have a whole row."""
    place, database = schema
    name = fresh("moved").replace("-", "_")
    table = f"{place}.{name}"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v {kind}, n text)")
    # a row of more than 2 kB, of which v alone may be stored elsewhere
    storage = "ALTER COLUMN v SET STORAGE EXTERNAL, ALTER COLUMN n SET STORAGE PLAIN"
    database.execute(f"ALTER TABLE {table} {storage}")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO {table} VALUES (1, {OTHERS[kind]}, repeat('x', 2000))")
    connector = captured(sdm, owner, schema, name)

    def stands() -> bool:
        shown = described(sdm, connector)
        found = str(shown["failure"])
        # where Debezium has no placeholder, it cannot convert what is not there
        told = (f"value_not_captured: {table}.v;", f"column {table}.v;")
        return shown["state"] == "FAILED" and any(one in found for one in told)

    try:
        database.execute(f"UPDATE {table} SET id = 2")
        following = ("topic", "consume", f"{owner.name}.{name}", "-d", owner.name, "--follow")
        lines = sdm(*following, "--timeout", "240", "--max", "4").lines
        after = [one["value"]["after"] for one in lines if one["value"] is not None]
        assert [one and (one["id"], one["v"]) for one in after] == [
            (1, after[0]["v"]), None, (2, after[0]["v"]),
        ]  # fmt: skip
        assert after[0]["v"] is not None
        database.execute(f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT")
        database.execute(f"UPDATE {table} SET id = 3")
        eventually(stands, "the connector has failed")
        keys = [one["key"]["id"] for one in sdm(*following[:-1]).lines]
        assert keys[:4] == [1, 1, 1, 2]
        assert 3 not in keys
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_text_that_looks_like_debeziums_placeholder_is_captured_as_any_other(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table, text = f"{place}.texts", "__debezium_unavailable_value"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v text, n int)")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    connector = captured(sdm, owner, schema, "texts")
    try:
        database.execute(f"INSERT INTO {table} VALUES (1, %s, 0)", (text,))
        database.execute(f"UPDATE {table} SET n = 1")
        database.execute(f"UPDATE {table} SET v = 'x'")
        database.execute(f"UPDATE {table} SET v = %s", (text,))
        following = ("topic", "consume", f"{owner.name}.texts", "-d", owner.name, "--follow")
        lines = sdm(*following, "--timeout", "240", "--max", "4").lines
        assert [one["value"]["after"]["v"] for one in lines] == [text, text, "x", text]
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_a_row_without_a_number_may_get_another_key(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    database.execute(f"CREATE TABLE {place}.nulls (id int PRIMARY KEY, n numeric(10, 2), a int[])")
    database.execute(f"ALTER TABLE {place}.nulls REPLICA IDENTITY FULL")
    connector = captured(sdm, owner, schema, "nulls")
    try:
        database.execute(f"INSERT INTO {place}.nulls (id) VALUES (1)")
        database.execute(f"UPDATE {place}.nulls SET id = 2")
        following = ("topic", "consume", f"{owner.name}.nulls", "-d", owner.name, "--follow")
        lines = sdm(*following, "--timeout", "240", "--max", "4").lines
        assert lines[-1]["value"]["after"] == {"id": 2, "n": None, "a": None}
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_a_table_that_loses_its_primary_key_fails_its_connector_until_that_is_accepted(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    for name in ("kept", "plain"):
        database.execute(f"CREATE TABLE {place}.{name} (id int, n int)")
        database.execute(f"ALTER TABLE {place}.{name} REPLICA IDENTITY FULL")
        database.execute(f"INSERT INTO {place}.{name} VALUES (1, 1)")
    database.execute(f"ALTER TABLE {place}.kept ADD PRIMARY KEY (id)")
    name = f"{place}-keys".replace("_", "-")
    named = ("--table", f"{place}.kept", "--table", f"{place}.plain", "-d", owner.name)
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", *named)
    told = f"records of {place}.plain have no keys"
    # a database that is busy is not waited for
    eventually(lambda: told in sdm(*adding, "--dry-run").err, "the database answers in time")
    assert told in sdm(*adding).err
    connector = f"{owner.name}.{name}"

    def stands() -> bool:
        shown = described(sdm, connector)
        return shown["state"] == "FAILED" and f"key_lost: {place}.kept;" in shown["failure"]

    def values(topic: str, most: int) -> list[tuple[Any, int]]:
        following = ("topic", "consume", f"{owner.name}.{topic}", "-d", owner.name, "--follow")
        lines = sdm(*following, "--timeout", "240", "--max", str(most)).lines
        return [(one["key"], one["value"]["after"]["n"]) for one in lines]

    try:
        # of the one that never had a key
        database.execute(f"INSERT INTO {place}.plain VALUES (2, 2)")
        assert values("plain", 2) == [(None, 1), (None, 2)]
        database.execute(f"ALTER TABLE {place}.kept DROP CONSTRAINT kept_pkey")
        database.execute(f"INSERT INTO {place}.kept VALUES (2, 2)")
        eventually(stands, "the connector has failed")
        without = ("--set", f"table.keyless.list={place}.kept,{place}.plain")
        sdm(*NOUN, "update", connector, *without, "--until", "decided", "-d", owner.name)
        assert values("kept", 2) == [({"id": 1}, 1), (None, 2)]
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_a_truncated_table_fails_its_connector_until_truncate_is_passed_over(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table, own = f"{place}.rows", ("-d", owner.name)
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    database.execute(f"INSERT INTO {table} VALUES (1)")
    # as where the database was asked, which a busy one is not for long
    connector = captured(sdm, owner, schema, "rows", "table.keyless.list=")

    def stands() -> bool:
        shown = described(sdm, connector)
        return shown["state"] == "FAILED" and f"table_truncated: {place}.rows;" in shown["failure"]

    try:
        database.execute(f"TRUNCATE {table}")
        database.execute(f"INSERT INTO {table} VALUES (2)")
        eventually(stands, "the connector has failed")
        assert "--set skipped.operations=t" in described(sdm, connector)["failure"]
        passing = ("--set", "skipped.operations=t", "--until", "decided")
        sdm(*NOUN, "update", connector, *passing, *own)
        eventually(
            lambda: described(sdm, connector)["state"] == "ACTIVE", f"{connector} runs again"
        )
        following = ("topic", "consume", f"{owner.name}.rows", *own, "--follow")
        lines = sdm(*following, "--timeout", "240", "--max", "2").lines
        assert [one["key"]["id"] for one in lines] == [1, 2]
    finally:
        sdm(*NOUN, "delete", connector, *own)


@pytest.mark.parametrize(
    ("kind", "columns"), [("int", "id"), ("numeric", "q, id")], ids=["fewer", "another-order"]
)
def test_a_primary_key_of_other_columns_fails_the_connector(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], kind: str, columns: str
) -> None:
    """A plain numeric is a record by itself, to which the schema of the key refers."""
    place, database = schema
    table, own = f"{place}.rows", ("-d", owner.name)
    database.execute(f"CREATE TABLE {table} (id int, q {kind}, n int, PRIMARY KEY (id, q))")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO {table} VALUES (1, 1, 1)")
    connector = captured(sdm, owner, schema, "rows")

    def stands() -> bool:
        shown = described(sdm, connector)
        return shown["state"] == "FAILED" and f"key_changed: {owner.name}.rows;" in shown["failure"]

    try:
        database.execute(f"INSERT INTO {table} VALUES (2, 2, 2)")
        following = ("topic", "consume", f"{owner.name}.rows", *own, "--follow")
        assert len(sdm(*following, "--timeout", "240", "--max", "2").lines) == 2
        changed = f"DROP CONSTRAINT rows_pkey, ADD PRIMARY KEY ({columns})"
        database.execute(f"ALTER TABLE {table} {changed}")
        database.execute(f"UPDATE {table} SET n = 3 WHERE id = 1")
        eventually(stands, "the connector has failed")
        fails_again(sdm, owner, connector, stands)
        keys = [list(one["key"]) for one in sdm(*following[:-1]).lines]
        assert keys == [["id", "q"], ["id", "q"]]
    finally:
        sdm(*NOUN, "delete", connector, *own)


def fails_again(sdm: Sdm, owner: Party, connector: str, stands: Callable[[], bool]) -> None:
    """Stop and start a connector that has failed: it fails for the same reason."""
    sdm(*NOUN, "stop", connector, "-d", owner.name)
    assert described(sdm, connector)["state"] == "STOPPED"
    sdm(*NOUN, "start", connector, "--until", "decided", "-d", owner.name)
    eventually(stands, f"{connector} has failed again")
