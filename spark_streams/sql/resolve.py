"""A statement's columns as they are resolved: whose each is, what comes out, what is looked up.

Pure. Names are compared without regard to case, as Spark does. What is given to Spark are texts in
its own dialect over one row with a struct for each source, named by the source's alias.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from mesh_events.spelling import nearest
from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.operands import Operand, Use, uses
from spark_streams.sql.parse import DIALECT, Joined, Statement, conjuncts, named_place

Columns = Mapping[str, Sequence[str]]
"""Alias of a source -> names of its columns."""
Keys = Mapping[str, Sequence[str]]
"""Alias of a table -> those of its columns that are its key."""
OF_RECORD = ("_key", "_partition", "_offset", "_timestamp")
"""Columns that each record of a stream has, unless its values have one of that name; not in `*`."""
_MOST_OPERANDS = 100_000
"""Characters of the operands of one expression: each is a part of its text."""
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
    expression: str
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
    condition: str | None
    place: Place | None
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What is done with each record: look up, keep or pass over, make the columns.

    filters: columns that decide whether a record is kept.
    uses: what it compares and calculates with, but for the keys of its lookups.
    calls: functions that the parser does not know, in lower case, and where each stands first.
    """

    lookups: tuple[Lookup, ...]
    where: str | None
    out: tuple[Out, ...]
    where_place: Place | None = None
    filters: tuple[Input, ...] = ()
    uses: tuple[Use, ...] = ()
    calls: Mapping[str, Place | None] = field(default_factory=dict, hash=False)


def resolve(statement: Statement, columns: Columns, keys: Keys) -> Query:
    """Resolve every name of a statement.

    Raises:
        SqlError: `unknown_column`, `ambiguous_column`, `unnamed_column`, `duplicate_column`,
            `join_not_on_key` or `table_without_key`.
    """
    known = {statement.stream.alias: columns[statement.stream.alias]}
    lookups: list[Lookup] = []
    used: list[Use] = []
    for joined in statement.joined:
        alias = joined.source.alias
        known[alias] = columns[alias]
        names = _Names(statement, known)
        lookup, parts = _lookup(names, joined, keys[alias])
        lookups.append(lookup)
        used += (use for part in parts for use in names.uses(part))
    names = _Names(statement, known)
    out = tuple(one for node in statement.select for one in _out(names, node))
    _require_unique(out)
    used += (use for node in statement.select for use in names.uses(node))
    calls = _calls(statement)
    if statement.where is None:
        return Query(tuple(lookups), None, out, uses=tuple(used), calls=calls)
    place = statement.place(statement.where)
    filters = names.inputs(statement.where)
    used += names.uses(statement.where)
    where = names.sql(statement.where)
    return Query(tuple(lookups), where, out, place, filters, tuple(used), calls)


def _calls(statement: Statement) -> dict[str, Place | None]:
    whole = [*statement.select, *(one.on for one in statement.joined)]
    if statement.where is not None:
        whole.append(statement.where)
    found: dict[str, Place | None] = {}
    for node in (one for part in whole for one in part.find_all(exp.Anonymous)):
        found.setdefault(node.name.lower(), named_place(statement.text, node))
    return found


class _Names:
    """Knows whose column a name is."""

    def __init__(self, statement: Statement, known: Columns) -> None:
        self._statement = statement
        self.known = {alias: list(columns) for alias, columns in known.items()}
        self._aliases = {alias.lower(): alias for alias in known}

    def place(self, node: exp.Expr) -> Place | None:
        return self._statement.place(node)

    def alias(self, name: str, node: exp.Expr) -> str:
        """The source of that name."""
        if name.lower() not in self._aliases:
            raise SqlError(
                "unknown_column",
                f"there is no source called {name}{like(name, self._aliases.values())}",
                self.place(node),
            )
        return self._aliases[name.lower()]

    def sql(self, node: exp.Expr) -> str:
        """The expression as Spark is given it, each column with its source's alias."""
        return self.resolved(node).sql(dialect=DIALECT)

    def resolved(self, node: exp.Expr) -> exp.Expr:
        """A copy with each column as a path that begins with its source's alias."""
        return node.copy().transform(
            lambda part: self._path(part) if isinstance(part, exp.Column) else part
        )

    def operand(self, node: exp.Expr) -> Operand:
        """The expression with where it stands."""
        return Operand(self.sql(node), self._statement.text, node)

    def uses(self, node: exp.Expr) -> Iterator[Use]:
        """What an expression compares and calculates with."""
        said: dict[int, int] = {}
        for use in uses(node, self.operand):
            said |= {id(one.node): len(one.sql) for one in use.operands}
            if sum(said.values()) > _MOST_OPERANDS:
                raise SqlError(
                    "sql_not_supported",
                    "comparisons are nested too deeply here: make columns of their parts in a "
                    "statement before",
                    self.place(node),
                )
            yield use

    def owners(self, node: exp.Expr) -> set[str]:
        """The sources that an expression uses."""
        return {one.alias for one in self.inputs(node)}

    def inputs(self, node: exp.Expr) -> tuple[Input, ...]:
        """The columns that an expression uses, in their order."""
        found = (self._split(column) for column in node.find_all(exp.Column))
        return tuple(sorted({Input(alias, path[0]) for alias, path in found}))

    def column(self, node: exp.Expr) -> tuple[str, str] | None:
        """(alias, column) where the expression is a column itself, else None."""
        if not isinstance(node, exp.Column):
            return None
        alias, path = self._split(node)
        return (alias, path[0]) if len(path) == 1 else None

    def _path(self, node: exp.Column) -> exp.Expr:
        alias, path = self._split(node)
        made: exp.Expr = exp.column(exp.to_identifier(alias, quoted=True))
        for name in path:
            made = exp.Dot(this=made, expression=exp.to_identifier(name, quoted=True))
        return made

    def _split(self, node: exp.Column) -> tuple[str, list[str]]:
        """The source's alias and the path below it, as the source spells its column."""
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() in self._aliases:
            alias = self._aliases[parts[0].lower()]
            more = OF_RECORD if alias == self._statement.stream.alias else ()
            spelled = _spelled(parts[1], (*self.known[alias], *more))
            if spelled is None:
                raise SqlError(
                    "unknown_column",
                    f"{alias} has no column {parts[1]}{_column_like(parts[1], self.known[alias])}",
                    self.place(node),
                )
            return alias, [spelled, *parts[2:]]
        owners = {
            alias: spelled
            for alias, columns in self.known.items()
            if (spelled := _spelled(parts[0], columns)) is not None
        }
        if len(owners) > 1:
            every = " or ".join(f"{alias}.{parts[0]}" for alias in owners)
            raise SqlError("ambiguous_column", f"write {every}", self.place(node))
        if not owners and parts[0].lower() in OF_RECORD:
            owners = {self._statement.stream.alias: parts[0].lower()}
        if not owners:
            every_column = [name for columns in self.known.values() for name in columns]
            raise SqlError(
                "unknown_column",
                f"no source has a column {parts[0]}{_column_like(parts[0], every_column)}",
                self.place(node),
            )
        [(alias, spelled)] = owners.items()
        return alias, [spelled, *parts[1:]]


