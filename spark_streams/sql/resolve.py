"""A statement's columns as they are resolved: whose each is, what comes out, what is looked up.

Pure. Names are compared without regard to case, as Spark does. What is given to Spark are texts in
its own dialect over one row with a struct for each source, named by the source's alias.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.parse import DIALECT, Joined, Statement, conjuncts

Columns = Mapping[str, Sequence[str]]
"""Alias of a source -> names of its columns."""
Keys = Mapping[str, Sequence[str]]
"""Alias of a table -> those of its columns that are its key."""
OF_RECORD = ("_key", "_partition", "_offset", "_timestamp")
"""Columns that each record of a stream has, unless its values have one of that name; not in `*`."""
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

    key: the key's columns -> the expression that gives each, over the sources before it.
    condition: what else has to hold for the row that was found, None for nothing.
    inputs: columns that decide which row is found.
    """

    alias: str
    outer: bool
    key: Mapping[str, str]
    condition: str | None
    place: Place | None
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What is done with each record: look up, keep or pass over, make the columns.

    filters: columns that decide whether a record is kept.
    """

    lookups: tuple[Lookup, ...]
    where: str | None
    out: tuple[Out, ...]
    where_place: Place | None = None
    filters: tuple[Input, ...] = ()


def resolve(statement: Statement, columns: Columns, keys: Keys) -> Query:
    """Resolve every name of a statement.

    Raises:
        SqlError: `unknown_column`, `ambiguous_column`, `unnamed_column`, `duplicate_column`,
            `join_not_on_key` or `table_without_key`.
    """
    known = {statement.stream.alias: columns[statement.stream.alias]}
    lookups = []
    for joined in statement.joined:
        alias = joined.source.alias
        known[alias] = columns[alias]
        lookups.append(_lookup(_Names(statement, known), joined, keys[alias]))
    names = _Names(statement, known)
    out = tuple(one for node in statement.select for one in _out(names, node))
    _require_unique(out)
    if statement.where is None:
        return Query(tuple(lookups), None, out)
    place = statement.place(statement.where)
    filters = names.inputs(statement.where)
    return Query(tuple(lookups), names.sql(statement.where), out, place, filters)


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
                f"there is no source called {name}{_like(name, self._aliases.values())}",
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
                    f"{alias} has no column {parts[1]}{_like(parts[1], self.known[alias])}",
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
                f"no source has a column {parts[0]}{_like(parts[0], every_column)}",
                self.place(node),
            )
        [(alias, spelled)] = owners.items()
        return alias, [spelled, *parts[1:]]


def _lookup(names: _Names, joined: Joined, key: Sequence[str]) -> Lookup:
    """How the row of a table is found: every part of its key is given by what stands before it."""
    alias, place = joined.source.alias, joined.source.place
    if not key:
        raise SqlError(
            "table_without_key",
            f"the records of {joined.source.name} have no key with a schema: a table is looked up "
            "by its key",
            place,
        )
    given: dict[str, str] = {}
    rest: list[str] = []
    for part in conjuncts(joined.on):
        found = _equality(names, part, alias)
        if found is not None and found[0] in key and found[0] not in given:
            given[found[0]] = found[1]
        else:
            rest.append(names.sql(part))
    missing = [name for name in key if name not in given]
    if missing:
        wanted = " AND ".join(f"... = {alias}.{name}" for name in key)
        raise SqlError(
            "join_not_on_key",
            f"{joined.source.name} is a table with the key ({', '.join(key)}): join it ON {wanted}",
            names.place(joined.on) or place,
        )
    ordered = {name: given[name] for name in key}
    condition = " AND ".join(rest) or None
    return Lookup(alias, joined.outer, ordered, condition, place, names.inputs(joined.on))


def _equality(names: _Names, node: exp.Expr, alias: str) -> tuple[str, str] | None:
    """(column of the table, expression of the sources before it), or None for anything else."""
    if not isinstance(node, exp.EQ):
        return None
    for ours, other in ((node.left, node.right), (node.right, node.left)):
        column = names.column(ours.unnest())
        if column is not None and column[0] == alias and alias not in names.owners(other):
            return column[1], names.sql(other)
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
                f"EXCEPT names {part.name}, which no source has{_like(part.name, every)}",
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


def _like(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant."""
    candidates = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), candidates, 1, 0.6)
    return f"; is {candidates[close[0]]} meant?" if close else ""
