"""Who may do what at the local PostgreSQL."""

from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints

pytestmark = pytest.mark.platform


def test_connections_for_replication_name_a_database(platform: Endpoints) -> None:
    """A capture's does; `pg_basebackup` connects without one."""
    name = f"replica_{uuid4().hex[:8]}"
    role = sql.Identifier(name)
    made = sql.SQL("CREATE ROLE {} LOGIN REPLICATION PASSWORD 'tries'").format(role)
    login = {**platform.postgres_login(), "user": name, "password": "tries"}
    with psycopg.connect(**platform.postgres_login(), autocommit=True) as database:
        database.execute(made)
        try:
            with psycopg.connect(**login, replication="database", autocommit=True) as capturing:
                assert capturing.execute("IDENTIFY_SYSTEM").fetchone()
            with pytest.raises(psycopg.OperationalError, match="pg_hba"):
                psycopg.connect(**login, replication="true")
        finally:
            database.execute(sql.SQL("DROP ROLE {}").format(role))
