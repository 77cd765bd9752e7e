"""The tables that a connector captures, compared with what its config names."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from mesh_events.errors import RefusedError
from processors.connect import postgres_types, published_tables
from processors.connect.captured_columns import (
    require_arrival,
    require_keys,
    taken,
    told_of_partitions,
    told_without_keys,
    without_keys,
)
from processors.connect.databases import Connection, Login, ask
from processors.connect.postgres_types import Column
from processors.connect.published_tables import Publishing, require_published, require_publishing
from projections.connectors.own_transforms import EVENT_ROUTER
from projections.connectors.tables import sslmode_of
from projections.connectors.values import items

_THERE = """
SELECT table_schema || '.' || table_name FROM information_schema.tables
WHERE table_schema || '.' || table_name = ANY(%s)
"""
_NOT_LOGGED = """
SELECT format('%%I.%%I', s.nspname, t.relname), t.relkind
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL pg_partition_tree(c.oid) p ON p.isleaf
JOIN pg_class t ON t.oid = coalesce(p.relid, c.oid) JOIN pg_namespace s ON s.oid = t.relnamespace
WHERE n.nspname || '.' || c.relname = ANY(%s) AND (t.relkind IN ('v', 'm', 'f')
    OR (t.relkind IN ('r', 'p') AND t.relpersistence <> 'p')) ORDER BY 1
"""
"""Of each whose changes PostgreSQL does not log: see `NotLogged`. Any login may read it."""
_HIDDEN = """
SELECT format('%%I.%%I', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname = ANY(%s) AND row_security_active(c.oid) ORDER BY 1
"""
"""Of each table that has rows which a policy may hide from the login."""
_COLUMNS = """
SELECT n.nspname || '.' || c.relname, a.attname,
    CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'c' THEN 'composite' WHEN 'd' THEN 'domain' ELSE
        CASE e.typtype WHEN 'e' THEN 'enum[]' WHEN 'c' THEN 'composite[]' WHEN 'd' THEN 'domain[]'
        ELSE CASE t.typnamespace WHEN 'pg_catalog'::regnamespace THEN format_type(t.oid, NULL)
        ELSE t.typname END END END,
    CASE b.typnamespace WHEN 'pg_catalog'::regnamespace THEN b.typname ELSE '' END,
    a.attgenerated <> '',
    format_type(a.atttypid, a.atttypmod), a.attndims,
    coalesce((SELECT format('%%I.%%I', n.nspname, coalesce(o.relname, i.typname, s.typname))
        FROM pg_type s
        LEFT JOIN pg_type i ON i.oid = s.typelem AND s.typcategory = 'A'
        LEFT JOIN pg_class o ON o.oid = coalesce(nullif(s.typrelid, 0), i.typrelid)
        WHERE s.typnamespace = n.oid AND s.typname = t.typname AND s.oid <> t.oid), ''),
    coalesce(format_type(b.oid, t.typtypmod), ''),
    EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary
        AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typsubscript = 'array_subscript_handler'::regproc
LEFT JOIN pg_type b ON b.oid = t.typbasetype
WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname || '.' || c.relname = ANY(%s)
ORDER BY 1, a.attnum
"""
"""Of each column: see `Column`."""
_SOME = """
SELECT table_schema || '.' || table_name FROM information_schema.tables
WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
    AND table_type = 'BASE TABLE' ORDER BY 1 LIMIT 10
"""
_IDENTITIES = """
SELECT format('%%I.%%I', s.nspname, t.relname),
    t.relreplident = 'f' OR (t.relreplident = 'i' AND EXISTS
        (SELECT 1 FROM pg_index i WHERE i.indrelid = t.oid AND i.indisreplident))
    OR (t.relreplident = 'd' AND EXISTS
        (SELECT 1 FROM pg_index i WHERE i.indrelid = t.oid AND i.indisprimary AND i.indimmediate)),
    t.relreplident = 'f' OR NOT EXISTS (
        SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0
            AND NOT a.attisdropped AND a.attstorage <> 'p'),
    current_setting('server_version_num')::int < 180000 OR (t.relreplident <> 'f' AND NOT EXISTS (
        SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0
            AND NOT a.attisdropped AND a.attstorage <> 'p')) OR NOT EXISTS (
        SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attgenerated <> ''),
    t.relreplident <> 'i' OR NOT EXISTS (
        SELECT 1 FROM pg_index k JOIN pg_index i ON i.indrelid = t.oid AND i.indisreplident
        WHERE k.indrelid = t.oid AND k.indisprimary AND NOT k.indkey::int2[] <@ i.indkey::int2[]),
    c.relkind = 'r' AND EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhparent = c.oid),
    CASE WHEN c.relkind = 'p' THEN n.nspname || '.' || c.relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL pg_partition_tree(c.oid) p ON p.isleaf
