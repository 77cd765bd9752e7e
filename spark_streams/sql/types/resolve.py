"""A statement's columns as they are resolved: whose each is, what comes out, what is looked up.

Pure. Names are compared without regard to case, as Spark does. Expressions stay trees; each name
has become a source's column; `spark_streams.sql.running.compiled` makes Spark's columns of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.text.statement import Joined, Statement, conjuncts
from spark_streams.sql.text.tree import Binary, Column, Field, Name, Node, Selected, Star, balanced
from spark_streams.sql.types.names import Columns, Names, like
from spark_streams.sql.types.operands import Operand, Use, uses
from spark_streams.sql.types.trials import trials

Keys = Mapping[str, Sequence[str]]
"""Alias of a table -> those of its columns that are its key."""
AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Input(NamedTuple):
    """A column of a source, by the source's alias; fields inside it are not told apart."""

    alias: str
    column: str


@dataclass(frozen=True, slots=True)
class Out:
    """A column of the result: its name, the expression that makes it, and what that reads."""

    name: str
    expression: Node
    place: Place | None
    inputs: tuple["Input", ...] = ()


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table that is looked up for each record.

    key: the key's columns -> what gives each, over the sources before it.
    condition: what else has to hold for the row that was found, None for nothing.
    inputs: columns that decide which row is found.
    """

    alias: str
    outer: bool
    key: Mapping[str, Operand]
    condition: Node | None
    place: Place | None
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What is done with each record: look up, keep or pass over, make the columns.

    filters: columns that decide whether a record is kept.
    uses: what it compares and calculates with, but for the keys of its lookups.
    condition: `where` as it was written.
    trials: what is computed when it is planned; see `spark_streams.sql.types.trials`.
    """

    lookups: tuple[Lookup, ...]
    where: Node | None
    out: tuple[Out, ...]
    where_place: Place | None = None
    filters: tuple[Input, ...] = ()
    uses: tuple[Use, ...] = ()
    condition: str | None = None
    trials: tuple[Operand, ...] = ()


def resolve(statement: Statement, columns: Columns, keys: Keys) -> Query:
    """Resolve every name of a statement.

    Raises:
        SqlError: `unknown_column`, `ambiguous_column`, `unnamed_column`, `duplicate_column`,
            `join_not_on_key` or `table_without_key`.
    """
    names = Names(statement)
    names.add(statement.stream.alias, columns)
    lookups: list[Lookup] = []
    used: list[Use] = []
    tried: list[Operand] = []
    for joined in statement.joined:
        alias = joined.source.alias
        names.add(alias, columns)
        lookup, parts = _lookup(names, joined, keys[alias])
        lookups.append(lookup)
        used += (use for part in parts for use in uses(part, names.operand))
        tried += (one for part in parts for one in trials(part, names.operand))
    out = tuple(_unique(one for item in statement.select for one in _out(names, item)))
    used += (use for one in out for use in uses(one.expression, names.operand))
    tried += (each for one in out for each in trials(one.expression, names.operand))
    if statement.where is None:
        return Query(tuple(lookups), None, out, uses=tuple(used), trials=tuple(tried))
    where = names.resolved(statement.where)
    used += uses(where, names.operand)
    tried += trials(where, names.operand)
    place, told = statement.place(statement.where), statement.written(statement.where)
    return Query(tuple(lookups), where, out, place, inputs(where), tuple(used), told, tuple(tried))


def inputs(node: Node) -> tuple[Input, ...]:
    """The columns that a resolved expression reads, in their order."""
    found = {Input(one.alias, one.path[0]) for one in node.walk() if isinstance(one, Column)}
    return tuple(sorted(found))


