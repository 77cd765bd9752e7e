"""The tables that a JDBC sink fills, compared with how it writes."""

from collections.abc import Mapping
from itertools import islice

from mesh_events.errors import RefusedError
from processors.connect.databases import Connection, Login, ask
from projections.connectors import config as connector_config
from projections.connectors.tables import JDBC, place_of, sslmode_of

_UNIQUE = """
SELECT n.nspname || '.' || c.relname,
    (SELECT array_agg(a.attname::text) FROM pg_attribute a
     WHERE a.attrelid = c.oid AND a.attnum = ANY(i.indkey::int2[]))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indpred IS NULL
WHERE c.relkind IN ('r', 'p') AND n.nspname || '.' || c.relname = ANY(%s)
"""
"""Of each table that is there: the columns of each unique index without a condition, or null."""
_MOST = 2000


def require_sink(config: Mapping[str, str], password: str) -> bool:
    """Refuse a login that the database refuses, and tables that cannot be written by key.

    Each row is inserted or, where its key is there, updated: PostgreSQL does that only over a
    unique index. A table that is not there is made with one.

    Returns:
        Whether the database was asked; see `require_tables`.
    """
    url, place = JDBC.fullmatch(config.get("connection.url", "")), place_of(config)
    if url is None or place is None:
        return False
    user = config.get("connection.username", "")
    where = place.host.strip("[]"), str(place.port)
    login = Login(*where, user, url["database"], password, sslmode_of(config))
    prefix = f"{url['database']}."
    wanted = [one.name.removeprefix(prefix) for one in connector_config.filled(config)]
    found = ask(lambda connection: _unique(connection, wanted), login)
    if found is None:
        return False
    if config.get("insert.mode") != "upsert":
        return True
    by = set()
    if config.get("primary.key.mode") == "record_value":
        by = {one.strip() for one in config.get("primary.key.fields", "").split(",")}
    for table, keys in sorted(found.items()):
        if not any(not by or set(key) == by for key in keys):
            over = f" over {', '.join(sorted(by))}" if by else ""
            raise RefusedError(
                "table_without_key",
                f"the table {table} in {login.place} has no primary key and no unique index{over}, "
                "by which a record that comes again finds its row: add one, or let the sink make a "
                "table of its own with --set collection.name.format=NAME",
            )
    return True


def _unique(connection: Connection, wanted: list[str]) -> dict[str, list[list[str]]]:
    """Table -> the columns of each of its unique indexes, of the wanted tables that are there."""
    found: dict[str, list[list[str]]] = {}
    for table, columns in islice(connection.cursor().stream(_UNIQUE, (wanted,)), _MOST):
        keys = found.setdefault(str(table), [])
        if columns is not None:
            keys.append(list(columns))
    return found