def _lookup(names: _Names, joined: Joined, key: Sequence[str]) -> tuple[Lookup, list[exp.Expr]]:
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
    given: dict[str, exp.Expr] = {}
    rest: list[exp.Expr] = []
    for part in conjuncts(joined.on):
        found = _equality(names, part, alias)
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
            names.place(joined.on) or place,
        )
    ordered = {name: names.operand(given[name]) for name in key}
    condition = " AND ".join(map(names.sql, rest)) or None
    lookup = Lookup(alias, joined.outer, ordered, condition, place, names.inputs(joined.on))
    return lookup, [*given.values(), *rest]


def _equality(names: _Names, node: exp.Expr, alias: str) -> tuple[str, exp.Expr] | None:
    """(column of the table, expression of the sources before it), or None for anything else."""
    if not isinstance(node, exp.EQ):
        return None
    for ours, other in ((node.left, node.right), (node.right, node.left)):
        column = names.column(ours.unnest())
        if column is not None and column[0] == alias and alias not in names.owners(other):
            return column[1], other
    return None


def _out(names: _Names, node: exp.Expr) -> Iterator[Out]:
    """The columns of the result that one item of the SELECT list makes."""
    place = names.place(node)
    if isinstance(node, exp.Star):
        for alias in names.known:
            yield from _all_of(names, alias, node, place)
    elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        yield from _all_of(names, names.alias(node.table, node), node.this, place)
    else:
        name = node.output_name
        if not AVRO_NAME.fullmatch(name):
            told = f"{name!r} is no name for a field" if name else "this column has no name"
            raise SqlError(
                "unnamed_column", f"{told}: write ... AS a name of letters, digits and _", place
            )
        inner = node.this if isinstance(node, exp.Alias) else node
        yield Out(name, names.sql(inner), place, names.inputs(inner))


def _all_of(names: _Names, alias: str, star: exp.Star, place: Place | None) -> Iterator[Out]:
    excepted = list(star.args.get("except_") or ())
    every = [name for columns in names.known.values() for name in columns]
    for part in excepted:
        if _spelled(part.name, every) is None:
            raise SqlError(
                "unknown_column",
                f"EXCEPT names {part.name}, which no source has{like(part.name, every)}",
                names.place(part),
            )
    left_out = {part.name.lower() for part in excepted}
    for column in names.known[alias]:
        if column.lower() not in left_out:
            path = exp.Dot(
                this=exp.column(exp.to_identifier(alias, quoted=True)),
                expression=exp.to_identifier(column, quoted=True),
            )
            yield Out(column, path.sql(dialect=DIALECT), place, (Input(alias, column),))


def _require_unique(out: tuple[Out, ...]) -> None:
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


def _spelled(name: str, columns: Sequence[str]) -> str | None:
    """A column as its source spells it."""
    return next((one for one in columns if one.lower() == name.lower()), None)


def _column_like(name: str, known: Sequence[str]) -> str:
    """The same for a column; where none is like it, those that there are."""
    more = ", ..." if len(known) > _SHOWN else ""
    return like(name, known) or f"; there are {', '.join(known[:_SHOWN])}{more}"


def like(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant."""
    near = nearest(name, known)
    return f"; is {near} meant?" if near else ""