JOIN pg_class t ON t.oid = coalesce(p.relid, c.oid) JOIN pg_namespace s ON s.oid = t.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname || '.' || c.relname = ANY(%s) ORDER BY 1
"""
"""Of each table, a partitioned one's partitions: see `Identity`."""
_MOST_IDENTITIES = 2000
_SHOWN = 10
_MOST_COLUMNS = 20_000
_OUTBOX = {
    "table.field.event.id": "id",
    "route.by.field": "aggregatetype",
    "table.field.event.key": "aggregateid",
    "table.field.event.payload": "payload",
}
"""What the router reads, and the names of the columns where the config has no others."""


class NotLogged(NamedTuple):
    """A relation whose changes PostgreSQL does not log, or a table's partition that is one.

    name: as SQL writes it
    kind: its relkind in pg_class
    """

    name: str
    kind: str


_NOT_LOGGED_KINDS = {
    "v": (
        "table_is_view",
        (
            "is a view, and PostgreSQL logs the changes of tables alone: capture the tables that "
            "it reads, and let streaming SQL make it of their topics"
        ),
    ),
    "f": (
        "table_is_foreign",
        "is a foreign table, whose changes only its own database logs: capture it there",
    ),
    "r": (
        "table_unlogged",
        (
            "is unlogged or temporary, and PostgreSQL does not log its changes: run "
            "ALTER TABLE ... SET LOGGED, or leave it out"
        ),
    ),
}
_NOT_LOGGED_KINDS |= {"m": _NOT_LOGGED_KINDS["v"], "p": _NOT_LOGGED_KINDS["r"]}
"""relkind -> code, and why it is not captured."""


class Identity(NamedTuple):
    """What PostgreSQL logs of a table's old rows: its REPLICA IDENTITY.

    table: its name as SQL writes it
    finds_rows: whether a changed or deleted row can be found
    has_values: whether a large value that a change leaves as it is can be found, too
    is_logged: whether all that it has to find a row by is logged, as generated columns are not
    has_key: whether the columns of the primary key are logged
    is_inherited: whether other tables inherit it, whose rows it has and whose changes are theirs
    partition_of: the captured table of which it is a partition, `schema.table`
    """

    table: str
    finds_rows: bool
    has_values: bool
    is_logged: bool
    has_key: bool
    is_inherited: bool
    partition_of: str | None


class Found(NamedTuple):
    """What a database says of the wanted tables.

    known: those that are there
    others: some that are there
    hidden: those whose rows a policy may hide from the login
    """

    known: set[str]
    others: list[str]
    not_logged: list[NotLogged]
    hidden: list[str]
    columns: list[Column]
    identities: list[Identity]
    publishing: Publishing


class Captured(NamedTuple):
    """What is to be known of tables that can be captured.

    told: what of the columns' values does not arrive as it was, a text for each type, and which
        tables' records have no keys
    keyless: tables without a primary key; None of an outbox, whose events have keys of their own
    """

    told: list[str]
    keyless: list[str] | None


