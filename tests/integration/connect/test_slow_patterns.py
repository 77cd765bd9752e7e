"""No text of a database keeps Debezium comparing it with a pattern for ever."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local_platform import Endpoints, LocalPlatform
from local_platform.settings import PlatformSettings
from projections.connectors.tables import slot_of
from tests.integration.connect.test_published_tables import rows
from tests.integration.connect.test_whole_rows import NOUN, captured, schema
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, fresh
from tests.mesh_fixtures import connect_service

__all__ = ["owner", "schema", "sdm"]
pytestmark = pytest.mark.slow
_BEGIN_OF_DUMP = "Full thread dump"
_END_OF_DUMP = "JNI global refs"
SLOW_INDEX = (
    f"a text NOT NULL);CREATE UNIQUE INDEX by_text ON {{table}} (((a || '{' x' * 60}\n')::varchar))"
)
SLOW_DEFAULT = f"id int PRIMARY KEY, a text DEFAULT concat('{'x, ' * 40}x\n', ''))"
HONEST = (
    "id int NOT NULL, word text NOT NULL DEFAULT concat('a, b, c', 'd'), n int DEFAULT 7,"
    " at timestamptz DEFAULT now(), note text DEFAULT 'it''s (a, b)');"
    "CREATE UNIQUE INDEX by_word ON {table} (lower(word), (id + 1));"
    "CREATE UNIQUE INDEX a_part ON {table} (n) WHERE id = 1;"
    "CREATE UNIQUE INDEX by_id ON {table} (id)"
)


def create(database: Any, table: str, columns: str) -> None:
    database.execute(f"CREATE TABLE {table} ({columns.format(table=table)}")
    database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")


@contextmanager
def added(sdm: Sdm, owner: Party, table: str) -> Iterator[str]:
    """The id of a connector that captures one table, which need not stream."""
    name = fresh("slow")
    adding = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", table)
    sdm(*adding, "-d", owner.name, "--until", "decided")
    try:
        yield f"{owner.name}.{name}"
    finally:
        sdm(*NOUN, "delete", name, "-d", owner.name)


def threads(settings: PlatformSettings, domain: str) -> str:
    """What all threads of a domain's Connect worker do; Java writes it into the worker's log."""
    service = connect_service(domain)
    [connect] = [one for one in LocalPlatform(settings).status() if one.name == service]
    assert connect.pid is not None
    before = connect.log.stat().st_size

    def dump() -> str:
        return connect.log.read_bytes()[before:].decode(errors="replace")

    os.kill(connect.pid, signal.SIGQUIT)
    eventually(lambda: _END_OF_DUMP in dump(), "Connect writes its threads")
    return dump().partition(_BEGIN_OF_DUMP)[2].partition(_END_OF_DUMP)[0]


def test_a_unique_index_is_no_key_and_compared_with_no_pattern(
    sdm: Sdm,
    owner: Party,
    mesh: Endpoints,
    settings: PlatformSettings,
    schema: tuple[str, Any],
) -> None:
    name, database = schema
    create(database, f"{name}.slow", SLOW_INDEX)
    create(database, f"{name}.honest", HONEST)
    database.execute(f"INSERT INTO {name}.honest VALUES (1), (0)")
    beside = captured(sdm, owner, schema, "honest")
    active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
    try:
        with added(sdm, owner, f"{name}.slow") as connector:
            slot = (slot_of(connector),)
            eventually(lambda: database.execute(active, slot).fetchone(), "it streams")
            # one that compares for ever is in each of them; a trace may be logged in between
            eventually(
                lambda: "java.util.regex" not in threads(settings, owner.name), "no thread compares"
            )
        database.execute(f"INSERT INTO {name}.honest VALUES (2)")
        found = rows(sdm, owner, "honest", 3)
        assert [(op, row["id"]) for op, _, row in found] == [("r", 1), ("r", 0), ("c", 2)]
        assert {row["word"] for _, _, row in found} == {"a, b, cd"}
        # the first index has an entry for one of them, and all have the same n
        assert [key for _, key, _ in found] == [None, None, None]
    finally:
        sdm(*NOUN, "delete", beside, "-d", owner.name)


def test_a_default_that_has_to_be_computed_is_compared_with_no_pattern(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    name, database = schema
    create(database, f"{name}.slow", SLOW_DEFAULT)
    active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
    with added(sdm, owner, f"{name}.slow") as connector:
        slot = (slot_of(connector),)
        eventually(lambda: database.execute(active, slot).fetchone(), "it streams")
