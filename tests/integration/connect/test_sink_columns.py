"""No record and no version of a schema ends a sink whose columns were made of others."""

from typing import Any

import pytest

from tests.integration.connect.test_sink_values import (
    Sinking,
    capture,
    rows,
    sink,
    table,
)
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually

__all__ = ["owner", "sdm", "sink", "table"]
pytestmark = pytest.mark.slow


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
