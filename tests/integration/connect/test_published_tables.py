"""Tables whose changes would come under another name, without their key, or not at all."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg import sql

from local_platform import Endpoints, PlatformSettings
from mesh_events.connectors import ConnectorAdded, ConnectorUpdated
from mesh_events.emit import Emitter
from projections.connectors.tables import slot_of
from self_service.cli.connect import databases, debezium
from self_service.cli.connect.databases import Place
from self_service.cli.framework.exits import ExitCode
from tests.integration.connect.test_whole_rows import NOUN, captured, described, schema
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.kafka_client import eventually, fresh

__all__ = ["owner", "schema", "sdm"]
pytestmark = pytest.mark.slow


def rows(sdm: Sdm, owner: Party, table: str, most: int) -> list[tuple[str, Any, Any]]:
    """(op, key, row after it) of a topic's first records; a deletion is two, one with op -."""
    reading = ("topic", "consume", f"{owner.name}.{table}", "-d", owner.name, "--follow")
    lines = sdm(*reading, "--timeout", "120", "--max", str(most)).lines
    return [
        ("-", one["key"], None)
        if one["tombstone"]
        else (one["value"]["op"], one["key"], one["value"]["after"])
        for one in lines
    ]


Emit = Callable[..., None]


@pytest.fixture
def emit(sdm: Sdm, owner: Party, mesh: Endpoints, settings: PlatformSettings) -> Iterator[Emit]:
    """Gives a connector its tables as a client does that asks no database; drops it at the end."""
    added: list[str] = []

    def give(connector: str, *tables: str, **more: str) -> None:
        config = debezium.config(connector, list(tables), databases.database(mesh, Place())) | more
        kind = ConnectorUpdated if connector in added else ConnectorAdded
        with Emitter.at_home(owner.name, actor="client", home=settings.home) as emitter:
            intent = kind(meta=emitter.meta(), connector=connector, config=config)
            assert emitter.outcome(emitter.emit(intent), timeout=90).accepted
        added.append(connector)

    yield give
    for connector in dict.fromkeys(added):
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def published(database: Any, connector: str) -> set[str]:
    """What the connector's publication has."""
    found = "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s"
    return {name for (name,) in database.execute(found, (slot_of(connector),)).fetchall()}


def failed(sdm: Sdm, connector: str, reason: str) -> bool:
    """Whether a connector has failed for a reason, a code and what it names."""
    found = described(sdm, connector)
    return found["state"] == "FAILED" and f"{reason}; " in str(found["failure"])


def has_failed(sdm: Sdm, connector: str, reason: str) -> None:
    """Wait until a connector has failed for a reason."""
    eventually(lambda: failed(sdm, connector, reason), f"{connector} fails for {reason}")


def fails(sdm: Sdm, connector: str, table: str) -> None:
    """Wait until a connector has failed for a table without an identity."""
    has_failed(sdm, connector, f"table_without_identity: {table}")


def streams(database: Any, connector: str) -> None:
    active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
    slot = (slot_of(connector),)
    eventually(lambda: database.execute(active, slot).fetchone(), f"{connector} streams")


