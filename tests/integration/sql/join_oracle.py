"""What a statement with several JOINs gives, in plain Python, without any code under test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Join:
    """One JOIN of a statement.

    alias: of the table in the text.
    rows: key -> row, as the table ends.
    key: (alias -> row so far) -> the key to look for; None: no row has it.
    outer: LEFT JOIN.
    """

    alias: str
    rows: Mapping[Any, Row]
    key: Callable[[Mapping[str, Row | None]], Any]
    outer: bool


def results(
    stream: Sequence[Row],
    joins: Sequence[Join],
    columns: Sequence[tuple[str, str, str]],
) -> list[dict[str, Any]]:
    """The rows that come out, in the order of the stream.

    Args:
        stream: records of the alias `c`.
        joins: in the order of the text.
        columns: (name in the result, alias, column of that alias).
    """
    found = (_joined(record, joins) for record in stream)
    return [
        {name: None if (row := rows[alias]) is None else row[column]
         for name, alias, column in columns}
        for rows in found
        if rows is not None
    ]  # fmt: skip


def _joined(record: Row, joins: Sequence[Join]) -> dict[str, Row | None] | None:
    rows: dict[str, Row | None] = {"c": record}
    for join in joins:
        wanted = join.key(rows)
        row = None if wanted is None else join.rows.get(wanted)
        if row is None and not join.outer:
            return None
        rows[join.alias] = row
    return rows
