"""What a publication of PostgreSQL has of the tables that a connector captures."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from mesh_events.errors import RefusedError
from processors.connect.databases import Connection

_QUERY = """
SELECT format('%%I.%%I', n.nspname, c.relname), n.nspname || '.' || c.relname,
    c.relkind = 'p' AND NOT p.pubviaroot,
    c.relispartition, (c.relkind = 'r' OR p.pubviaroot) AND NOT EXISTS (
        SELECT 1 FROM pg_publication_tables t WHERE t.pubname = p.pubname
        AND t.schemaname = n.nspname AND t.tablename = c.relname),
    array_remove(ARRAY[CASE WHEN NOT p.pubinsert THEN 'INSERT' END,
        CASE WHEN NOT p.pubupdate THEN 'UPDATE' END,
        CASE WHEN NOT p.pubdelete THEN 'DELETE' END,
        CASE WHEN NOT p.pubtruncate THEN 'TRUNCATE' END], NULL),
    coalesce(to_jsonb(r) ->> 'prqual', '') <> '',
    CASE WHEN jsonb_typeof(to_jsonb(r) -> 'prattrs') = 'array' THEN ARRAY(
        SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
        AND to_jsonb(r) -> 'prattrs' @> to_jsonb(a.attnum::int)) END
FROM pg_publication p, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_publication_rel r ON r.prrelid = c.oid AND r.prpubid = (
    SELECT o.oid FROM pg_publication o WHERE o.pubname = %s)
WHERE p.pubname = %s AND c.relkind IN ('r', 'p') AND n.nspname || '.' || c.relname = ANY(%s)
ORDER BY 1
"""
"""Before PostgreSQL 15 a publication has no filters and columns, which is why JSON is asked."""


_PUBLISHING = """
SELECT pg_is_in_recovery(), EXISTS (SELECT 1 FROM pg_replication_slots WHERE slot_name = %s)
    AND NOT EXISTS (SELECT 1 FROM pg_publication WHERE pubname = %s)
"""


_KINDS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}
"""Kinds of changes, and what Debezium calls them. It makes its publication without the skipped."""
_OF_OUTBOX = ("INSERT",)


class Published(NamedTuple):
    """What a publication that is there says of a table.

    table: its name as SQL writes it
    path: schema.table
    by_partition: whether changes come under the names of its partitions
    is_partition: whether it is one of another table
    is_missing: whether the publication does not have it
    left_out: kinds of changes that the publication does not have
    is_filtered: whether it has some rows alone
    columns: those it has alone, None for all
    """

    table: str
    path: str
    by_partition: bool
    is_partition: bool
    is_missing: bool
    left_out: list[str]
    is_filtered: bool
    columns: list[str] | None


class Publishing(NamedTuple):
    """What a database says of a publication.

    is_standby: whether none can be made there
    is_lost: whether there is a slot, which is made after the publication, and no publication
    tables: what a publication that is there has of the wanted tables
    """

    is_standby: bool
    is_lost: bool
    tables: list[Published]


def published(
    connection: Connection, wanted: Sequence[str], slot: str, publication: str
) -> Publishing:
    """What a database says of a publication.

    Args:
        connection: to the database.
        wanted: the tables, `schema.table`.
        slot: the replication slot that reads it.
        publication: its name.
    """
    cursor = connection.cursor()
    [(is_standby, is_lost)] = islice(cursor.stream(_PUBLISHING, (slot, publication)), 1)
    rows = cursor.stream(_QUERY, (publication, publication, list(wanted)))
    found = [Published(*row) for row in islice(rows, len(wanted))]
    return Publishing(is_standby, is_lost, found)


def require_publishing(
    found: Publishing, publication: str, *, is_known: bool, is_kept: bool
) -> None:
    """Refuse a database that cannot make the publication, or one that is gone.

    Args:
        found: what the database says.
        publication: its name.
        is_known: whether the connector captures some of the tables already.
        is_kept: whether the connector neither makes nor changes it.

    Raises:
        RefusedError: `database_is_standby`, `publication_lost`.
    """
    if found.is_standby and not is_kept:
        raise RefusedError(
            "database_is_standby",
            "the database is a standby, where no publication can be made: make it at the primary, "
            f"CREATE PUBLICATION {publication} FOR TABLE ... WITH (publish_via_partition_root = "
            f"true), and set publication.name={publication} and "
            "publication.autocreate.mode=disabled",
        )
    if is_known and found.is_lost:
        raise RefusedError(
            "publication_lost",
            f"the publication {publication} was dropped, and what was written to the tables since "
            "is missing from the topics; delete the connector and its replication slot, and add it "
            "under another name, which reads the tables anew",
        )


def require_published(
    found: Sequence[Published],
    publication: str,
    columns: Collection[str],
    before: Collection[str],
    *,
    is_outbox: bool,
    is_kept: bool,
    skipped: Collection[str] = (),
) -> None:
    """Refuse tables whose changes a publication does not have as a whole, under their names.

    Args:
        found: what it has of them.
        publication: its name.
        columns: those that are captured, `schema.table.column`.
        before: tables that the connector captures already, `schema.table`.
        is_outbox: whether the connector reads what is inserted alone.
        is_kept: whether the connector adds no tables to the publication.
        skipped: operations that it passes over (`skipped.operations`), which need not be there.

    Raises:
        RefusedError: the first kind of fault, with all of its tables.
    """
    missing = [one for one in found if one.is_missing]
    if others := [one.table for one in missing if one.path in before and not one.is_partition]:
        raise RefusedError(
            "table_recreated",
            f"{', '.join(others)} is another table than the connector captured under that name: "
            f"the publication {publication} does not have it, and what was written to it since is "
            "missing from the topic; delete the connector and its replication slot, and add it "
            "under another name, which reads the table anew",
        )
    if split := [one.table for one in found if one.by_partition]:
        raise RefusedError(
            "table_by_partition",
            f"the publication {publication} has the changes of {', '.join(split)} under the names "
            "of its partitions, so that none arrives; run ALTER PUBLICATION "
            f"{publication} SET (publish_via_partition_root = true); what was written before is "
            "missing from the topic of a connector that ran",
        )
    if is_kept and missing:
        named = ", ".join(one.table for one in missing)
        raise RefusedError(
            "table_not_published",
            f"the publication {publication} does not have {named}, so that no change arrives; run "
            f"ALTER PUBLICATION {publication} ADD TABLE {named} (of a partition it needs "
            "publish_via_partition_root = false)",
        )
    wanted = [kind for kind, operation in _KINDS.items() if operation not in skipped]
    if faults := list(_partly(found, columns, _OF_OUTBOX if is_outbox else wanted)):
        raise RefusedError(
            "table_published_partly",
            f"the publication {publication} {'; '.join(faults)}: the topic would lack them, and "
            "nothing there would tell",
        )


def _partly(
    found: Sequence[Published], columns: Collection[str], wanted: Sequence[str]
) -> Iterator[str]:
    kinds = {kind for one in found for kind in one.left_out}
    if lacking := [kind for kind in wanted if kind in kinds]:
        yield f"has no {', '.join(lacking)} (ALTER PUBLICATION ... SET (publish = ...))"
    if filtered := [one.table for one in found if one.is_filtered]:
        yield f"has a WHERE for {', '.join(filtered)}, which the snapshot does not follow"
    for one in found:
        if one.columns is not None:
            begin = f"{one.path}."
            taken = [path.removeprefix(begin) for path in columns if path.startswith(begin)]
            if lacking := sorted({*taken} - {*one.columns}):
                yield f"does not have the columns {', '.join(lacking)} of {one.table}"
