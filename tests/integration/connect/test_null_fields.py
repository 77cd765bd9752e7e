"""NULL in a column that has a DEFAULT stays null, from a captured table to a sink's."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints
from tests.integration.connect_owner import owner, topics_of
from tests.integration.test_cli import Party, Sdm, sdm
from tests.integration.test_cli_connect import drop_slots
from tests.kafka_client import eventually

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
NOUN = ("connect", "connector")
COLUMNS = {"n": "int DEFAULT 5", "t": "text DEFAULT 'x'", "p": "numeric(10, 2) DEFAULT 1.23"}
ROWS = {1: (None, None, None), 2: (7, "y", -0.5), 3: (None, None, None), 4: (None, "z", None)}
"""By a snapshot, changed later, inserted, and half a row."""


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    name = f"nulls_{uuid4().hex[:8]}"
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as connection:
        columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
        connection.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})")
        connection.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
        insert(connection, name, 1)
        insert(connection, name, 2)
        yield name, connection
        drop_slots(connection, name)
        for one in (name, f"{name}_record", f"{name}_position"):
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(one)))


def insert(connection: Any, name: str, id_: int) -> None:
    connection.execute(f"INSERT INTO {name} VALUES (%s, %s, %s, %s)", (id_, *ROWS[id_]))


def test_null_is_never_taken_for_the_default_of_its_column(
    sdm: Sdm, owner: Party, table: tuple[str, Any], request: pytest.FixtureRequest
) -> None:
    name, connection = table
    as_owner, topic = ("-d", owner.name), f"{owner.name}.{table[0]}"
    sdm(*NOUN, "add", name, "--type", "debezium-postgres", "--table", name, *as_owner)
    request.addfinalizer(lambda: sdm(*NOUN, "delete", name, *as_owner))

    def changes() -> list[dict[str, Any]]:
        if topic not in topics_of(sdm, owner.name):
            return []
        return [one["value"] for one in sdm("topic", "consume", topic, *as_owner).lines]

    eventually(lambda: len(changes()) == 2, "the table is captured")
    insert(connection, name, 3)
    insert(connection, name, 4)
    connection.execute(f"UPDATE {name} SET n = NULL, t = NULL, p = NULL WHERE id = 2")
    eventually(lambda: len(changes()) == 5, "the changes are captured")
    came = [(one["op"], one["after"]["id"], row(one["after"])) for one in changes()]
    nulls = (None, None, None)
    assert [one for one in came if one[1] != 2] == [
        ("r", 1, nulls),
        ("c", 3, nulls),
        ("c", 4, (None, "z", None)),
    ]
    assert [one[2][:2] for one in came if one[1] == 2] == [(7, "y"), (None, None)]
    assert {one["source"]["snapshot"] for one in changes()} >= {"false"}

    for key in ("record", "position"):
        sdm(
            *(*NOUN, "add", f"{name}-{key}", "--type", "jdbc-sink", "--topic", name, "--key", key),
            *("--set", f"collection.name.format={name}_{key}", *as_owner),
        )

        def written(key: str = key) -> list[Any]:
            try:
                found = connection.execute(f"SELECT id, n, t FROM {name}_{key} ORDER BY id")
            except psycopg.errors.UndefinedTable:
                return []
            rows: list[Any] = found.fetchall()
            return rows

        least = 4 if key == "record" else 5
        eventually(lambda w=written, n=least: len(w()) == n, f"the sink by {key} has the rows")
        assert {one for one in written() if one[0] != 2} == {
            (1, None, None),
            (3, None, None),
            (4, None, "z"),
        }
        assert (2, None, None) in written()


def row(after: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(after[column] for column in COLUMNS)