def test_a_table_that_has_lost_its_key_is_not_published(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    table, name = f"{place}.lost", f"{place}-lost".replace("_", "-")
    connector = f"{owner.name}.{name}"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n int)")
    database.execute(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", table)
    sdm(*adding, "-d", owner.name, "--dry-run")
    database.execute(f"ALTER TABLE {table} DROP CONSTRAINT lost_pkey")
    emit(connector, table)
    fails(sdm, connector, table)
    # a connector that failed holds no lock either
    database.execute("SET lock_timeout = '10s'")
    database.execute(f"UPDATE {table} SET n = 3 WHERE id = 1")
    database.execute(f"DELETE FROM {table} WHERE id = 2")
    assert published(database, connector) == set()
    database.execute(f"ALTER TABLE {table} ADD PRIMARY KEY (id)")
    streams(database, connector)
    assert published(database, connector) == {table}
    database.execute(f"UPDATE {table} SET n = 4")
    found = rows(sdm, owner, "lost", 2)
    assert [(op, row["n"]) for op, _, row in found] == [("r", 3), ("u", 4)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("columns", "change"),
    [
        ("id int PRIMARY KEY DEFERRABLE, n int", ""),
        ("id int PRIMARY KEY, n int", "ALTER TABLE {table} REPLICA IDENTITY NOTHING"),
        (
            "id int NOT NULL, n int",
            (
                "CREATE UNIQUE INDEX by_id ON {table} (id);"
                "ALTER TABLE {table} REPLICA IDENTITY USING INDEX by_id; DROP INDEX {place}.by_id"
            ),
        ),
        (
            "id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (id * 2) STORED",
            "ALTER TABLE {table} REPLICA IDENTITY FULL",
        ),
        (
            "id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL",
            "ALTER TABLE {table} REPLICA IDENTITY FULL",
        ),
    ],
    ids=["deferrable", "nothing", "index", "stored", "virtual"],
)
def test_a_table_whose_updates_would_fail_is_not_published(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit, columns: str, change: str
) -> None:
    place, database = schema
    table, connector = f"{place}.lost", f"{owner.name}.{place}-lost".replace("_", "-")
    database.execute(f"CREATE TABLE {table} ({columns})")
    database.execute(change.format(table=table, place=place))
    emit(connector, table)
    fails(sdm, connector, table)
    database.execute(f"UPDATE {table} SET n = 3")
    assert published(database, connector) == set()


def test_an_update_publishes_no_partition_without_a_key_beside_tables_that_have_one(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-kept".replace("_", "-")
    database.execute(
        f"CREATE TABLE {place}.keyed (id int PRIMARY KEY, d int GENERATED ALWAYS AS (id) STORED);"
        f"CREATE TABLE {place}.full (n int); ALTER TABLE {place}.full REPLICA IDENTITY FULL;"
        f"CREATE TABLE {place}.indexed (id int NOT NULL);"
        f"CREATE UNIQUE INDEX by_id ON {place}.indexed (id);"
        f"ALTER TABLE {place}.indexed REPLICA IDENTITY USING INDEX by_id;"
        # of a partitioned table the partitions alone are asked
        f"CREATE TABLE {place}.parts (id int, n int) PARTITION BY RANGE (id);"
        f"CREATE TABLE {place}.low PARTITION OF {place}.parts FOR VALUES FROM (0) TO (10);"
        f"ALTER TABLE {place}.low REPLICA IDENTITY FULL;"
        f"CREATE TABLE {place}.high (id int, n int) PARTITION BY RANGE (id)"
    )
    database.execute(f"CREATE TABLE {place}.part PARTITION OF {place}.high DEFAULT")
    kept = [f"{place}.{one}" for one in ("keyed", "full", "indexed", "parts")]
    emit(connector, *kept)
    streams(database, connector)
    assert published(database, connector) == set(kept)
    emit(connector, *kept, f"{place}.high", **{"snapshot.mode": "no_data"})
    fails(sdm, connector, f"{place}.part")
    database.execute(f"UPDATE {place}.high SET n = 3")
    assert published(database, connector) == set(kept)


def test_an_update_adds_a_table_where_truncations_are_passed_over(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-skips".replace("_", "-")
    one, other = f"{place}.one", f"{place}.other"
    for table in (one, other):
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    passing = {"skipped.operations": "t"}
    emit(connector, one, **passing)
    streams(database, connector)
    emit(connector, one, other, **passing, **{"snapshot.mode": "no_data"})
    eventually(lambda: published(database, connector) == {one, other}, "both are published")
    streams(database, connector)
    database.execute(f"INSERT INTO {other} VALUES (1)")
    database.execute(f"TRUNCATE {other}")
    database.execute(f"INSERT INTO {other} VALUES (2)")
    assert [(op, key["id"]) for op, key, _ in rows(sdm, owner, "other", 2)] == [("c", 1), ("c", 2)]


def test_changes_of_partitions_arrive_as_the_partitioned_tables(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table = f"{place}.parts"
    database.execute(
        f"CREATE TABLE {table} (id int, d int, note text, PRIMARY KEY (id, d))"
        " PARTITION BY RANGE (d)"
    )
    database.execute(f"CREATE TABLE {place}.low PARTITION OF {table} FOR VALUES FROM (0) TO (10)")
    database.execute(f"ALTER TABLE {place}.low REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO {table} VALUES (1, 1, 'a')")
    connector = captured(sdm, owner, schema, "parts")
    try:
        database.execute(f"INSERT INTO {table} SELECT 2, 2, string_agg(md5(n::text), '')"
                         " FROM generate_series(1, 9000) n")  # fmt: skip
        database.execute(
            f"CREATE TABLE {place}.high PARTITION OF {table} FOR VALUES FROM (10) TO (20)"
        )
        database.execute(f"ALTER TABLE {place}.high REPLICA IDENTITY FULL")
        database.execute(f"INSERT INTO {table} VALUES (3, 13, 'c')")
        database.execute(f"UPDATE {table} SET id = 5 WHERE id = 2")
        database.execute(f"DELETE FROM {table} WHERE id IN (1, 3)")
        found = rows(sdm, owner, "parts", 10)
        shown = [(op, key["id"], key["d"]) for op, key, _ in found]
        assert shown[:3] == [("r", 1, 1), ("c", 2, 2), ("c", 3, 13)]
        assert shown[3:6] == [("d", 2, 2), ("-", 2, 2), ("c", 5, 2)]
        assert sorted(shown[6:]) == sorted([("d", 1, 1), ("-", 1, 1), ("d", 3, 13), ("-", 3, 13)])
        assert len(found[5][2]["note"]) == 32 * 9000
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_a_publication_of_partitions_names_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table, publication = f"{place}.parts", f"{place}_kept"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    database.execute(f"CREATE TABLE {place}.every PARTITION OF {table} DEFAULT")
    database.execute(f"CREATE PUBLICATION {publication} FOR TABLE {table}")
    adding = (
        *(*NOUN, "add", fresh("parts"), "--type", "debezium-postgres", "--table", table),
        *("--set", f"publication.name={publication}", "-d", owner.name, "--dry-run"),
        *("--set", "publication.autocreate.mode=disabled"),
    )
    try:
        told = sdm(*adding, code=ExitCode.REFUSED)
        assert "refused (table_by_partition)" in told.err
        cure = f"ALTER PUBLICATION {publication} SET (publish_via_partition_root = true)"
        assert cure in " ".join(told.err.split())
        database.execute(cure)
        sdm(*adding)
        off = ("--set", "publish.via.partition.root=false")
        assert "setting_not_allowed" in sdm(*adding, *off, code=ExitCode.REFUSED).err
    finally:
        database.execute(f"DROP PUBLICATION {publication}")


@pytest.mark.parametrize(
    ("has", "code", "told", "cure"),
    [
        ("TABLE {other}", "table_not_published", "does not have {table}", "SET TABLE {table}"),
        (
            "TABLE {table} WITH (publish = 'insert')",
            "table_published_partly",
            "has no UPDATE, DELETE, TRUNCATE",
            "SET (publish = 'insert, update, delete, truncate')",
        ),
        (
            "TABLE {table} WHERE (id > 0)",
            "table_published_partly",
            "has a WHERE for {table}, which the snapshot does not follow",
            "SET TABLE {table}",
        ),
        (
            "TABLE {table} (id)",
            "table_published_partly",
            "does not have the columns body of {table}",
            "SET TABLE {table} (id, body)",
        ),
    ],
)
def test_a_publication_without_all_changes_of_a_table_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], has: str, code: str, told: str, cure: str
) -> None:
    place, database = schema
    table, other, publication = f"{place}.notes", f"{place}.other", f"{place}_kept"
    for one in (table, other):
        database.execute(f"CREATE TABLE {one} (id int PRIMARY KEY, body int)")
    database.execute(f"CREATE PUBLICATION {publication} FOR {has.format(table=table, other=other)}")
    adding = (
        *(*NOUN, "add", fresh("notes"), "--type", "debezium-postgres", "--table", table),
        *("--set", f"publication.name={publication}", "-d", owner.name, "--dry-run"),
        *("--set", "publication.autocreate.mode=disabled"),
    )
    try:
        refused = " ".join(sdm(*adding, code=ExitCode.REFUSED).err.split())
        assert f"refused ({code})" in refused
        assert told.format(table=table) in refused
        database.execute(f"ALTER PUBLICATION {publication} {cure.format(table=table)}")
        sdm(*adding)
    finally:
        database.execute(f"DROP PUBLICATION {publication}")


def test_an_outbox_needs_what_is_inserted_alone(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table, publication = f"{place}.outbox", f"{place}_kept"
    columns = "id uuid PRIMARY KEY, aggregatetype text, aggregateid text, type text, payload jsonb"
    database.execute(f"CREATE TABLE {table} ({columns})")
    publishing = f"CREATE PUBLICATION {publication} FOR TABLE {table}"
    database.execute(f"{publishing} WITH (publish = 'insert')")
    adding = (
        *(*NOUN, "add", fresh("outbox"), "--type", "debezium-outbox", "--table", table),
        *("--set", f"publication.name={publication}", "-d", owner.name, "--dry-run"),
        *("--set", "publication.autocreate.mode=disabled"),
    )
    try:
        sdm(*adding)
        database.execute(f"ALTER PUBLICATION {publication} SET (publish = 'update')")
        told = sdm(*adding, code=ExitCode.REFUSED)
        assert "has no INSERT (" in " ".join(told.err.split())
    finally:
        database.execute(f"DROP PUBLICATION {publication}")


def test_a_table_that_others_inherit_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    database.execute(f"CREATE TABLE {place}.base (id int PRIMARY KEY)")
    database.execute(f"CREATE TABLE {place}.heir (n int, PRIMARY KEY (id)) INHERITS ({place}.base)")
    adding = (*NOUN, "add", fresh("base"), "--type", "debezium-postgres", "-d", owner.name)
    told = sdm(*adding, "--table", f"{place}.base", "--dry-run", code=ExitCode.REFUSED)
    assert "refused (table_inherited)" in told.err
    sdm(*adding, "--table", f"{place}.heir", "--dry-run")


def test_what_has_no_changes_in_the_log_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    there, fdw = f"{place}.there", f"{place}_fdw"
    database.execute(f"CREATE TABLE {there} (id int PRIMARY KEY)")
    adding = (*NOUN, "add", fresh("logged"), "--type", "debezium-postgres", "-d", owner.name)

    def told(table: str) -> str:
        found = sdm(*adding, "--table", f"{place}.{table}", "--dry-run", code=ExitCode.REFUSED)
        return " ".join(found.err.split())

    database.execute(f"CREATE VIEW {place}.view AS SELECT * FROM {there}")
    assert f"refused (table_is_view): {place}.view is a view" in told("view")
    database.execute(f"CREATE MATERIALIZED VIEW {place}.made AS SELECT * FROM {there}")
    assert f"refused (table_is_view): {place}.made is a view" in told("made")
    database.execute(f"CREATE UNLOGGED TABLE {place}.fast (id int PRIMARY KEY)")
    assert f"refused (table_unlogged): {place}.fast is unlogged" in told("fast")
    database.execute(f"CREATE TABLE {place}.parts (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    sdm(*adding, "--table", f"{place}.parts", "--dry-run")
    database.execute(f"CREATE UNLOGGED TABLE {place}.part PARTITION OF {place}.parts DEFAULT")
    assert f"refused (table_unlogged): {place}.part is unlogged" in told("parts")
    database.execute(f"CREATE FOREIGN DATA WRAPPER {fdw}; CREATE SERVER {fdw}"
                     f" FOREIGN DATA WRAPPER {fdw}")  # fmt: skip
    try:
        database.execute(f"CREATE FOREIGN TABLE {place}.away (id int) SERVER {fdw}")
        assert f"refused (table_is_foreign): {place}.away is a foreign" in told("away")
        missing = told("none")
        assert "unknown_table" in missing
        assert f"{place}.view" not in missing
    finally:
        database.execute(f"DROP FOREIGN DATA WRAPPER {fdw} CASCADE")
    database.execute(f"ALTER TABLE {place}.fast SET LOGGED")
    sdm(*adding, "--table", f"{place}.fast", "--dry-run")


@pytest.mark.parametrize(
    ("key", "index", "is_taken"),
    [
        ("PRIMARY KEY (id)", "code", False),
        ("PRIMARY KEY (id)", "code, id", True),
        ("PRIMARY KEY (id, n)", "id, code", False),
        # a unique index is no key
        ("UNIQUE (id)", "code", True),
        ("CHECK (id > 0)", "code", True),
    ],
)
def test_an_identity_that_lacks_a_column_of_the_key_is_refused(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], key: str, index: str, is_taken: bool
) -> None:
    place, database = schema
    table = f"{place}.coded"
    database.execute(
        f"CREATE TABLE {table} (id int NOT NULL, n int NOT NULL, code int NOT NULL, {key})"
    )
    database.execute(f"CREATE UNIQUE INDEX by_code ON {table} ({index})")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY USING INDEX by_code")
    adding = (
        *(*NOUN, "add", fresh("coded"), "--type", "debezium-postgres", "--table", table),
        *("-d", owner.name, "--dry-run"),
    )
    if is_taken:
        sdm(*adding)
        return
    told = " ".join(sdm(*adding, code=ExitCode.REFUSED).err.split())
    assert "refused (table_without_identity)" in told
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    assert f"run ALTER TABLE {table} REPLICA IDENTITY FULL;" in told
    sdm(*adding)


def test_a_table_in_the_place_of_a_captured_one_is_told_by_the_next_update(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table = f"{place}.swapped"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    database.execute(f"CREATE TABLE {place}.later (id int PRIMARY KEY)")
    connector = captured(sdm, owner, schema, "swapped")
    tuning = (*NOUN, "update", connector, "--set", "poll.interval.ms=60", "-d", owner.name)
    try:
        sdm(*tuning, "--dry-run")
        both = ("--set", f"table.include.list={table},{place}.later")
        sdm(*tuning, *both, "--dry-run")
        database.execute(f"ALTER TABLE {table} RENAME TO before")
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
        for more in ((), both, ("--dry-run",)):
            told = sdm(*tuning, *more, code=ExitCode.REFUSED)
            assert f"refused (table_recreated): {table} is" in " ".join(told.err.split())
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_a_migration_that_publishes_the_new_table_loses_nothing(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    place, database = schema
    table = f"{place}.moved"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n int)")
    database.execute(f"INSERT INTO {table} VALUES (1, 1)")
    connector = captured(sdm, owner, schema, "moved")
    publication = sql.Identifier(slot_of(connector)).as_string(database)
    try:
        with database.transaction():
            database.execute(f"ALTER TABLE {table} RENAME TO before")
            database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n int, more int)")
            database.execute(f"ALTER PUBLICATION {publication} ADD TABLE {table}")
            database.execute(f"ALTER PUBLICATION {publication} DROP TABLE {place}.before")
            database.execute(f"INSERT INTO {table} SELECT id, n FROM {place}.before")
        database.execute(f"UPDATE {table} SET more = 3")
        database.execute(f"INSERT INTO {table} VALUES (2, 2, 2)")
        found = rows(sdm, owner, "moved", 4)
        assert [(op, key["id"]) for op, key, _ in found] == [("r", 1), ("c", 1), ("u", 1), ("c", 2)]
        assert [one[2]["more"] for one in found[1:]] == [None, 3, 2]
        sdm(
            *NOUN,
            "update",
            connector,
            "--set",
            "poll.interval.ms=60",
            "-d",
            owner.name,
            "--dry-run",
        )
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)
