"""What a capture has of changes that are made while it reads a table for the first time."""

from typing import Any

from projections.connectors.tables import slot_of
from tests.integration.connect.test_published_tables import rows
from tests.integration.connect.test_whole_rows import NOUN, schema
from tests.integration.test_cli import Party, Sdm, owner, sdm

__all__ = ["owner", "schema", "sdm"]


def test_a_reading_that_begins_anew_has_the_changes_since_the_slot_was_made(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    """As if the first reading had been cut off: its slot is there, and no position."""
    place, database = schema
    table, name = f"{place}.notes", f"{place}-notes".replace("_", "-")
    connector = f"{owner.name}.{name}"
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO {table} VALUES (1)")
    publishing = f"CREATE PUBLICATION {slot_of(connector)} FOR TABLE {table}"
    database.execute(f"{publishing} WITH (publish_via_partition_root = true)")
    making = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
    database.execute(making, (slot_of(connector),))
    database.execute(f"INSERT INTO {table} VALUES (2), (3)")
    database.execute(f"DELETE FROM {table} WHERE id = 2")
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", table)
    sdm(*adding, "-d", owner.name)
    try:
        found = rows(sdm, owner, "notes", 6)
        shown = [(op, key["id"]) for op, key, _ in found]
        assert sorted(shown[:2]) == [("r", 1), ("r", 3)]
        assert shown[2:] == [("c", 2), ("c", 3), ("d", 2), ("-", 2)]
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_an_enum_without_labels_in_the_database_ends_no_capture(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    """Nor a domain over an enum: Debezium reads all types of a database as it starts."""
    place, database = schema
    table, name = f"{place}.plain", f"{place}-plain".replace("_", "-")
    connector = f"{owner.name}.{name}"
    database.execute(f"CREATE TYPE {place}.none_yet AS ENUM ()")
    database.execute(f"CREATE TYPE {place}.mood AS ENUM ('fine')")
    database.execute(f"CREATE DOMAIN {place}.mine AS {place}.mood")
    database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, mood {place}.mood)")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO {table} VALUES (1, 'fine')")
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", table)
    sdm(*adding, "-d", owner.name)
    try:
        database.execute(f"INSERT INTO {table} VALUES (2, 'fine')")
        found = rows(sdm, owner, "plain", 2)
        assert [(op, after["mood"]) for op, _, after in found] == [("r", "fine"), ("c", "fine")]
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)
