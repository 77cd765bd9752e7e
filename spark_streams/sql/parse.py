"""A statement's text as it is understood: destination, stream, tables, and the rest as a tree.

Pure, and without knowledge of any topic. The dialect is Spark's; sqlglot reads it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from mesh_events.errors import MeshError
from spark_streams.sql.errors import Place, SqlError

DIALECT = "spark"
Read = TypeVar("Read")
LONGEST = 20_000
"""Characters of a statement: it stands on the log for ever."""
_FORM = "write INSERT INTO topic SELECT ... FROM topic"
_REFUSED_FUNCTIONS = frozenset({"java_method", "reflect", "try_reflect", "mesh_lookup"})
"""What would call into the server, or read what another statement reads."""
_REFUSED_PREFIX = "xpath"
"""XML can name files of the server."""
_SELECT, _INSERT = {"expressions", "from_", "joins", "where"}, {"this", "expression"}
"""The parts of a statement that are understood; any other one would be passed over in silence."""
_PLAIN_TABLE = frozenset({"this", "db", "catalog", "alias"})
_CLAUSES = {
    "with_": "WITH: write one statement for each step",
    "distinct": "DISTINCT: it would have to remember every record",
    "group": "GROUP BY: windows and counts are not supported yet",
    "having": "HAVING: windows and counts are not supported yet",
    "windows": "WINDOW: windows and counts are not supported yet",
    "qualify": "QUALIFY: windows and counts are not supported yet",
    "order": "ORDER BY: a stream has the order of its partitions",
    "sort": "SORT BY: a stream has the order of its partitions",
    "cluster": "CLUSTER BY: records stay in the partition they come from",
    "distribute": "DISTRIBUTE BY: records stay in the partition they come from",
    "limit": "LIMIT: a stream has no end",
    "offset": "OFFSET: a stream has no end",
    "laterals": "LATERAL VIEW: at most one record comes out for each that goes in",
    "pivots": "PIVOT: at most one record comes out for each that goes in",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A topic or product by the name that the text gives it, and the alias that columns use."""

    name: str
    alias: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Joined:
    """A table that is joined; `outer` for LEFT JOIN."""

    source: Source
    outer: bool
    on: exp.Expr


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    text: as it was written.
    destination: name behind INSERT INTO, None for a SELECT alone.
    stream: what stands behind FROM.
    joined: tables in their order.
    select: the expressions of the SELECT list.
    where: the condition, None if there is none.
    """

    text: str
    destination: Source | None
    stream: Source
    joined: tuple[Joined, ...]
    select: tuple[exp.Expr, ...]
    where: exp.Expr | None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The stream, then the tables."""
        return (self.stream, *(one.source for one in self.joined))

    def place(self, node: exp.Expr) -> Place | None:
        """Where an expression begins, as far as it has a name in it."""
        return place_of(self.text, node)


def parse(text: str) -> Statement:
    """Understand a statement.

    Raises:
        SqlError: `sql_syntax` or `sql_not_supported`.
    """
    if len(text) > LONGEST:
        raise SqlError("sql_not_supported", f"a statement has at most {LONGEST} characters")
    if "${" in text:
        raise SqlError(
            "sql_not_supported",
            "${: variables are not for statements, they would be the server's",
            Place.of(text, text.index("${")),
        )
    return understood(lambda: _parsed(text))


def understood(read: Callable[[], Read]) -> Read:
    """What `read` makes of a text; whatever the parser raises otherwise becomes a SqlError.

    It raises many kinds on texts that are almost SQL, or are nested too deeply.
    """
    try:
        return read()
    except MeshError:
        raise
    except RecursionError as error:
        raise SqlError("sql_not_supported", "the text is nested too deeply") from error
    except Exception as error:
        raise SqlError(
            "sql_syntax", f"this cannot be understood ({type(error).__name__})"
        ) from error


def _parsed(text: str) -> Statement:
    tree, destination = _root(text), None
    if isinstance(tree, exp.Insert):
        destination, tree = _destination(text, tree), tree.expression
    if tree is None:
        raise SqlError("sql_syntax", f"there is no SELECT: {_FORM}")
    if not isinstance(tree, exp.Select):
        raise SqlError(
            "sql_not_supported",
            f"{_kind(tree)} is not supported: {_FORM}",
            place_of(text, tree),
        )
    _refuse(text, tree)
    source = tree.args.get("from_")
    if source is None:
        raise SqlError("sql_syntax", "there is no FROM: name the topic to read")
    stream = _source(text, source.this)
    joined = tuple(_joined(text, join) for join in tree.args.get("joins") or ())
    _require_different(stream, joined)
    where = tree.args.get("where")
    return Statement(
        text, destination, stream, joined, tuple(tree.expressions), where.this if where else None
    )


def place_of(text: str, node: exp.Expr) -> Place | None:
    """Where the first name in an expression stands; None where there is no name."""
    starts = [
        part.meta["start"]
        for part in node.walk()
        if isinstance(part, exp.Identifier | exp.Star | exp.Literal) and "start" in part.meta
    ]
    return Place.of(text, min(starts)) if starts else None