def require_tables(
    config: Mapping[str, str], password: str, publication: str = "", before: Collection[str] = ()
) -> Captured | None:
    """Refuse tables that the database does not have, or that could not be captured as they are.

    That is: their changes are not logged in full or not published, or a column would not arrive. An
    outbox that is none is refused as well. Connect itself reports none of it before its task runs,
    or at all.

    Args:
        config: as the log is to have it.
        password: of its user.
        publication: what it is called where the config does not say it.
        before: tables that the connector captures already, `schema.table`.

    Returns:
        None where the database was not asked: one that cannot be reached from here, or does not
        answer in time, is left to Connect.
    """
    wanted = sorted(items(config.get("table.include.list", "")))
    login = Login(
        config.get("database.hostname", ""),
        config.get("database.port", "5432"),
        config.get("database.user", ""),
        config.get("database.dbname", ""),
        password,
        sslmode_of(config),
    )
    slot = config.get("slot.name", publication)
    named = config.get("publication.name", publication)
    found = ask(lambda connection: _tables(connection, wanted, slot, named), login)
    if found is None:
        return None
    _require_there(found, wanted, login)
    return _require_captured(found, config, named, [one for one in wanted if one in before])


def _require_there(found: Found, wanted: Sequence[str], login: Login) -> None:
    """Refuse tables that are not there, or that the login does not see as a whole."""
    _require_logged(found.not_logged)
    if missing := [one for one in wanted if one not in found.known]:
        has = f"it has {', '.join(found.others)}" if found.others else "it has no tables yet"
        raise RefusedError(
            "unknown_table",
            f"there is no table {', '.join(missing)} in the database {login.place}: {has}",
        )
    if found.hidden:
        raise RefusedError(
            "table_has_policy",
            f"row level security of {', '.join(found.hidden)} may hide rows from {login.user}, "
            f"which the topic would lack: let a superuser run ALTER ROLE {login.user} BYPASSRLS, "
            f"or, where {login.user} owns the table, run ALTER TABLE ... NO FORCE ROW LEVEL "
            "SECURITY",
        )


def _require_captured(
    found: Found, config: Mapping[str, str], publication: str, kept: Sequence[str]
) -> Captured:
    """Refuse tables whose changes would not arrive in full."""
    needed = outbox_columns(config)
    _require_outboxes(found.columns, needed)
    is_kept = config.get("publication.autocreate.mode") == "disabled"
    _require_identities(
        found.identities,
        is_outbox=bool(needed),
        # a publication that somebody else keeps may publish generated columns
        is_filtered=not is_kept,
    )
    captured = taken(found.columns, config, needed)
    require_publishing(found.publishing, publication, is_known=bool(kept), is_kept=is_kept)
    require_published(
        found.publishing.tables,
        publication,
        [one.path for one in captured],
        kept,
        is_outbox=bool(needed),
        is_kept=is_kept,
        skipped=items(config.get("skipped.operations", "")),
    )
    if not needed:
        require_keys(found.columns, captured, config)
    require_arrival(captured, config)
    in_milliseconds = config.get("time.precision.mode") == "connect"
    told = postgres_types.losses(captured, in_milliseconds=in_milliseconds)
    if needed:
        return Captured(told, None)
    keyless = without_keys(found.columns)
    partitioned = sorted({one.partition_of for one in found.identities if one.partition_of})
    told = [*told_without_keys(keyless), *told_of_partitions(partitioned), *told]
    return Captured(told, keyless)


def _require_outboxes(columns: Sequence[Column], needed: Sequence[str]) -> None:
    there: dict[str, set[str]] = {}
    for one in columns:
        there.setdefault(one.table, set()).add(one.name)
    for table, names in there.items():
        if lacking := [one for one in needed if one not in names]:
            raise RefusedError(
                "unknown_column",
                f"the table {table} is no outbox: it has no column {', '.join(lacking)}; make it "
                f"with {', '.join(needed)}, or capture its changes with debezium-postgres",
            )


