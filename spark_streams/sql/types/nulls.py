"""Comparisons with NULL, which nothing meets: a new text that has one is refused. Pure.

Statements that were accepted earlier run on as they are.
"""

from collections.abc import Iterator

from spark_streams.sql.errors import SqlError
from spark_streams.sql.text.statement import Statement
from spark_streams.sql.text.tree import Between, Binary, Case, Constant, In, Like, Node

_NULL = Constant(None)
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


def require_no_null(statement: Statement) -> None:
    """Raise SqlError `sql_syntax` with the place of a NULL that something is compared to."""
    for node in (one for root in _roots(statement) for one in root.walk()):
        for operand in _compared(node):
            if operand == _NULL:
                raise SqlError(
                    "sql_syntax",
                    "nothing is equal to NULL, nor different from it: write IS NULL or IS NOT NULL",
                    statement.place(operand),
                )


def _roots(statement: Statement) -> Iterator[Node]:
    yield from (one.on for one in statement.joined if one.on is not None)
    yield from (one.this for one in statement.select)
    if statement.where is not None:
        yield statement.where


def _compared(node: Node) -> tuple[Node, ...]:
    """The operands that a node compares with each other."""
    match node:
        case Binary(op, left, right) if op in _COMPARISONS:
            return left, right
        case In() | Between() | Like():
            return node.children
        case Case(Node() as this, branches, _):
            return this, *(when for when, _ in branches)
    return ()
