"""No setting and no state of a database's server changes a value, or takes changes away unsaid."""

import shutil
import subprocess
from typing import Any

import pytest

from local_platform import Endpoints
from mesh_events.errors import RefusedError
from processors.connect.captured_tables import require_tables
from tests.integration.connect.own_postgres import OwnPostgres, capturing, own_postgres
from tests.integration.connect.test_postgres_arrivals import read
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, sdm
from tests.kafka_client import fresh

__all__ = ["own_postgres", "owner", "sdm"]
pytestmark = pytest.mark.slow
OTHERWISE = (
    "bytea_output = 'escape'",
    "intervalstyle = 'sql_standard'",
    "extra_float_digits = 0",
    "client_min_messages = error",
    "quote_all_identifiers = on",
)
VALUES: dict[str, tuple[str, str, Any]] = {
    "body": ("bytea", "'hello world'", b"hello world"),
    "span": ("interval", "'1 year 2 months'", "P1Y2M0DT0H0M0S"),
    "real": ("real", "0.12345678", 0.12345678),
    "double": ("double precision", "0.1234567890123456789", 0.12345678901234568),
    "doubles": ("double precision[]", "'{0.1234567890123456789}'", [0.12345678901234568]),
    "note": ("text DEFAULT 'it''s'", "'x'", "x"),
}
"""Column -> (declared, literal, what arrives)."""


def table(database: Any, columns: str = "id int PRIMARY KEY, n int") -> str:
    """A table with a name of its own, since its topic is one of a domain that tests share."""
    name = fresh("served").replace("-", "_")
    database.execute(f"CREATE TABLE {name} ({columns})")
    database.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    return name


def test_values_arrive_as_they_are_whatever_the_database_sets_for_its_sessions(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in VALUES.items())
    row = ", ".join(literal for _, literal, _ in VALUES.values())
    with own_postgres.database() as database:
        for one in OTHERWISE:
            database.execute(f"ALTER DATABASE shop SET {one}")
        name = table(database, f"id int PRIMARY KEY, {columns}")
        database.execute(f"INSERT INTO {name} VALUES (1, {row})")
        with capturing(mesh, own_postgres, owner.name, name) as capture:
            capture.wait_active(database)
            database.execute(f"INSERT INTO {name} VALUES (2, {row})")
            for found in read(mesh, f"{owner.name}.{name}"):
                expected = {one: value for one, (*_, value) in VALUES.items()}
                expected["real"] = pytest.approx(expected["real"], rel=1e-7)
                assert {one: found[one] for one in VALUES} == expected


