"""What a connector's config says of its database, held against the database itself."""

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple, TypeVar

import psycopg

from mesh_events.errors import RefusedError
from projections import connector_config
from projections.connector_rows import EVENT_ROUTER

Connection = psycopg.Connection[tuple[Any, ...]]
Found = TypeVar("Found")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_THERE = """
SELECT table_schema || '.' || table_name FROM information_schema.tables
WHERE table_schema || '.' || table_name = ANY(%s)
"""
_COLUMNS = """
SELECT table_schema || '.' || table_name, column_name FROM information_schema.columns
WHERE table_schema || '.' || table_name = ANY(%s)
"""
_SOME = """
SELECT table_schema || '.' || table_name FROM information_schema.tables
WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT 10
"""
_IDENTITIES = """
SELECT format('%%I.%%I', s.nspname, t.relname),
    t.relreplident IN ('f', 'i') OR (t.relreplident = 'd' AND EXISTS
        (SELECT 1 FROM pg_index i WHERE i.indrelid = t.oid AND i.indisprimary)),
    t.relreplident = 'f' OR NOT EXISTS (
        SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0
            AND NOT a.attisdropped AND a.attstorage <> 'p')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL pg_partition_tree(c.oid) p ON p.isleaf
JOIN pg_class t ON t.oid = coalesce(p.relid, c.oid) JOIN pg_namespace s ON s.oid = t.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname || '.' || c.relname = ANY(%s) ORDER BY 1
"""
"""Of each table, a partitioned one's partitions: see `Identity`."""
_MOST_IDENTITIES = 2000
_SHOWN = 10
_MOST_COLUMNS = 2000
_OUTBOX = {
    "table.field.event.id": "id",
    "route.by.field": "aggregatetype",
    "table.field.event.key": "aggregateid",
    "table.field.event.payload": "payload",
}
"""What the router reads, and the names of the columns where the config has no others."""
_PATIENCE_S = 5


class Identity(NamedTuple):
    """What PostgreSQL logs of a table's old rows: its REPLICA IDENTITY.

    table: its name as SQL writes it
    finds_rows: whether a changed or deleted row can be found
    has_values: whether a large value that a change leaves as it is can be found, too
    """

    table: str
    finds_rows: bool
    has_values: bool


def is_plainly_at(config: Mapping[str, str], place: str | None) -> bool:
    """Whether the config leads to the database at `place` (host:port) and nowhere else."""
    if place is None or connector_config.not_allowed(config, shared=True) is not None:
        return False
    match config.get("connector.class"):
        case connector_config.POSTGRES:
            there = f"{config.get('database.hostname')}:{config.get('database.port')}" == place
            name = config.get("database.dbname", "")
            return there and _NAME.fullmatch(name) is not None
        case connector_config.JDBC_SINK:
            address, slash, name = config.get("connection.url", "").rpartition("/")
            there = bool(slash) and address == f"jdbc:postgresql://{place}"
            return there and _NAME.fullmatch(name) is not None
    return False


def require_tables(config: Mapping[str, str], password: str) -> None:
    """Refuse tables that the database does not have, or whose changes it does not log in full.

    An outbox that is none is refused as well.

    Connect's own words do not say so, or its task ends with the first row. A database that cannot
    be reached from here, or does not answer in time, is left to Connect.
    """
    wanted = sorted({one.strip() for one in config.get("table.include.list", "").split(",")} - {""})
    place = f"{config.get('database.hostname')}:{config.get('database.port', '5432')}"
    needed = outbox_columns(config)
    found = _in_time(lambda at: _tables(at, wanted, columns=bool(needed)), config, password)
    if found is None:
        return
    known, others, there, identities = found
    if missing := [one for one in wanted if one not in known]:
        has = f"it has {', '.join(others)}" if others else "it has no tables yet"
        name = config.get("database.dbname", "")
        raise RefusedError(
            "unknown_table",
            f"there is no table {', '.join(missing)} in the database {name} at {place}: {has}",
        )
    for table in wanted:
        if lacking := [one for one in needed if one not in there.get(table, ())]:
            raise RefusedError(
                "unknown_column",
                f"the table {table} is no outbox: it has no column {', '.join(lacking)}; make it "
                f"with {', '.join(needed)}, or capture its changes with debezium-postgres",
            )
    _require_identities(identities, is_outbox=bool(needed))