def _root(text: str) -> exp.Expr:
    try:
        found = [tree for tree in sqlglot.parse(text, dialect=DIALECT) if tree is not None]
    except ParseError as error:
        raise _syntax(error) from error
    except TokenError as error:
        raise SqlError("sql_syntax", f"cannot be read: {str(error).splitlines()[0]}") from error
    if len(found) != 1:
        what = "an empty text" if not found else f"{len(found)} statements"
        raise SqlError("sql_not_supported", f"one statement is expected, not {what}")
    return found[0]


def _syntax(error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    line, column, at = first.get("line"), first.get("col"), first.get("highlight") or ""
    place = Place(line, max(1, column - len(at) + 1)) if line and column else None
    about = str(first.get("description") or error).partition("<")[0].strip(" .")
    near = f" at {at!r}" if at else ""
    return SqlError("sql_syntax", f"{about or 'this is not SQL'}{near}", place)


def _destination(text: str, tree: exp.Insert) -> Source:
    table = tree.this
    if isinstance(table, exp.Table | exp.Schema) and not tree.args.get("overwrite"):
        _require_only(text, tree, _INSERT)
    if tree.args.get("overwrite"):
        raise SqlError(
            "sql_not_supported", "INSERT OVERWRITE: a topic is only ever appended to, use INTO"
        )
    if isinstance(table, exp.Schema):
        raise SqlError(
            "sql_not_supported",
            "a list of columns behind the destination: name them in the SELECT, with AS",
            place_of(text, table),
        )
    return _source(text, table)


def _refuse(text: str, tree: exp.Select) -> None:
    """Raise for what cannot be done with one record at a time."""
    for name, why in _CLAUSES.items():
        clause = tree.args.get(name)
        if clause:
            node = clause[0] if isinstance(clause, list) else clause
            raise SqlError("sql_not_supported", why, place_of(text, node))
    _require_only(text, tree, _SELECT)
    for node in tree.walk():
        why = _refusal(node, tree)
        if why:
            raise SqlError("sql_not_supported", why, place_of(text, node))


def _require_only(text: str, node: exp.Expr, known: set[str]) -> None:
    """Raise for a part of a statement that would be passed over."""
    for name, part in node.args.items():
        if part and name not in known:
            what = name.strip("_").upper().replace("_", " ")
            raise SqlError("sql_not_supported", f"{what} is not supported", place_of(text, node))


def _refusal(node: exp.Expr, tree: exp.Select) -> str:
    if isinstance(node, exp.Star):
        return _of_star(node, tree)
    if isinstance(node, exp.Query) and node is not tree:
        return "a query inside a query: write one statement for each step"
    if isinstance(node, exp.Window | exp.AggFunc):
        return f"{_kind(node)}: windows and counts are not supported yet"
    if isinstance(node, exp.UDTF | exp.Explode):
        return f"{_kind(node)}: at most one record comes out for each that goes in"
    if isinstance(node, exp.Func) and (
        _function(node) in _REFUSED_FUNCTIONS or _function(node).startswith(_REFUSED_PREFIX)
    ):
        return f"{_function(node)}: calls into the server are not for statements"
    return ""


def _of_star(node: exp.Star, tree: exp.Select) -> str:
    """Why a * cannot be; "" for one that stands for itself in the list."""
    if node.args.get("replace") or node.args.get("rename"):
        return "* REPLACE: name the columns, with AS"
    here = node.parent if isinstance(node.parent, exp.Column) else node
    if not any(one is here for one in tree.expressions):
        return "* inside an expression: name the columns"
    return ""


def _function(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return name.lower()


def _kind(node: exp.Expr) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def _source(text: str, table: exp.Expr) -> Source:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise SqlError(
            "sql_not_supported",
            f"{_kind(table)} cannot be read from: name a topic or a product",
            place_of(text, table),
        )
    more = [name for name, value in table.args.items() if value and name not in _PLAIN_TABLE]
    alias = table.args.get("alias")
    if more or (alias is not None and alias.args.get("columns")):
        raise SqlError(
            "sql_not_supported",
            f"{table.sql(dialect=DIALECT)}: a source is a name, and AS another one",
            place_of(text, table),
        )
    parts = [part.name for part in table.parts]
    short = parts[-1].rpartition(".")[2]
    return Source(".".join(parts), table.alias or short, place_of(text, table))


def _joined(text: str, join: exp.Join) -> Joined:
    place = place_of(text, join.this)
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER") or join.method:
        what = " ".join(word for word in (join.method, side, kind) if word)
        raise SqlError(
            "sql_not_supported",
            f"{what} JOIN: a stream is joined with tables by JOIN or LEFT JOIN",
            place,
        )
    source = _source(text, join.this)
    on = join.args.get("on")
    using = join.args.get("using")
    if using:
        raise SqlError("sql_not_supported", "USING: write ON stream.key = table.key", place)
    # without ON the parser says TRUE, which names no key: that is told where keys are known
    return Joined(source, side == "LEFT", on or exp.true())


def _require_different(stream: Source, joined: tuple[Joined, ...]) -> None:
    seen = {stream.alias.lower()}
    for source in (one.source for one in joined):
        if source.alias.lower() in seen:
            raise SqlError(
                "sql_not_supported",
                f"two sources are called {source.alias}: give one another name, with AS",
                source.place,
            )
        seen.add(source.alias.lower())


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that all have to hold."""
    inner = node.unnest()
    if isinstance(inner, exp.And):
        yield from conjuncts(inner.left)
        yield from conjuncts(inner.right)
    else:
        yield inner
