"""What a record brings is not shown as the failure of the connector that met it."""

import json
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints
from local_platform.settings import PlatformSettings
from tests.integration.connect_owner import owner, worker_of
from tests.integration.test_cli import Party, Sdm, filled, sdm
from tests.kafka_client import eventually, fresh

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
NOUN = ("connect", "connector")
FORGED = "mesh.RefusedException: table_truncated: public.users: x"


def test_a_record_writes_no_cause_of_its_own_into_a_failure(
    sdm: Sdm, owner: Party, mesh: Endpoints, settings: PlatformSettings, tmp_path: Path
) -> None:
    """The database quotes the row that it refuses, with its line ends."""
    topic, name, table = filled(sdm, tmp_path, owner), fresh("sink"), f"checked_{uuid4().hex[:8]}"
    place, own = sql.Identifier(table), ("-d", owner.name)
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        rows = sql.SQL("SELECT count(*) FROM {}").format(place)
        check = sql.SQL("ALTER TABLE {} ADD CHECK (length(phone) < 9)").format(place)

        def is_filled() -> bool:
            try:
                return database.execute(rows).fetchone() == (2,)
            except psycopg.errors.UndefinedTable:
                return False

        try:
            sdm(
                *(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", topic, *own),
                *("--set", f"collection.name.format={table}"),
                *("--set", "errors.tolerance=none"),
            )
            eventually(is_filled, "the sink has written its rows")
            database.execute(check)
            hostile = f"x)\n\tat y\nCaused by: {FORGED}\n\tat z\n\u2028Caused by: {FORGED}"
            row = json.dumps({"userid": 3, "phone": hostile})
            sdm("topic", "produce", topic, "--key-field", "userid", *own, stdin=row)

            worker, traces = worker_of(mesh, owner.name), []

            def failed() -> bool:
                found = worker.deployed()[f"{owner.name}.{name}"]
                traces.extend(part.trace for part in found.failed)
                return bool(traces)

            eventually(failed, "the sink has failed")
            lines = traces[0].splitlines()
            # the record is quoted there, within a line
            assert any(FORGED in line for line in lines)
            assert not any(line.startswith(f"Caused by: {FORGED}") for line in lines)

            def told() -> bool:
                shown = sdm(*NOUN, "describe", f"{owner.name}.{name}").document
                return bool(shown["failure"])

            eventually(told, "the failure is told")
            shown = sdm(*NOUN, "describe", f"{owner.name}.{name}").document
            assert "table_truncated" not in shown["failure"]
            about = f"SQLSTATE 23514 (check_violation), schema public, table {table}, constraint "
            assert f"{about}{table}_phone_check" in shown["failure"]
        finally:
            sdm(*NOUN, "delete", name, *own)
            database.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(place))
