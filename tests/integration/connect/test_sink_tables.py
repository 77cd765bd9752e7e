"""A sink whose database or table cannot take its rows is refused before anything is deployed."""

from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints
from self_service.cli.framework.exits import ExitCode
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, filled, sdm
from tests.kafka_client import fresh

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.platform
NOUN = ("connect", "connector")
SECRET = "s3cret-of-nobody"


@pytest.mark.parametrize(
    ("database", "told"),
    [(None, "password authentication failed"), ("no_such_database", "refuses the login")],
)
def test_a_login_that_the_database_refuses_is_reported_without_the_password(
    sdm: Sdm, owner: Party, mesh: Endpoints, tmp_path: Path, database: str | None, told: str
) -> None:
    topic, given, name = filled(sdm, tmp_path, owner), tmp_path / "password", fresh("sink")
    given.write_text(SECRET)
    login = mesh.postgres_login()
    adding = (
        *(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", topic, "-d", owner.name),
        *("--host", f"{login['host']}:{login['port']}", "--user", login["user"]),
        *("--database", database or login["dbname"], "--password", f"file:{given}"),
    )
    for more in ((), ("--dry-run",)):
        refused = sdm(*adding, *more, code=ExitCode.REFUSED).err
        assert "refused (database_refused)" in refused
        assert told in refused
        assert SECRET not in refused
    assert name not in sdm(*NOUN, "deployed").out


def test_a_table_without_a_key_is_no_place_for_rows_that_may_come_again(
    sdm: Sdm, owner: Party, mesh: Endpoints, tmp_path: Path
) -> None:
    topic, name, table = filled(sdm, tmp_path, owner), fresh("sink"), f"keyless_{uuid4().hex[:8]}"
    adding = (
        *(*NOUN, "add", name, "--type", "jdbc-sink", "--topic", topic, "-d", owner.name),
        *("--set", f"collection.name.format={table}"),
    )
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as database:
        place = sql.Identifier(table)
        database.execute(sql.SQL("CREATE TABLE {} (userid bigint, phone text)").format(place))
        try:
            for key in ("position", "record"):
                refused = sdm(*adding, "--key", key, code=ExitCode.REFUSED).err
                assert "refused (table_without_key)" in refused
                assert f"public.{table}" in refused
            database.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (userid)").format(place))
            sdm(*adding, "--key", "record", "--dry-run")
            refused = sdm(*adding, "--key", "position", code=ExitCode.REFUSED).err
            assert "__connect_offset" in refused
        finally:
            database.execute(sql.SQL("DROP TABLE {}").format(place))
    sdm(*adding, "--key", "position", "--dry-run")
