"""Columns of captured tables: which are taken, and whether they arrive, those of keys first."""

from collections.abc import Mapping, Sequence

from mesh_events.errors import RefusedError
from processors.connect import postgres_types
from processors.connect.postgres_types import Column
from projections.connectors.values import items

_SHOWN = 10


def taken(
    columns: Sequence[Column], config: Mapping[str, str], needed: Sequence[str]
) -> list[Column]:
    """The columns that are captured.

    Args:
        columns: of the tables.
        config: of the connector.
        needed: what an outbox's router reads, empty for tables.
    """
    included = items(config.get("column.include.list", ""))
    excluded = items(config.get("column.exclude.list", ""))
    return [
        one
        for one in columns
        if one.path not in excluded
        and (not included or one.path in included)
        # the router of an outbox reads no other
        and (not needed or one.name in needed)
    ]


def require_keys(
    columns: Sequence[Column], captured: Sequence[Column], config: Mapping[str, str]
) -> None:
    """Refuse a primary key of which a column would be missing: several rows would have one key.

    Raises:
        RefusedError: `key_not_captured`.
    """
    if left := [one.path for one in columns if one.is_key and one not in captured]:
        raise RefusedError(
            "key_not_captured",
            f"{', '.join(left[:_SHOWN])} is of the primary key, and column.include.list or "
            "column.exclude.list leaves it out: several rows would have one key; take all columns "
            "of the key",
        )
    keys = [one for one in captured if one.is_key]
    if faults := _faults(keys, config):
        raise RefusedError(
            "key_not_captured",
            f"{_told(faults)}; it is of the primary key, without which several rows would have one "
            "key: give the table a key of other columns, or this one another type, such as text",
        )


def require_arrival(captured: Sequence[Column], config: Mapping[str, str]) -> None:
    """Refuse columns that would be missing from the topic, or that nobody could read there.

    Raises:
        RefusedError: `column_not_captured`.
    """
    if faults := _faults(captured, config):
        excluded = items(config.get("column.exclude.list", ""))
        left = ",".join([*excluded, *(one.path for one, _ in faults)])
        raise RefusedError(
            "column_not_captured",
            f"{_told(faults)}; capture the table without: --set column.exclude.list={left}",
        )


def without_keys(columns: Sequence[Column]) -> list[str]:
    """Tables without a primary key, `schema.table`."""
    keyed = {one.table for one in columns if one.is_key}
    return sorted({one.table for one in columns} - keyed)


def told_without_keys(keyless: Sequence[str]) -> list[str]:
    """What is to be told of tables without a primary key, a text for all of them."""
    if not keyless:
        return []
    named = ", ".join(keyless[:_SHOWN])
    why = "since there is no primary key (a unique index is none)"
    return [f"records of {named} have no keys, {why}: no table of latest rows is made of them"]


def told_of_partitions(partitioned: Sequence[str]) -> list[str]:
    """What is to be told of partitioned tables, a text for all of them."""
    if not partitioned:
        return []
    named = ", ".join(partitioned[:_SHOWN])
    why = "and its rows stay in the topic: delete them before"
    return [f"TRUNCATE and DROP of a partition of {named} bring no record, {why}"]


def _faults(columns: Sequence[Column], config: Mapping[str, str]) -> list[tuple[Column, str]]:
    precise = config.get("decimal.handling.mode", "precise") == "precise"
    found = ((one, postgres_types.fault(one, precise=precise)) for one in columns)
    return [(one, why) for one, why in found if why]


def _told(faults: Sequence[tuple[Column, str]]) -> str:
    return "; ".join(f"{one.path} {why}" for one, why in faults[:_SHOWN])
