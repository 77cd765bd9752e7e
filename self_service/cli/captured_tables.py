"""What a Debezium connector captures: the tables must be there, and no two may fill one topic."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mesh_events.errors import RefusedError

if TYPE_CHECKING:
    from local_platform import Endpoints

_TABLES = "SELECT table_schema || '.' || table_name FROM information_schema.tables"
_SHOWN = 10
_PATIENCE_S = 5


def topics_of(config: Mapping[str, str]) -> set[str]:
    """The topics that `connector add --type` makes of tables; empty for other configs."""
    replacement = config.get("transforms.route.replacement", "")
    if not replacement.endswith("$1"):
        return set()
    tables = config.get("table.include.list", "").split(",")
    return {f"{replacement[:-2]}{table.rpartition('.')[2]}" for table in tables if table}


def require_alone(name: str, config: Mapping[str, str], deployed: Mapping[str, Any]) -> None:
    """Refuse topics that another deployed connector fills: each row would come twice.

    Args:
        name: the connector.
        config: its config.
        deployed: name -> what Connect tells of each connector, with `info.config`.
    """
    wanted = topics_of(config)
    for other, found in sorted(deployed.items()):
        shared = wanted & topics_of(found["info"]["config"])
        if other != name and shared:
            raise RefusedError(
                "topic_filled",
                f"{', '.join(sorted(shared))} is filled by the connector {other} already, so that "
                f"each row would come twice: add its other tables to {other}, or drop that first",
            )


def require_tables(ends: "Endpoints", config: Mapping[str, str]) -> None:
    """Refuse tables that the local Postgres does not have; Connect's own words do not say so.

    A database that cannot be reached from here is left to Connect.
    """
    import psycopg

    local = (ends.postgres_host, str(ends.postgres_port), ends.postgres_database)
    names = ("database.hostname", "database.port", "database.dbname")
    if tuple(config.get(name) for name in names) != local:
        return
    wanted = {table for table in config.get("table.include.list", "").split(",") if table}
    try:
        with psycopg.connect(**ends.postgres_login(), connect_timeout=_PATIENCE_S) as connection:
            found = {str(row[0]) for row in connection.execute(_TABLES)}
    except psycopg.Error:
        return
    if missing := sorted(wanted - found):
        own = sorted(
            name for name in found if not name.startswith(("pg_catalog.", "information_schema."))
        )
        has = f"it has {', '.join(own[:_SHOWN])}" if own else "it has no tables yet"
        raise RefusedError(
            "unknown_table",
            f"there is no table {', '.join(missing)} in the database {ends.postgres_database} at "
            f"{ends.postgres_host}:{ends.postgres_port}: {has}",
        )