def _require_identities(
    identities: Sequence[Identity], *, is_outbox: bool, is_filtered: bool
) -> None:
    """Refuse tables whose UPDATE and DELETE would fail, or whose changes would lack values.

    An outbox is read by its inserts, which have every value.
    """
    if keyless := [one.table for one in identities if not one.finds_rows]:
        raise RefusedError(
            "table_without_identity",
            f"{', '.join(keyless)} has no primary key, or a DEFERRABLE one, or the index of its "
            "REPLICA IDENTITY is gone: once it is captured, PostgreSQL refuses every UPDATE and "
            f"DELETE of it; add a key, or run {_full(keyless)}",
        )
    if heirs := sorted({one.table for one in identities if one.is_inherited}):
        raise RefusedError(
            "table_inherited",
            f"{', '.join(heirs)} has tables that inherit it: the snapshot would have their rows, "
            "and their changes would not arrive; capture those alone, or make them partitions",
        )
    unkeyed = [] if is_outbox else [one.table for one in identities if not one.has_key]
    if unkeyed:
        raise RefusedError(
            "table_without_identity",
            f"{', '.join(unkeyed)}: the index of its REPLICA IDENTITY lacks a column of the key: "
            "PostgreSQL does not log which row an UPDATE or DELETE is of; run "
            f"{_full(unkeyed)} or, if it has a primary key and no column with large values, "
            f"ALTER TABLE {unkeyed[0]} REPLICA IDENTITY DEFAULT;",
        )
    unlogged = [one.table for one in identities if is_filtered and not one.is_logged]
    if unlogged:
        raise RefusedError(
            "table_without_identity",
            f"{', '.join(unlogged)} has a generated column and needs REPLICA IDENTITY FULL: once "
            "it is captured, PostgreSQL refuses every UPDATE and DELETE. Drop what generates "
            "it (ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION), or name a publication "
            "with publish_generated_columns and publication.autocreate.mode=disabled",
        )
    lacking = [] if is_outbox else [one.table for one in identities if not one.has_values]
    if lacking:
        raise RefusedError(
            "table_without_full_identity",
            f"{', '.join(lacking)}: PostgreSQL leaves large values that an UPDATE does not change "
            f"out of its log: run {_full(lacking)}",
        )


def _require_logged(not_logged: Sequence[NotLogged]) -> None:
    """Refuse what has no changes in PostgreSQL's log; Connect fails once its task runs."""
    for kind, (code, why) in _NOT_LOGGED_KINDS.items():
        if named := [one.name for one in not_logged if one.kind == kind]:
            raise RefusedError(code, f"{', '.join(named[:_SHOWN])} {why}")


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


def _tables(connection: Connection, wanted: list[str], slot: str, publication: str) -> Found:
    """Wanted tables that are there, some others, and what the wanted ones are like."""
    cursor = connection.cursor()
    known = {str(row[0]) for row in islice(cursor.stream(_THERE, (wanted,)), len(wanted))}
    others = [str(row[0]) for row in islice(cursor.stream(_SOME), _SHOWN)]
    not_logged = [NotLogged(*row) for row in islice(cursor.stream(_NOT_LOGGED, (wanted,)), _SHOWN)]
    hidden = [str(row[0]) for row in islice(cursor.stream(_HIDDEN, (wanted,)), _SHOWN)]
    columns = list(islice(cursor.stream(_COLUMNS, (wanted,)), _MOST_COLUMNS + 1))
    tables = list(islice(cursor.stream(_IDENTITIES, (wanted,)), _MOST_IDENTITIES + 1))
    if len(columns) > _MOST_COLUMNS or len(tables) > _MOST_IDENTITIES:
        raise RefusedError(
            "too_many_columns",
            f"the tables have more than {_MOST_COLUMNS} columns, or {_MOST_IDENTITIES} partitions: "
            "capture them by several connectors",
        )
    return Found(
        known,
        others,
        not_logged,
        hidden,
        [Column(*row) for row in columns],
        [Identity(*row) for row in tables],
        published_tables.published(connection, wanted, slot, publication),
    )
