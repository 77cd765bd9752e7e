"""A statement's text as it is understood: destination, stream, tables, and the rest as a tree.

Pure, and without knowledge of any topic. The dialect is Spark's; sqlglot reads it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from mesh_events.errors import MeshError
from spark_streams.sql import syntax
from spark_streams.sql.errors import Place, SqlError

DIALECT = "spark"
Read = TypeVar("Read")
LONGEST = 20_000
"""Characters of a statement: it stands on the log for ever."""
_FORM = "write INSERT INTO topic SELECT ... FROM topic"
_REFUSED_FUNCTIONS = frozenset({"java_method", "reflect", "try_reflect", "mesh_lookup"})
"""What would call into the server, or read what another statement reads."""
_NOT_OF_THE_RECORD = frozenset(
    {"current_timestamp", "now", "current_date", "current_time", "localtimestamp", "rand", "randn"}
    | {"randstr"}
    | {"uniform", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id"}
    | {"input_file_name", "input_file_block_start", "input_file_block_length"}
)
"""What would be another value each time that a record is dealt with; clocks stand for a batch."""
_CLOCK_WORDS = frozenset({"now", "today", "yesterday", "tomorrow"})
"""Spark reads them as times, where a time is expected."""
_OF_TIME = re.compile(r"date|time|ts_|year|quarter|month|week|day|hour|minute|second")
_WINDOWS = frozenset({"window", "session_window", "window_time"})
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
    of_rows: what stands behind FROM is a table, `TABLE(topic)`: each change of a row gives the row
        of the result, or its end.
    """

    text: str
    destination: Source | None
    stream: Source
    joined: tuple[Joined, ...]
    select: tuple[exp.Expr, ...]
    where: exp.Expr | None
    of_rows: bool = False

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
    table = _named_table(text, source.this)
    stream = table or _source(text, source.this)
    joined = tuple(_joined(text, join) for join in tree.args.get("joins") or ())
    _require_different(stream, joined)
    if table is not None and joined:
        raise SqlError(
            "sql_not_supported",
            "TABLE(...) with JOIN: a row of the result would not follow a change of the joined row",
            joined[0].source.place,
        )
    where = tree.args.get("where")
    return Statement(
        text,
        destination,
        stream,
        joined,
        tuple(tree.expressions),
        where.this if where else None,
        table is not None,
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
    except (ParseError, TokenError) as error:
        raise syntax.told(text, error) from error
    syntax.require_whole(text, DIALECT)
    if len(found) != 1:
        what = "an empty text" if not found else f"{len(found)} statements"
        raise SqlError("sql_not_supported", f"one statement is expected, not {what}")
    return found[0]


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
            raise SqlError(
                "sql_not_supported", why, place_of(text, node) or named_place(text, node)
            )


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
    is_window = isinstance(node, exp.Func) and function_name(node) in _WINDOWS
    if is_window or isinstance(node, exp.Window | exp.AggFunc):
        return f"{_kind(node)}: windows and counts are not supported yet"
    if isinstance(node, exp.UDTF | exp.Explode):
        return f"{_kind(node)}: at most one record comes out for each that goes in"
    if isinstance(node, exp.Func) and (
        function_name(node) in _REFUSED_FUNCTIONS or function_name(node).startswith(_REFUSED_PREFIX)
    ):
        return f"{function_name(node)}: calls into the server are not for statements"
    clock = _clock(node)
    if clock:
        return (
            f"{clock}: its value is not the record's, and would be another one when the "
            "record is dealt with again after a crash: take it from the stream"
        )
    return ""


def _clock(node: exp.Expr) -> str:
    """What is another value each time, as it is called; "" for anything else."""
    if isinstance(node, exp.Func):
        name = function_name(node)
        if name in _NOT_OF_THE_RECORD:
            return name
        if isinstance(node, exp.StrToUnix) and node.this is None:
            return "to_unix_timestamp()"
    if isinstance(node, exp.Literal) and node.is_string:
        around = node.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        if is_clock_word(node.name) and _is_of_time(around):
            return f"'{node.name}' as a time"
    return ""


def is_clock_word(literal: str) -> bool:
    """Whether Spark reads a string as the present time or day, where a time is expected."""
    return literal.strip().lower().partition(" ")[0] in _CLOCK_WORDS


def _is_of_time(node: exp.Expr | None) -> bool:
    """Whether an expression takes a string for a time."""
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type(*exp.DataType.TEMPORAL_TYPES))
    return isinstance(node, exp.Func) and bool(_OF_TIME.search(function_name(node)))


def _of_star(node: exp.Star, tree: exp.Select) -> str:
    """Why a * cannot be; "" for one that stands for itself in the list."""
    if node.args.get("replace") or node.args.get("rename"):
        return "* REPLACE: name the columns, with AS"
    here = node.parent if isinstance(node.parent, exp.Column) else node
    if not any(one is here for one in tree.expressions):
        return "* inside an expression: name the columns"
    return ""


def named_place(text: str, node: exp.Expr) -> Place | None:
    """Where a function stands, of which the parser does not tell it."""
    name = function_name(node) if isinstance(node, exp.Func) else ""
    found = re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) if name else None
    return Place.of(text, found.start()) if found else None


def function_name(node: exp.Func) -> str:
    """The name of a function in lower case, our parser's where it has one of its own for it."""
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return name.lower()


def _kind(node: exp.Expr) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def _named_table(text: str, table: exp.Expr) -> Source | None:
    """The source in `TABLE(topic)`, None for anything else."""
    call = table.this if isinstance(table, exp.Table) else None
    if not isinstance(call, exp.Anonymous) or call.name.upper() != "TABLE":
        return None
    [named] = call.expressions if len(call.expressions) == 1 else [None]
    if not isinstance(named, exp.Column) or isinstance(named.this, exp.Star):
        raise SqlError(
            "sql_not_supported", "TABLE(...): name one topic or product in it", place_of(text, call)
        )
    parts = [part.name for part in named.parts]
    short = parts[-1].rpartition(".")[2]
    return Source(".".join(parts), table.alias or short, place_of(text, named))


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
    if _named_table(text, join.this) is not None:
        raise SqlError(
            "sql_not_supported", "JOIN TABLE(...): what is joined is a table, name it alone", place
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
