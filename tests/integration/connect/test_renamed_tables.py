"""Captured tables that get another name, and other tables that get theirs."""

from functools import partial
from typing import Any

import pytest

from projections.connectors.tables import slot_of
from tests.integration.connect.test_published_tables import (
    Emit,
    emit,
    failed,
    has_failed,
    published,
    rows,
    streams,
)
from tests.integration.connect.test_whole_rows import NOUN, fails_again, schema
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.kafka_client import eventually

__all__ = ["emit", "owner", "schema", "sdm"]
pytestmark = pytest.mark.slow


def comment(database: Any, connector: str) -> str:
    """That of the connector's publication."""
    found = "SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s"
    [(text,)] = database.execute(found, (slot_of(connector),)).fetchall()
    return str(text)


def oids(database: Any, *tables: str) -> list[int]:
    found = "SELECT to_regclass(%s)::oid::bigint"
    return [int(database.execute(found, (one,)).fetchone()[0]) for one in tables]


def ids(sdm: Sdm, owner: Party, topic: str, most: int) -> list[int]:
    return [key["id"] for _, key, _ in rows(sdm, owner, topic, most)]


def test_changes_of_a_captured_table_by_another_name_fail_the_connector(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-renamed".replace("_", "-")
    kept, other = f"{place}.kept", f"{place}.other"
    for table in (kept, other):
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
        database.execute(f"INSERT INTO {table} VALUES (1)")
    emit(connector, kept, other)
    assert ids(sdm, owner, "other", 1) == [1]
    # one that the connector leaves out from now on may be called as it likes
    emit(connector, kept)
    eventually(lambda: published(database, connector) == {kept}, "one is published")
    streams(database, connector)
    with database.transaction():
        database.execute(f"ALTER TABLE {other} RENAME TO others")
        database.execute(f"INSERT INTO {place}.others VALUES (3)")
        database.execute(f"INSERT INTO {kept} VALUES (2)")
    assert ids(sdm, owner, "kept", 2) == [1, 2]
    with database.transaction():
        database.execute(f"ALTER TABLE {kept} RENAME TO away")
        database.execute(f"INSERT INTO {place}.away VALUES (3)")
        database.execute(f"ALTER TABLE {place}.away RENAME TO kept")

    stands = partial(failed, sdm, connector, f"table_renamed: {kept}")
    eventually(stands, "the connector has failed")
    # its publication has nothing of it any more, and the change may still come
    database.execute(f"DROP TABLE {kept}")
    fails_again(sdm, owner, connector, stands)


def test_a_start_refuses_a_table_that_was_renamed_until_it_has_its_name_back(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-away".replace("_", "-")
    kept, other = f"{place}.kept", f"{place}.other"
    for table in (kept, other):
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    emit(connector, kept, other)
    streams(database, connector)
    sdm(*NOUN, "stop", connector, "-d", owner.name)
    database.execute(f"INSERT INTO {kept} VALUES (1)")
    database.execute(f"ALTER TABLE {kept} RENAME TO away")
    sdm(*NOUN, "start", connector, "--until", "decided", "-d", owner.name)
    has_failed(sdm, connector, f"table_renamed: {kept}")
    # neither is a table with the name put in its place
    database.execute(f"CREATE TABLE {kept} (id int PRIMARY KEY)")
    fails_again(sdm, owner, connector, partial(failed, sdm, connector, f"table_renamed: {kept}"))
    assert published(database, connector) == {f"{place}.away", other}
    database.execute(f"DROP TABLE {kept}")
    database.execute(f"ALTER TABLE {place}.away RENAME TO kept")
    database.execute(f"INSERT INTO {kept} VALUES (2)")
    assert ids(sdm, owner, "kept", 2) == [1, 2]


def test_a_start_refuses_a_table_in_the_place_of_a_captured_one_until_it_is_published(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-anew".replace("_", "-")
    kept, other = f"{place}.kept", f"{place}.other"
    for table in (kept, other):
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    emit(connector, kept, other)
    streams(database, connector)
    sdm(*NOUN, "stop", connector, "-d", owner.name)
    database.execute(f"DROP TABLE {kept}; CREATE TABLE {kept} (id int PRIMARY KEY)")
    sdm(*NOUN, "start", connector, "--until", "decided", "-d", owner.name)
    has_failed(sdm, connector, f"table_recreated: {kept}")
    assert published(database, connector) == {other}
    database.execute(f"ALTER PUBLICATION {slot_of(connector)} ADD TABLE {kept}")
    database.execute(f"INSERT INTO {kept} VALUES (1)")
    assert ids(sdm, owner, "kept", 1) == [1]
    # a table that is gone leaves nothing behind
    sdm(*NOUN, "stop", connector, "-d", owner.name)
    database.execute(f"DROP TABLE {kept}")
    sdm(*NOUN, "start", connector, "--until", "decided", "-d", owner.name)
    streams(database, connector)


def test_tables_that_are_captured_by_each_others_names_go_on(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-swapped".replace("_", "-")
    one, two, heir = f"{place}.one", f"{place}.two", f"{place}.heir"
    tables = (one, two, f"{place}.parts", f"{place}.part")
    for table in tables[:2]:
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    database.execute(f"CREATE TABLE {place}.parts (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    database.execute(f"CREATE TABLE {place}.part PARTITION OF {place}.parts DEFAULT")
    emit(connector, *tables)
    streams(database, connector)
    before = oids(database, *tables)
    assert all(f'"{oid}"' in comment(database, connector) for oid in before)
    sdm(*NOUN, "stop", connector, "-d", owner.name)
    database.execute(f"CREATE TABLE {heir} (id int PRIMARY KEY) INHERITS ({one})")
    with database.transaction():
        for table, name in ((one, "none"), (two, "one"), (f"{place}.none", "two")):
            database.execute(f"ALTER TABLE {table} RENAME TO {name}")
    assert oids(database, *tables) == [before[1], before[0], *before[2:]]
    sdm(*NOUN, "start", connector, "--until", "decided", "-d", owner.name)
    streams(database, connector)
    database.execute(f"ALTER TABLE {heir} RENAME TO heiress")
    database.execute(f"INSERT INTO {place}.heiress VALUES (1)")
    database.execute(f"INSERT INTO {one} VALUES (2)")
    database.execute(f"INSERT INTO {two} VALUES (3)")
    assert [ids(sdm, owner, name, 1) for name in ("one", "two")] == [[2], [3]]
    assert f'"{before[1]}":["{place}","one"]' in comment(database, connector)


def test_a_table_that_becomes_a_partition_of_a_captured_one_may_have_another_name(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-parted".replace("_", "-")
    kept, publication = f"{place}.kept", slot_of(connector)
    database.execute(f"CREATE TABLE {kept} (id int PRIMARY KEY)")
    emit(connector, kept)
    streams(database, connector)
    with database.transaction():
        database.execute(f"ALTER TABLE {kept} RENAME TO low")
        database.execute(f"CREATE TABLE {kept} (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        attaching = f"ALTER TABLE {kept} ATTACH PARTITION {place}.low FOR VALUES FROM (0) TO (10)"
        database.execute(attaching)
        database.execute(f"ALTER PUBLICATION {publication} ADD TABLE {kept}")
    database.execute(f"INSERT INTO {kept} VALUES (1)")
    database.execute(f"INSERT INTO {place}.low VALUES (2)")
    assert ids(sdm, owner, "kept", 2) == [1, 2]
    for _ in range(2):
        sdm(*NOUN, "stop", connector, "-d", owner.name)
        sdm(*NOUN, "start", connector, "--until", "decided", "-d", owner.name)
        streams(database, connector)
    database.execute(f"UPDATE {kept} SET id = 3 WHERE id = 2")
    assert ids(sdm, owner, "kept", 5) == [1, 2, 2, 2, 3]


def test_a_publication_with_another_comment_keeps_it(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], emit: Emit
) -> None:
    place, database = schema
    connector = f"{owner.name}.{place}-said".replace("_", "-")
    kept, publication = f"{place}.kept", slot_of(connector)
    database.execute(f"CREATE TABLE {kept} (id int PRIMARY KEY)")
    database.execute(f"CREATE PUBLICATION {publication} FOR TABLE {kept}")
    said = "tables that are captured, by their oid: {, says somebody"
    database.execute(f"COMMENT ON PUBLICATION {publication} IS '{said}'")
    emit(connector, kept)
    streams(database, connector)
    assert comment(database, connector) == said
