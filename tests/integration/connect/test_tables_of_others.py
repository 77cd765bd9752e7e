"""No domain captures or fills a table that another domain's connector captures or fills."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints, PlatformSettings
from mesh_events.connectors import ConnectorAdded
from mesh_events.emit import Emitter
from self_service.cli.connect import databases, debezium
from self_service.cli.connect.databases import Place
from self_service.cli.framework.exits import ExitCode
from tests.integration.connect_owner import consumer, owner
from tests.integration.test_cli import Party, Sdm, filled, sdm
from tests.integration.test_cli_connect import drop_slots
from tests.kafka_client import eventually, fresh

__all__ = ["consumer", "owner", "sdm"]
pytestmark = pytest.mark.platform
NOUN = ("connect", "connector")
OTHER_SCHEMA = "a_first"
"""Stands before `public` in every list of schemas."""
BY_POSITION = """
CREATE TABLE {} (userid bigint, phone text,
                 __connect_topic text, __connect_partition int, __connect_offset bigint,
                 PRIMARY KEY (__connect_topic, __connect_partition, __connect_offset))
"""
Database = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def database(mesh: Endpoints) -> Iterator[Database]:
    with psycopg.connect(
        **mesh.postgres_login(), autocommit=True, prepare_threshold=None
    ) as connection:
        yield connection


def test_a_captured_table_is_neither_captured_nor_filled_by_another_domain(
    sdm: Sdm,
    owner: Party,
    consumer: Party,
    settings: PlatformSettings,
    mesh: Endpoints,
    database: Database,
    tmp_path: Path,
) -> None:
    name = fresh("shop").replace("-", "_")
    own, theirs, topic = ("-d", owner.name), ("-d", consumer.name), filled(sdm, tmp_path, consumer)
    capture = (*NOUN, "add", name, "--type", "debezium-postgres", "--table", name)
    fill = (
        *(*NOUN, "add", fresh("sink"), "--type", "jdbc-sink", "--topic", topic, "--key", "record"),
        *("--set", f"collection.name.format={name}"),
    )
    table = sql.Identifier(name)
    database.execute(sql.SQL("CREATE TABLE {} (userid int PRIMARY KEY)").format(table))
    try:
        sdm(*capture, *own)
        try:
            for adding in (capture, fill):
                for more in ((), ("--dry-run",)):
                    refused = sdm(*adding, *more, *theirs, code=ExitCode.REFUSED).err
                    assert "refused (table_taken)" in refused
                    assert f"public.{name}" in refused
            # the governor answers who emits it without `sdm`
            connector, source = f"{consumer.name}.{name}", databases.database(mesh, Place())
            config = debezium.config(connector, [name], source)
            with Emitter.at_home(consumer.name, actor="thief", home=settings.home) as emitter:
                event = ConnectorAdded(meta=emitter.meta(), connector=connector, config=config)
                assert emitter.outcome(emitter.emit(event)).code == "table_taken"
        finally:
            sdm(*NOUN, "delete", name, *own)
        sdm(*fill, "--dry-run", *theirs)
    finally:
        drop_slots(database, name)
        database.execute(sql.SQL("DROP TABLE {}").format(table))


def test_a_sink_fills_the_table_of_its_own_schema_where_another_schema_has_the_name(
    sdm: Sdm, owner: Party, database: Database, tmp_path: Path
) -> None:
    table, name = f"rows_{uuid4().hex[:8]}", fresh("sink")
    topic, own = filled(sdm, tmp_path, owner), ("-d", owner.name)
    here, there = sql.Identifier("public", table), sql.Identifier(OTHER_SCHEMA, table)
    schema = sql.Identifier(OTHER_SCHEMA)
    database.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
    database.execute(sql.SQL(BY_POSITION).format(there))

    def rows(place: sql.Identifier) -> int:
        try:
            return len(database.execute(sql.SQL("SELECT 1 FROM {}").format(place)).fetchall())
        except psycopg.errors.UndefinedTable:
            return 0

    try:
        sdm(
            *(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", topic, "--key", "position"),
            *("--set", f"collection.name.format={table}", *own),
        )
        try:
            eventually(lambda: rows(here) + rows(there) == 2, "a table has both rows")
            assert rows(there) == 0
        finally:
            sdm(*NOUN, "delete", name, *own)
    finally:
        for place in (here, there):
            database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(place))
