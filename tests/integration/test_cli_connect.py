"""Connectors through the command line: tables of a real Postgres become topics of a domain."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints, PlatformSettings
from mesh_events.references import resolve
from self_service.cli.exits import ExitCode
from tests.integration.test_cli import Party, Sdm, register, sdm

__all__ = ["sdm"]


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """A table with one user, and a connection to it."""
    name = f"users_{uuid4().hex[:8]}"
    with psycopg.connect(
        host=mesh.postgres_host,
        port=mesh.postgres_port,
        user=mesh.postgres_user,
        password=resolve(mesh.postgres_password),
        dbname=mesh.postgres_database,
        autocommit=True,
    ) as connection:
        names = {"name": sql.Identifier(name)}
        connection.execute(
            sql.SQL("CREATE TABLE {name} (userid int PRIMARY KEY, phone text)").format(**names)
        )
        connection.execute(sql.SQL("INSERT INTO {name} VALUES (1, 'a')").format(**names))
        yield name, connection
        _drop_slot(connection, f"sdm_{name}")
        connection.execute(sql.SQL("DROP TABLE {name}").format(**names))


def _drop_slot(connection: Any, slot: str) -> None:
    """Remove what the dropped connector left in the database, once it has let go."""
    inactive = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        known = connection.execute(
            "SELECT active FROM pg_replication_slots WHERE slot_name = %s", (slot,)
        ).fetchone()
        if known is None:
            return
        if not known[0]:
            connection.execute(f"{inactive} WHERE slot_name = %s", (slot,))
            return
    pytest.fail(f"the slot {slot} is still in use")


@pytest.fixture
def east(sdm: Sdm) -> Party:
    """The domain whose prefix the worker may write; it is registered once per mesh."""
    known = [one["domain"] for one in sdm("domain", "list").document]
    if "east" not in known:
        sdm("domain", "register", "east", "--cluster", "east", "--owner", "team-east")
    return Party("east", "east")


@pytest.mark.timeout(180)
def test_every_change_of_a_table_arrives_as_an_event_and_no_secret_is_shown(
    sdm: Sdm,
    east: Party,
    table: tuple[str, Any],
    mesh: Endpoints,
    settings: PlatformSettings,
) -> None:
    name, database = table
    connector, topic = name.replace("_", "-"), f"east.{name}"
    added = sdm(
        *("connect", "connector", "add", connector, "--type", "debezium-postgres"),
        *("--table", name, "-d", "east"),
    )
    assert added.document["state"] == "RUNNING"
    try:
        # the operator may read everywhere; a domain of this name may have its key elsewhere
        reading = ("topic", "consume", topic, "-d", "mesh", "--follow", "--timeout", "60")
        first = sdm(*reading, "--max", "1").lines[0]
        assert (first["key"], first["value"]["after"]) == (
            {"userid": 1},
            {"userid": 1, "phone": "a"},
        )
        database.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
        later = sdm(*reading, "--max", "3").lines
        assert [one["tombstone"] for one in later] == [False, False, True]
        assert later[1]["value"]["op"] == "d"
        shown = sdm("connect", "connector", "describe", connector)
        assert shown.document["topics"] == [topic]
        for told in (added, shown, sdm("connect", "connector", "deployed")):
            assert resolve(mesh.postgres_password) not in told.out + told.err
        versions = sdm("topic", "describe", topic, "-d", "mesh").document
        assert versions["key_schema"]
        assert versions["value_schema"]
    finally:
        dropped = sdm("connect", "connector", "drop", connector)
    assert dropped.document["dropped"] is True
    sdm("connect", "connector", "describe", connector, code=ExitCode.NOT_FOUND)


def test_a_secret_in_a_config_is_refused(sdm: Sdm, east: Party) -> None:
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres", "--table", "t"),
        *("--set", "database.password=hunter2", "-d", "east"),
        code=ExitCode.REFUSED,
    )
    assert "secret_in_config" in told.err
    assert "hunter2" not in told.err


def test_connects_own_refusal_is_passed_on(sdm: Sdm, east: Party) -> None:
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres", "--table", "t"),
        *("--set", "database.port=none", "-d", "east"),
        code=ExitCode.REFUSED,
    )
    assert "invalid_connector" in told.err
    assert "database.port" in told.err


def test_a_domain_of_another_cluster_is_refused_before_it_fails(sdm: Sdm) -> None:
    party = register(sdm, "west")
    told = sdm(
        *("connect", "connector", "add", "bad", "--type", "debezium-postgres", "--table", "t"),
        *("-d", party.name),
        code=ExitCode.REFUSED,
    )
    assert "other_cluster" in told.err
