"""Expressions as Spark's own grammar has them, as far as a statement may use them. Pure.

The order in which operators bind is that of `SqlBaseParser.g4`: `a = b IS NULL` is `(a = b) IS
NULL`, and `||` binds as `+` does. What is read here is calculated: nothing becomes text again.
"""

from collections.abc import Callable
from dataclasses import replace

from spark_streams.sql.functions import calls, casts
from spark_streams.sql.text import constants, predicates
from spark_streams.sql.text.syntax import Words
from spark_streams.sql.text.tree import (
    Between,
    Bytes,
    Case,
    Cast,
    Extract,
    Field,
    In,
    Item,
    Name,
    Node,
    Text,
    Unary,
    balanced,
    joined,
)
from spark_streams.sql.text.words import DEEPEST, Kind, Word

MOST_OPERATORS = 32
"""Operators in a row: each is a level of what Spark is sent, see `calls.MOST_LEVELS`."""
_COMPARISONS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">"}
_COMPARISONS |= {">=": ">=", "<=>": "<=>"}
_BINDS = {
    **dict.fromkeys(_COMPARISONS, 1),
    "|": 2,
    "^": 3,
    "&": 4,
    "<<": 5,
    ">>": 5,
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("*", "/", "%", "DIV"), 7),
}
"""Operator between two operands -> how closely it binds."""
_CLOSEST = 8
QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE"})
"""What begins a query in parentheses."""
_BEHIND = frozenset(
    {"AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV"}
)
"""Operators that are names, behind a column."""
_NO_VALUE = frozenset(
    {"SELECT", "FROM", "WHERE", "JOIN", "ON", "AS", "AND", "OR", "IN", "LIKE", "RLIKE", "BETWEEN"}
    | {"IS", "WHEN", "THEN", "ELSE", "END", "GROUP", "ORDER", "HAVING", "UNION", "INTO", "USING"}
    | {"DISTINCT", "ALL", "NOT", "INNER", "CROSS", "DIV"}
)
"""Keywords that are no columns unless they are quoted."""
SUBQUERY = "a query inside a query: write one statement for each step"


def begins_query(words: Words) -> bool:
    """Whether a query stands here, and no column or function of the same name."""
    word, after = words.current.upper, words.ahead(1)
    if word not in QUERIES:
        return False
    if word == "SELECT":
        return after.upper not in (",", ")", ".")
    if word == "VALUES":
        return after.upper == "(" or after.kind in (Kind.NUMBER, Kind.STRING, Kind.BYTES)
    return after.kind is Kind.QUOTED or (after.kind is Kind.NAME and after.upper not in _BEHIND)