def _require_identities(identities: Sequence[Identity], *, is_outbox: bool) -> None:
    """Refuse tables whose UPDATE and DELETE would fail, or whose changes would lack values.

    An outbox is read by its inserts, which have every value.
    """
    if keyless := [one.table for one in identities if not one.finds_rows]:
        raise RefusedError(
            "table_without_identity",
            f"{', '.join(keyless)} has no primary key: once it is captured, PostgreSQL refuses "
            f"every UPDATE and DELETE of it; add a key, or run {_full(keyless)}",
        )
    lacking = [] if is_outbox else [one.table for one in identities if not one.has_values]
    if lacking:
        raise RefusedError(
            "table_without_full_identity",
            f"{', '.join(lacking)}: PostgreSQL leaves large values that an UPDATE does not change "
            f"out of its log: run {_full(lacking)}",
        )


def _full(tables: Sequence[str]) -> str:
    return " ".join(f"ALTER TABLE {one} REPLICA IDENTITY FULL;" for one in tables)


def outbox_columns(config: Mapping[str, str]) -> list[str]:
    """The columns that an outbox connector reads; empty for any other one."""
    found: list[str] = []
    for name in [one.strip() for one in config.get("transforms", "").split(",")]:
        of = f"transforms.{name}"
        # with a predicate it need not be for every table
        if config.get(f"{of}.type") == EVENT_ROUTER and f"{of}.predicate" not in config:
            found += [config.get(f"{of}.{setting}", usual) for setting, usual in _OUTBOX.items()]
            placed = config.get(f"{of}.table.fields.additional.placement", "")
            found += [one.partition(":")[0].strip() for one in placed.split(",") if one.strip()]
    return list(dict.fromkeys(found))


def _tables(
    connection: Connection, wanted: list[str], *, columns: bool
) -> tuple[set[str], list[str], dict[str, set[str]], list[Identity]]:
    """Wanted tables that are there, some others, table -> `columns` if asked, and identities."""
    cursor = connection.cursor()
    known = {str(row[0]) for row in islice(cursor.stream(_THERE, (wanted,)), len(wanted))}
    others = [str(row[0]) for row in islice(cursor.stream(_SOME), _SHOWN)]
    there: dict[str, set[str]] = {}
    if columns:
        for table, column in islice(cursor.stream(_COLUMNS, (wanted,)), _MOST_COLUMNS):
            there.setdefault(str(table), set()).add(str(column))
    rows = islice(cursor.stream(_IDENTITIES, (wanted,)), _MOST_IDENTITIES)
    return known, others, there, [Identity(*row) for row in rows]


def _in_time(
    look: Callable[[Connection], Found], config: Mapping[str, str], password: str
) -> Found | None:
    """What a look into the database finds; None where it does not answer in time.

    The server is somebody's: it may take the connection and never say a word.
    """
    answers: Queue[Found | None] = Queue()
    opened: list[Connection] = []

    def ask() -> None:
        try:
            with psycopg.connect(
                host=config.get("database.hostname"),
                port=config.get("database.port", "5432"),
                user=config.get("database.user"),
                password=password,
                dbname=config.get("database.dbname", ""),
                connect_timeout=_PATIENCE_S,
                passfile="/dev/null",
            ) as connection:
                opened.append(connection)
                answers.put(look(connection))
        except (psycopg.Error, OSError, ValueError):
            answers.put(None)

    Thread(target=ask, name="database", daemon=True).start()
    try:
        return answers.get(timeout=2 * _PATIENCE_S)
    except Empty:
        for connection in opened:
            with suppress(OSError, psycopg.Error):
                # what waits for its answer ends with an error
                shutdown(connection.fileno())
        return None


def shutdown(fileno: int) -> None:
    """End a connection under whoever waits on it."""
    with socket.socket(fileno=os.dup(fileno)) as copy:
        copy.shutdown(socket.SHUT_RDWR)
