"""Calls of functions as they are read: which one, with how many arguments, and no clock. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from spark_streams.sql.functions.allowed import FUNCTIONS, UNITS, WINDOWS, arguments, clock, refusal
from spark_streams.sql.functions.growth import require_bounded
from spark_streams.sql.functions.patterns import MATCHED, require_linear
from spark_streams.sql.functions.texts import is_checked, may_be_no_utf8
from spark_streams.sql.text import literals
from spark_streams.sql.text.syntax import Words
from spark_streams.sql.text.tree import (
    Between,
    Bytes,
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Extract,
    Field,
    In,
    Interval,
    Is,
    Item,
    Lambda,
    Like,
    Moment,
    Name,
    Node,
    Number,
    Parameter,
    Text,
)
from spark_streams.sql.text.words import Kind, Word
from spark_streams.sql.types.numbers import calculated
from spark_streams.sql.types.operands import compared

if TYPE_CHECKING:
    from spark_streams.sql.text.grammar import Expressions

MOST_LEVELS = 36
"""Levels of an expression: each is two of a message to Spark, and protobuf takes a hundred."""
_LEVELS: Mapping[type[Node], int] = {Between: 3, Case: 2, In: 2, Is: 2, Like: 4}
"""Nodes of which Spark's client makes more than one level, with NOT before them."""
_FIRST_WORD = re.compile(r"[^A-Za-z0-9]*([A-Za-z]+)")
_CLOCK_WORDS = frozenset({"now", "today", "yesterday", "tomorrow", "epoch"})
"""Spark reads them as times, where a time is expected."""
_TRIMS = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_OF_NO_RECORD = (Text, Number, Constant, Moment, Interval)
Deeper = Callable[[Callable[[], Node]], Node]


def read(expressions: "Expressions", deeper: Deeper) -> Node:
    """A call, from its name on."""
    words = expressions.words
    word = words.next()
    name = word.text.lower()
    if refused := refusal(name):
        raise _refused(words, *refused, word)
    words.expect("(")
    if name == "trim" and (words.current.upper in _TRIMS or _has_from(words)):
        return _trim(expressions, word)
    args: list[Node] = []
    if words.current.upper in ("DISTINCT", "ALL") and words.ahead(1).upper not in (",", ")", "."):
        raise words.refused(f"{words.current.text} in a call: {WINDOWS}")
    if not words.sees(")"):
        args = expressions.listed(lambda: _argument(expressions, deeper))
        if name == "struct":
            name, args = "named_struct", _named(expressions, args)
    end = words.expect(")").end
    for what in ("OVER", "FILTER", "WITHIN", "IGNORE", "RESPECT"):
        if words.sees(what) and words.ahead(1).upper in ("(", "GROUP", "NULLS"):
            raise words.refused(f"{what}: {WINDOWS}")
    if why := arguments("struct" if word.text.lower() == "struct" else name, _count(args, word)):
        raise words.refused(why, word)
    call = Call(name, tuple(args), start=word.start, end=end)
    _require_lambdas(words, call, word)
    return call


def _refused(words: Words, code: str, reason: str, word: Word) -> Exception:
    from spark_streams.sql.errors import SqlError

    return SqlError(code, reason, words.place(word))


def _count(args: list[Node], word: Word) -> int:
    return len(args) // 2 if word.text.lower() == "struct" else len(args)


def _has_from(words: Words) -> bool:
    """Whether the first argument is followed by FROM."""
    return words.ahead(1).upper == "FROM"


def _trim(expressions: "Expressions", word: Word) -> Node:
    """TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)."""
    words = expressions.words
    name = _TRIMS[words.next().upper] if words.current.upper in _TRIMS else "btrim"
    characters = None if words.sees("FROM") else expressions.value()
    words.expect("FROM")
    this = expressions.value()
    place = {"start": word.start, "end": words.expect(")").end}
    if characters is None:
        return Call(name, (this,), **place)
    args = (this, characters) if name == "btrim" else (characters, this)
    return Call(name, args, **place)


def _argument(expressions: "Expressions", deeper: Deeper) -> Node:
    """An expression or a lambda; of `struct`, with the name behind AS."""
    words, start = expressions.words, expressions.words.current.start
    params: tuple[str, ...] = ()
    if words.current.kind in (Kind.NAME, Kind.QUOTED) and words.ahead(1).upper == "->":
        params = (words.next().text,)
    elif words.sees("(") and (several := _parameters(words)):
        params = several
        for _ in range(2 * len(several) + 1):
            words.next()
    if not params:
        return expressions.expression()
    words.expect("->")
    body = deeper(expressions.expression)
    return Lambda(params, body, start=start, end=body.end)


def _parameters(words: Words) -> tuple[str, ...]:
    """Names in `(x, y) ->`; () for anything else."""
    found: list[str] = []
    at = 1
    while words.ahead(at).kind in (Kind.NAME, Kind.QUOTED):
        found.append(words.ahead(at).text)
        if words.ahead(at + 1).upper == ")":
            return tuple(found) if words.ahead(at + 2).upper == "->" else ()
        if words.ahead(at + 1).upper != ",":
            return ()
        at += 2
    return ()


