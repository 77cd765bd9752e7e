"""What the database sends a capture beside changes of its tables, and more than it may take."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints
from tests.integration.connect.test_sink_values import NOUN, capture, table
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually

__all__ = ["owner", "sdm", "table"]
pytestmark = pytest.mark.slow
LARGE = 20_000_000
"""More than a database may send at once."""


@pytest.fixture
def stranger(mesh: Endpoints, table: tuple[str, Any]) -> Iterator[psycopg.Connection[Any]]:
    """A connection of a role that has no right in the database but what each role has."""
    name, database = table
    role = sql.Identifier(f"{name}_stranger")
    database.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'tries'").format(role))
    login = {**mesh.postgres_login(), "user": f"{name}_stranger", "password": "tries"}
    with psycopg.connect(**login, autocommit=True) as connection:
        yield connection
    database.execute(sql.SQL("DROP ROLE {}").format(role))


def values(sdm: Sdm, owner: Party, topic: str) -> str:
    return sdm("topic", "consume", topic, "-d", owner.name).out


def test_who_may_connect_to_the_database_sends_a_capture_no_message(
    sdm: Sdm,
    owner: Party,
    table: tuple[str, Any],
    stranger: psycopg.Connection[Any],
    request: pytest.FixtureRequest,
) -> None:
    name, database = table
    topic = f"{owner.name}.{name}"
    capture(sdm, owner, table, request, "id int PRIMARY KEY", f"INSERT INTO {name} VALUES (1)")
    for transactional in (True, False):
        sent = "SELECT pg_logical_emit_message(%s, 'stranger', repeat('x', %s))"
        stranger.execute(sent, (transactional, LARGE))
    stranger.execute("SELECT pg_logical_emit_message(true, 'stranger', 'small')")
    database.execute(f"INSERT INTO {name} VALUES (20406)")
    eventually(lambda: "20406" in values(sdm, owner, topic), "a row arrives behind it")
    assert ".message" not in str(sdm("topic", "list", "-d", owner.name).document)


def test_a_change_that_is_too_large_is_told_by_a_capture_of_no_other_setting(
    sdm: Sdm, owner: Party, table: tuple[str, Any], request: pytest.FixtureRequest
) -> None:
    name, database = table
    columns = "id int PRIMARY KEY, t text"
    capture(sdm, owner, table, request, columns, f"INSERT INTO {name} VALUES (1, 'x')")
    database.execute(f"INSERT INTO {name} VALUES (2, repeat('x', {LARGE}))")

    def told() -> bool:
        shown = sdm(*NOUN, "describe", f"{owner.name}.{name}").document
        return "sent more at once than a connector may take" in str(shown["failure"])

    eventually(told, "the failure is told")
