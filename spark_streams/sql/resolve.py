"""A statement's columns as they are resolved: whose each is, what comes out, what is looked up.

Pure. Names are compared without regard to case, as Spark does. Expressions stay trees; each name
has become a source's column; `spark_streams.sql.compiled` makes Spark's columns of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mesh_events.spelling import nearest
from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.functions import NOT_OF_THE_RECORD, clock
from spark_streams.sql.operands import Operand, Use, uses
from spark_streams.sql.parse import Joined, Statement, conjuncts
from spark_streams.sql.tree import (
    Binary,
    Column,
    Field,
    Lambda,
    Name,
    Node,
    Parameter,
    Selected,
    Star,
    with_children,
)

Columns = Mapping[str, Sequence[str]]
"""Alias of a source -> names of its columns."""
Keys = Mapping[str, Sequence[str]]
"""Alias of a table -> those of its columns that are its key."""
OF_RECORD = ("_key", "_partition", "_offset", "_timestamp")
"""Columns that each record of a stream has, unless its values have one of that name; not in `*`."""
_SHOWN = 12
"""So many columns are named where none is like the one that was meant."""
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
    """

    lookups: tuple[Lookup, ...]
    where: Node | None
    out: tuple[Out, ...]
    where_place: Place | None = None
    filters: tuple[Input, ...] = ()
    uses: tuple[Use, ...] = ()
    condition: str | None = None


def resolve(statement: Statement, columns: Columns, keys: Keys) -> Query:
    """Resolve every name of a statement.

    Raises:
        SqlError: `unknown_column`, `ambiguous_column`, `unnamed_column`, `duplicate_column`,
            `join_not_on_key` or `table_without_key`.
    """
    names = _Names(statement)
    names.add(statement.stream.alias, columns)
    lookups: list[Lookup] = []
    used: list[Use] = []
    for joined in statement.joined:
        alias = joined.source.alias
        names.add(alias, columns)
        lookup, parts = _lookup(names, joined, keys[alias])
        lookups.append(lookup)
        used += (use for part in parts for use in uses(part, names.operand))
    out = tuple(_unique(one for item in statement.select for one in _out(names, item)))
    used += (use for one in out for use in uses(one.expression, names.operand))
    if statement.where is None:
        return Query(tuple(lookups), None, out, uses=tuple(used))
    where = names.resolved(statement.where)
    used += uses(where, names.operand)
    place, told = statement.place(statement.where), statement.written(statement.where)
    return Query(tuple(lookups), where, out, place, inputs(where), tuple(used), told)


def inputs(node: Node) -> tuple[Input, ...]:
    """The columns that a resolved expression reads, in their order."""
    found = {Input(one.alias, one.path[0]) for one in node.walk() if isinstance(one, Column)}
    return tuple(sorted(found))