def _named(expressions: "Expressions", args: list[Node]) -> list[Node]:
    """Arguments of `struct` as those of `named_struct`: each has the name of its column."""
    found: list[Node] = []
    for arg in args:
        if not isinstance(arg, Name | Field):
            raise expressions.words.refused(
                "struct takes columns: write named_struct('name', value, ...)"
            )
        name = arg.parts[-1] if isinstance(arg, Name) else arg.name
        found += (Text(name, start=arg.start, end=arg.end), arg)
    return found


def _require_lambdas(words: Words, call: Call, word: Word) -> None:
    """Raise where a lambda is, and none can be, or the other way round."""
    wanted = FUNCTIONS[call.name].takes_lambda
    for index, arg in enumerate(call.args):
        is_wanted = wanted is not None and wanted[0] == index
        if isinstance(arg, Lambda) != is_wanted:
            what = "a function such as x -> x + 1" if is_wanted else "a value, and no function,"
            raise words.refused(f"{call.name}: {what} is expected as argument {index + 1}", word)
        if isinstance(arg, Lambda) and wanted is not None and not _fits(arg, wanted[1]):
            counts = " or ".join(map(str, wanted[1]))
            raise words.refused(f"{call.name}: its function has {counts} parameters", word)
    if call.name == "named_struct":
        for name in call.args[::2]:
            if not isinstance(name, Text):
                raise words.refused("named_struct: names of fields stand in quotes", word)


def _fits(function: Lambda, counts: tuple[int, ...]) -> bool:
    names = {one.lower() for one in function.params}
    return len(names) == len(function.params) and len(names) in counts


def unit(words: Words) -> str:
    """What EXTRACT takes, as one of `UNITS`."""
    word = words.next()
    name = word.upper.removesuffix("S")
    if name not in UNITS:
        raise words.refused(f"EXTRACT takes one of {', '.join(sorted(UNITS))}", word)
    return name


def is_clock_word(literal: str) -> bool:
    """Whether Spark reads a string as the present time or day, where a time is expected."""
    # behind the word Spark takes a zone, and before it more than spaces
    word = _FIRST_WORD.match(literal)
    return word is not None and word[1].lower() in _CLOCK_WORDS


def require_sound(node: Node, refuse: Callable[[str, Node], Exception]) -> None:
    """Raise what `refuse` makes of the first thing that is not bounded, or not the record's."""
    _require_shallow(node, refuse)
    require_bounded(node, refuse)
    require_linear(node, refuse)
    for one in node.walk():
        for given in _read_as_time(one):
            if why := _clock(given):
                raise refuse(why, given)


def _require_shallow(node: Node, refuse: Callable[[str, Node], Exception]) -> None:
    below = [(node, 0)]
    while below:
        one, level = below.pop()
        level += _LEVELS.get(type(one), 1)
        level += 2 if isinstance(one, Call) and one.name in MATCHED else 0
        level += 1 if is_checked(one) and any(map(may_be_no_utf8, one.children)) else 0
        if isinstance(one, Name | Parameter):
            level += len(one.parts if isinstance(one, Name) else one.path)
        if level > MOST_LEVELS:
            raise refuse(
                f"the expression is nested too deeply, more than {MOST_LEVELS} levels: make "
                "columns of its parts in a statement before",
                node,
            )
        below += [(child, level) for child in one.children]


def _read_as_time(node: Node) -> tuple[Node, ...]:
    """The parts of a node that are taken for dates or times, or may be.

    What stands in a lambda may be, since the types of its parameters are not known here, and so
    may the key of a map.
    """
    match node:
        case Cast(this=this, to=to) if to.name in _TIMES:
            return (this,)
        case Call(name=name, args=args) if FUNCTIONS[name].of_time:
            return args
        case Extract(this=this):
            return (this,)
        case Item(index=index):
            return (index,)
        case Lambda(body=body):
            inside = list(body.walk())
            return tuple(part for one in inside for part in (*compared(one), *calculated(one)))
    return ()


def _clock(node: Node) -> str:
    """Why a part that is taken for a time is refused, "" if it is not.

    Spark reads what is the same for all records before it runs, and then 'now' is the present time,
    however it was put together.
    """
    if isinstance(node, Text):
        return clock(f"'{node.value}' as a time") if is_clock_word(node.value) else ""
    parts = list(node.walk())
    if any(isinstance(one, Name | Column | Parameter) for one in parts):
        return ""
    if not any(map(_may_be_text, parts)) or isinstance(node, _OF_NO_RECORD):
        return ""
    if isinstance(node, Cast | Call) and _is_moment(node):
        return ""
    return (
        "a text that is put together, the same for each record, where a time may be expected: "
        "write it as one literal, such as TIMESTAMP '2026-01-31 10:00:00'"
    )


def _may_be_text(node: Node) -> bool:
    """Whether a text begins here: bytes can be made one, and most functions make one of numbers."""
    match node:
        case Call(name=name):
            return not FUNCTIONS[name].of_time
        case Cast(to=to):
            return to.name == "string"
    return isinstance(node, Text | Bytes)


def _is_moment(node: Cast | Call) -> bool:
    """Whether a node is a literal that is cast, or given to a function of times, itself."""
    given = [node.this] if isinstance(node, Cast) else list(node.args)
    is_time = node.to.name in _TIMES if isinstance(node, Cast) else FUNCTIONS[node.name].of_time
    if not is_time:
        return False
    return all(not isinstance(one, Text) or literals.is_moment(one.value) for one in given[:1])