class Expressions:
    """Reads expressions from the words of a text."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self._depth = 0

    def expression(self) -> Node:
        """A whole expression, with AND, OR and NOT."""
        return self._chained("OR", lambda: self._chained("AND", self._negated))

    def _chained(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.words.takes(word):
            parts.append(part())
        return balanced(word.lower(), parts)

    def _negated(self) -> Node:
        if not (self.words.sees("NOT") or self.words.sees("!")):
            return self._predicate()
        start = self.words.next().start
        inner = self._deeper(self._negated)
        return Unary("not", inner, start=start, end=inner.end)

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.words.refused(
                f"the text is nested too deeply here, more than {DEEPEST} levels"
            )
        found = read()
        self._depth -= 1
        return found

    def _predicate(self) -> Node:
        """A value, and at most one of IS, IN, LIKE, BETWEEN behind it."""
        this, words = self.value(), self.words
        if words.takes("IS"):
            return predicates.is_what(words, this, self.value)
        negated = words.sees("NOT") and words.ahead(1).upper in {"IN", "BETWEEN", *predicates.LIKES}
        if negated:
            words.next()
        if words.takes("BETWEEN"):
            between, low = words.before, self.value()
            if not words.takes("AND"):
                raise words.wrong("BETWEEN has two bounds: BETWEEN 1 AND 2", between)
            high = self.value()
            return Between(this, low, high, negated, start=this.start, end=high.end)
        if words.takes("IN"):
            return self._in(this, negated=negated)
        if words.current.upper in predicates.LIKES:
            return predicates.like(words, this, self.value, negated=negated)
        return this

    def _in(self, this: Node, *, negated: bool) -> Node:
        words = self.words
        if not words.sees("("):
            raise words.wrong("IN is followed by values in parentheses: IN (1, 2)", words.before)
        before = words.before
        words.next()
        if begins_query(words):
            raise words.refused(SUBQUERY)
        if words.sees(")"):
            raise words.wrong("IN is followed by values in parentheses: IN (1, 2)", before)
        items = self.listed(self.expression)
        return In(this, tuple(items), negated, start=this.start, end=words.expect(")").end)

    def value(self, least: int = 0) -> Node:
        """An expression of operators that bind more closely than `least`."""
        found, count = self._prefixed(), 0
        while (binds := _BINDS.get(self.words.current.upper, 0)) > least:
            word = self.words.next()
            count += 1
            if count > MOST_OPERATORS:
                raise self.words.refused(
                    f"nested too deeply: more than {MOST_OPERATORS} operators in a row, make "
                    "columns of their parts in a statement before",
                    word,
                )
            right = self.value(binds)
            op = _COMPARISONS.get(word.text, word.text.lower())
            found = joined(op, found, right)
        return found

    def _prefixed(self) -> Node:
        words, word = self.words, self.words.current
        if word.upper not in ("-", "+", "~"):
            return self._postfixed(self._primary())
        words.next()
        if word.text == "-" and words.current.kind is Kind.NUMBER:
            digits = words.next()
            if words.current.upper in (".", "[", "::"):
                raise words.refused("a number with a sign: put it into parentheses")
            return constants.number(words, f"-{digits.text}", word.start, digits.end)
        inner = self._deeper(self._prefixed)
        return Unary(word.text, inner, start=word.start, end=inner.end)

    def _postfixed(self, this: Node) -> Node:
        words = self.words
        for _ in range(DEEPEST):
            if words.takes("["):
                index = self._deeper(self.value)
                this = Item(this, index, start=this.start, end=words.expect("]").end)
            elif words.sees(".") and not isinstance(this, Name):
                words.next()
                this = Field(this, self.identifier().text, start=this.start, end=words.before.end)
            elif words.takes("::"):
                kind = casts.read(words)
                this = Cast(this, kind, start=this.start, end=words.before.end)
            else:
                return this
        raise words.refused(f"more than {DEEPEST} of these in a row")

    def _primary(self) -> Node:
        words, word = self.words, self.words.current
        place = {"start": word.start, "end": word.end}
        if word.kind is Kind.STRING:
            words.next()
            if words.current.kind is Kind.STRING:
                raise words.unexpected()
            return Text(word.text, **place)
        if word.kind is Kind.BYTES:
            words.next()
            return Bytes(bytes.fromhex(word.text), **place)
        if word.kind is Kind.NUMBER:
            words.next()
            return constants.number(words, word.text, word.start, word.end)
        if word.upper == "(":
            return self._in_parentheses()
        if word.upper == "*":
            raise words.refused("* inside an expression: name the columns")
        if word.kind is Kind.NAME and (read := self._special(word)) is not None:
            return read()
        return self._name()

    def _in_parentheses(self) -> Node:
        start = self.words.next().start
        if begins_query(self.words):
            raise self.words.refused(SUBQUERY)
        found = self._deeper(self.expression)
        if self.words.sees(","):
            raise self.words.refused("several values in parentheses: write STRUCT(...)")
        return _placed(found, start, self.words.expect(")").end)

    def _special(self, word: Word) -> Callable[[], Node] | None:
        """What reads a word that is a part of the grammar, None for any other name."""
        words, name = self.words, word.upper
        if name in constants.CONSTANTS and words.ahead(1).upper not in ("(", "."):
            return lambda: constants.constant(words)
        if name in constants.TIMES and words.ahead(1).kind is Kind.STRING:
            return lambda: constants.moment(words)
        if name == "INTERVAL" and words.ahead(1).upper not in ("", ",", ")", "FROM", "AS", "."):
            return lambda: constants.interval(words)
        if name == "INTERVAL" and words.ahead(1).kind in (Kind.NUMBER, Kind.STRING):
            return lambda: constants.interval(words)
        if name == "CASE":
            return self._case
        if words.ahead(1).upper == "(":
            return {"CAST": self._cast, "TRY_CAST": self._cast, "EXTRACT": self._extract}.get(name)
        return None

    def _case(self) -> Node:
        words, start = self.words, self.words.next().start
        this = None if words.sees("WHEN") else self._deeper(self.expression)
        branches = []
        while words.takes("WHEN"):
            condition = self._deeper(self.expression)
            words.expect("THEN")
            branches.append((condition, self._deeper(self.expression)))
        if not branches:
            raise words.unexpected()
        otherwise = self._deeper(self.expression) if words.takes("ELSE") else None
        end = words.expect("END").end
        return Case(this, tuple(branches), otherwise, start=start, end=end)

    def _cast(self) -> Node:
        words, word = self.words, self.words.next()
        words.expect("(")
        this = self._deeper(self.expression)
        words.expect("AS")
        kind = casts.read(words)
        if words.sees("FORMAT"):
            raise words.refused("CAST with FORMAT: write to_date(..., format)")
        is_try = word.upper == "TRY_CAST"
        return Cast(this, kind, is_try, start=word.start, end=words.expect(")").end)

    def _extract(self) -> Node:
        words, start = self.words, self.words.next().start
        words.expect("(")
        unit = calls.unit(words)
        words.expect("FROM")
        this = self._deeper(self.value)
        return Extract(unit, this, start=start, end=words.expect(")").end)

    def _name(self) -> Node:
        words, first = self.words, self.words.current
        if words.ahead(1).upper == "(" and first.kind in (Kind.NAME, Kind.QUOTED):
            return calls.read(self, self._deeper)
        if first.upper in _NO_VALUE:
            raise words.unexpected()
        parts = [self.identifier().text]
        while words.takes("."):
            if words.sees("*"):
                raise words.refused("* inside an expression: name the columns", first)
            parts.append(self.identifier().text)
            if words.sees("("):
                raise words.refused(f"{'.'.join(parts)}: a function has one name", first)
        if words.sees("=>"):
            raise words.refused("arguments have no names, only an order", first)
        return Name(tuple(parts), start=first.start, end=words.before.end)

    def identifier(self) -> Word:
        """A name, quoted or not."""
        if self.words.current.kind not in (Kind.NAME, Kind.QUOTED):
            raise self.words.unexpected()
        return self.words.next()

    def listed(self, read: Callable[[], Node]) -> list[Node]:
        """One or more, with commas between them."""
        found = [self._deeper(read)]
        while self.words.takes(","):
            found.append(self._deeper(read))
        return found


def _placed(node: Node, start: int, end: int) -> Node:
    return replace(node, start=start, end=end)