class _Names:
    """Knows whose column a name is.

    known: alias -> column in lower case -> the column as its source spells it.
    """

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self.known: dict[str, dict[str, str]] = {}
        self._aliases: dict[str, str] = {}
        self._columns: dict[str, Sequence[str]] = {}

    def add(self, alias: str, columns: Columns) -> None:
        """From here on a name may be a column of this source, too."""
        # of two that differ in case only, the first one is meant
        self.known[alias] = {name.lower(): name for name in reversed(columns[alias])}
        self._aliases[alias.lower()] = alias
        self._columns[alias] = columns[alias]

    def place(self, node: Node) -> Place:
        return self._statement.place(node)

    def alias(self, name: str, node: Node) -> str:
        """The source of that name."""
        if name.lower() not in self._aliases:
            raise SqlError(
                "unknown_column",
                f"there is no source called {name}{like(name, self._aliases.values())}",
                self.place(node),
            )
        return self._aliases[name.lower()]

    def resolved(self, node: Node, params: frozenset[str] = frozenset()) -> Node:
        """The expression with each name as a column of its source.

        Args:
            node: as it was read.
            params: parameters of the lambdas around it, in lower case.
        """
        if isinstance(node, Name):
            first = node.parts[0].lower()
            place = {"start": node.start, "end": node.end}
            if first in params:
                return Parameter(first, node.parts[1:], **place)
            alias, path = self._split(node)
            return Column(alias, tuple(path), **place)
        if isinstance(node, Lambda):
            params |= {one.lower() for one in node.params}
        return with_children(node, lambda child: self.resolved(child, params))

    def every(self, alias: str) -> Sequence[str]:
        """The columns of a source, in their order."""
        return self._columns[alias]

    def operand(self, node: Node) -> Operand:
        """The resolved expression with where it stands."""
        return Operand(node, self._statement.text)

    def _split(self, node: Name) -> tuple[str, list[str]]:
        """The source's alias and the path below it, as the source spells its column."""
        parts = list(node.parts)
        if len(parts) > 1 and parts[0].lower() in self._aliases:
            alias = self._aliases[parts[0].lower()]
            wanted = parts[1].lower()
            spelled = self.known[alias].get(wanted)
            if spelled is None and alias == self._statement.stream.alias and wanted in OF_RECORD:
                spelled = wanted
            if spelled is None:
                known = self.every(alias)
                raise SqlError(
                    "unknown_column",
                    f"{alias} has no column {parts[1]}{_column_like(parts[1], known)}",
                    self.place(node),
                )
            return alias, [spelled, *parts[2:]]
        owners = {
            alias: spelled
            for alias, columns in self.known.items()
            if (spelled := columns.get(parts[0].lower())) is not None
        }
        if len(owners) > 1:
            every = " or ".join(f"{alias}.{parts[0]}" for alias in owners)
            raise SqlError("ambiguous_column", f"write {every}", self.place(node))
        if not owners and parts[0].lower() in OF_RECORD:
            owners = {self._statement.stream.alias: parts[0].lower()}
        if not owners and len(parts) == 1 and parts[0].lower() in NOT_OF_THE_RECORD:
            raise SqlError("sql_not_supported", clock(parts[0].lower()), self.place(node))
        if not owners:
            every_column = [name for alias in self.known for name in self.every(alias)]
            raise SqlError(
                "unknown_column",
                f"no source has a column {parts[0]}{_column_like(parts[0], every_column)}",
                self.place(node),
            )
        [(alias, spelled)] = owners.items()
        return alias, [spelled, *parts[1:]]


def _lookup(names: _Names, joined: Joined, key: Sequence[str]) -> tuple[Lookup, list[Node]]:
    """How the row of a table is found: every part of its key is given by what stands before it.

    Also the expressions in it: what gives the key, and the rest of the condition.
    """
    alias, place = joined.source.alias, joined.source.place
    if not key:
        raise SqlError(
            "table_without_key",
            f"the records of {joined.source.name} have no key with a schema: a table is looked up "
            "by its key",
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
    condition = _all_hold(rest)
    read = () if on is None else inputs(on)
    return Lookup(alias, joined.outer, ordered, condition, place, read), [*given.values(), *rest]


def _all_hold(parts: Sequence[Node]) -> Node | None:
    found: Node | None = None
    for part in parts:
        if found is None:
            found = part
        else:
            found = Binary("and", found, part, start=found.start, end=part.end)
    return found


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


def _out(names: _Names, item: Selected) -> Iterator[Out]:
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


def _all_of(names: _Names, alias: str, star: Star, place: Place) -> Iterator[Out]:
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


def _column_like(name: str, known: Sequence[str]) -> str:
    """The same for a column; where none is like it, those that there are."""
    more = ", ..." if len(known) > _SHOWN else ""
    return like(name, known) or f"; there are {', '.join(known[:_SHOWN])}{more}"


def like(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant."""
    near = nearest(name, known)
    return f"; is {near} meant?" if near else ""