def test_rows_that_a_policy_hides_fail_the_connector(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    with own_postgres.database() as database:
        name = table(database)
        database.execute(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
        database.execute("CREATE ROLE reader LOGIN REPLICATION PASSWORD 'r3ader'")
        database.execute("GRANT CREATE ON DATABASE shop TO reader")
        database.execute(f"ALTER TABLE {name} OWNER TO reader")
        database.execute(f"CREATE POLICY above_one ON {name} USING (n > 1)")
        database.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        login = {"user": "reader", "password": "r3ader"}
        config = own_postgres.config(f"{owner.name}.policy", name, **login)
        assert require_tables(config, "r3ader") == ([], [])
        database.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        with pytest.raises(RefusedError, match=f"of public.{name} may hide rows from reader"):
            require_tables(config, "r3ader")
        with capturing(mesh, own_postgres, owner.name, name, **login) as capture:
            capture.fails("row level security may hide rows of a table")
        database.execute("ALTER ROLE reader BYPASSRLS")
        assert require_tables(config, "r3ader") == ([], [])


def test_a_key_of_which_debezium_knows_no_column_fails_the_connector(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    with own_postgres.database() as database:
        name = table(database, "at pg_lsn PRIMARY KEY, n int")
        database.execute(f"INSERT INTO {name} VALUES ('0/1', 1), ('0/2', 2)")
        config = own_postgres.config(f"{owner.name}.keyless", name)
        with pytest.raises(RefusedError, match=f"public.{name}.at is of the type pg_lsn") as told:
            require_tables(config, own_postgres.password)
        assert told.value.code == "key_not_captured"
        with capturing(mesh, own_postgres, owner.name, name) as capture:
            capture.fails(f"key_not_captured: public.{name}; Debezium knows the type of no column")


def test_changes_without_their_publication_fail_the_connector(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    with own_postgres.database() as database:
        name = table(database)
        database.execute(f"INSERT INTO {name} VALUES (1, 1)")
        with capturing(mesh, own_postgres, owner.name, name) as capture:
            capture.wait_active(database)
            config = own_postgres.config(f"{owner.name}.{capture.name}", name)
            before = [f"public.{name}"]
            assert require_tables(config, own_postgres.password, before=before) == ([], [])
            database.execute(f"DROP PUBLICATION {capture.slot}")
            database.execute(f"INSERT INTO {name} VALUES (2, 2)")
            reason = f"publication_lost: {capture.slot}; PostgreSQL goes on without it"
            capture.fails(reason)
            capture.connect.stop(capture.name)
            capture.wait_active(database, active=False)
            # a task that was started again before it failed has made another one
            database.execute(f"DROP PUBLICATION IF EXISTS {capture.slot}")
            with pytest.raises(RefusedError, match="was dropped, and what was written"):
                require_tables(config, own_postgres.password, before=before)
            assert require_tables(config, own_postgres.password) == ([], [])
            # it makes the publication anew, and meets what was written before that
            capture.connect.resume(capture.name)
            capture.fails(reason)
            made = "SELECT 1 FROM pg_publication WHERE pubname = %s"
            assert database.execute(made, (capture.slot,)).fetchone()


def test_a_server_that_was_set_back_before_what_was_read_fails_the_connector(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    with own_postgres.database() as database:
        name = table(database)
        database.execute(f"INSERT INTO {name} VALUES (1, 1)")
    with capturing(mesh, own_postgres, owner.name, name) as capture:
        with own_postgres.database() as database:
            capture.wait_active(database)
            capture.connect.stop(capture.name)
            capture.wait_active(database, active=False)
        own_postgres.stop()
        kept = own_postgres.data.with_name("kept")
        # with its owner, which the server looks at
        subprocess.run(["cp", "-a", own_postgres.data, kept], check=True)
        own_postgres.start()
        capture.connect.resume(capture.name)
        with own_postgres.database() as database:
            capture.wait_active(database)
            database.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000))")
            database.execute(f"INSERT INTO {name} VALUES (2, 2)")
            read(mesh, f"{owner.name}.{name}")
            capture.connect.stop(capture.name)
            capture.wait_active(database, active=False)
        own_postgres.stop()
        shutil.rmtree(own_postgres.data)
        kept.rename(own_postgres.data)
        own_postgres.start()
        with own_postgres.database() as database:
            database.execute(f"INSERT INTO {name} VALUES (3, 3)")
        capture.connect.resume(capture.name)
        capture.fails("log_behind: shop; the server was set back, or is another one")


def test_a_standby_is_captured_with_a_publication_of_the_primary_s_alone(
    owner: Party, mesh: Endpoints, own_postgres: OwnPostgres
) -> None:
    with own_postgres.database() as database:
        name, other = table(database), table(database)
        config = own_postgres.config(f"{owner.name}.standby", name)
        database.execute(f"CREATE PUBLICATION kept FOR TABLE {other}")
    own_postgres.stop()
    standby = own_postgres.data / "standby.signal"
    shutil.copy2(own_postgres.data / "PG_VERSION", standby)
    owned = own_postgres.data.stat()
    shutil.chown(standby, owned.st_uid, owned.st_gid)
    own_postgres.start()
    with pytest.raises(RefusedError, match="is a standby, where no publication can be made"):
        require_tables(config, own_postgres.password, "kept")
    disabled = {"publication.name": "kept", "publication.autocreate.mode": "disabled"}
    with pytest.raises(RefusedError, match=f"does not have public.{name}"):
        require_tables(config | disabled, own_postgres.password)
    with capturing(mesh, own_postgres, owner.name, name) as capture:
        capture.fails("database_is_standby: a database; make the publication at the primary")