def _lookup(names: Names, joined: Joined, key: Sequence[str]) -> tuple[Lookup, list[Node]]:
    """How the row of a table is found: every part of its key is given by what stands before it.

    Also the expressions in it: what gives the key, and the rest of the condition.
    """
    alias, place = joined.source.alias, joined.source.place
    if not key:
        raise SqlError(
            "table_without_key",
            f"the records of {joined.source.name} have no key with a schema, by which a row of a "
            "table is found: register one (`sdm schema register TOPIC FILE --key`), and write each "
            "record with a key of that schema",
            place,
        )
    on = None if joined.on is None else names.resolved(joined.on)
    given: dict[str, Node] = {}
    rest: list[Node] = []
    for part in () if on is None else conjuncts(on):
        found = _equality(part, alias)
        if found is not None and found[0] in key and found[0] not in given:
            given[found[0]] = found[1]
        else:
            rest.append(part)
    missing = [name for name in key if name not in given]
    if missing:
        wanted = " AND ".join(f"... = {alias}.{name}" for name in key)
        raise SqlError(
            "join_not_on_key",
            f"{joined.source.name} is a table with the key ({', '.join(key)}): join it ON {wanted}",
            place if on is None else names.place(on),
        )
    ordered = {name: names.operand(given[name]) for name in key}
    # not one within the other: what Spark is sent has a depth
    condition = balanced("and", rest) if rest else None
    read = () if on is None else inputs(on)
    return Lookup(alias, joined.outer, ordered, condition, place, read), [*given.values(), *rest]


def _equality(node: Node, alias: str) -> tuple[str, Node] | None:
    """(column of the table, expression of the sources before it), or None for anything else."""
    if not isinstance(node, Binary) or node.op != "=":
        return None
    for ours, other in ((node.left, node.right), (node.right, node.left)):
        is_column = isinstance(ours, Column) and ours.alias == alias and len(ours.path) == 1
        if is_column and alias not in {one.alias for one in inputs(other)}:
            assert isinstance(ours, Column)  # noqa: S101 - said above
            return ours.path[0], other
    return None


def _out(names: Names, item: Selected) -> Iterator[Out]:
    """The columns of the result that one item of the SELECT list makes."""
    place = names.place(item)
    if isinstance(item.this, Star):
        star = item.this
        for alias in names.known if star.alias is None else (names.alias(star.alias, star),):
            yield from _all_of(names, alias, star, place)
        return
    name = item.name or _own_name(item.this)
    if not AVRO_NAME.fullmatch(name):
        told = f"{name!r} is no name for a field" if name else "this column has no name"
        raise SqlError(
            "unnamed_column", f"{told}: write ... AS a name of letters, digits and _", place
        )
    made = names.resolved(item.this)
    yield Out(name, made, place, inputs(made))


def _own_name(node: Node) -> str:
    """The name of a column without AS: that of a column or field, "" for anything else."""
    if isinstance(node, Name):
        return node.parts[-1]
    return node.name if isinstance(node, Field) else ""


def _all_of(names: Names, alias: str, star: Star, place: Place) -> Iterator[Out]:
    for part in star.excepted:
        if not any(part.parts[0].lower() in columns for columns in names.known.values()):
            every = [name for known in names.known for name in names.every(known)]
            raise SqlError(
                "unknown_column",
                f"EXCEPT names {part.parts[0]}, which no source has{like(part.parts[0], every)}",
                names.place(part),
            )
    left_out = {part.parts[0].lower() for part in star.excepted}
    for column in names.every(alias):
        if column.lower() not in left_out:
            made = Column(alias, (column,), start=star.start, end=star.end)
            yield Out(column, made, place, (Input(alias, column),))


def _unique(out: Iterable[Out]) -> Iterator[Out]:
    """The columns; raises at the first that is there twice: `*, *` could be any number of them."""
    seen: set[str] = set()
    for one in out:
        if one.name.lower() in seen:
            raise SqlError(
                "duplicate_column",
                f"the result has two columns {one.name}: name one of them anew, with AS, or leave "
                f"it out, with * EXCEPT ({one.name})",
                one.place,
            )
        seen.add(one.name.lower())
        yield one
