"""Expressions of a statement as a tree: every node there is. Pure, and small to pickle.

Each node tells where it stands in the text, `start` and `end` in characters; two nodes are equal
where they mean the same, wherever they stand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from spark_streams.sql.text.node import Node, with_children

__all__ = ["Node", "with_children"]


class Form(StrEnum):
    """How a number is written; Spark takes its type from that."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string literal, with its escapes resolved."""

    value: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number literal, with its sign."""

    digits: str
    form: Form


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """TRUE, FALSE or NULL."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Bytes(Node):
    """A binary literal, X'1F'."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Moment(Node):
    """A date or time literal; `value` as ISO 8601, checked."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Interval(Node):
    """An interval literal: months, or microseconds, and its first and last unit."""

    amount: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name that is not resolved yet: `column`, `source.column`, `column.field`."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column(Node):
    """A column of a source, and the path of fields below it."""

    alias: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """The parameter of a lambda around it, and the path of fields below it."""

    name: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A call of a function; `name` is a key of `functions.allowed`."""

    name: str
    args: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """The arguments."""
        return self.args


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """A function as an argument: `(x, y) -> body`."""

    params: tuple[str, ...]
    body: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The body."""
        return (self.body,)


@dataclass(frozen=True, slots=True)
class Extract(Node):
    """EXTRACT(unit FROM this); `unit` is one of `functions.UNITS`."""

    unit: str
    this: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """What the unit is taken from."""
        return (self.this,)


@dataclass(frozen=True, slots=True)
class Type:
    """A SQL type: its name as `casts` knows it, and its parameters or the types inside."""

    name: str
    numbers: tuple[int, ...] = ()
    inner: "tuple[Type, ...]" = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """CAST or, where `is_try`, TRY_CAST."""

    this: Node
    to: Type
    is_try: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        """What is cast."""
        return (self.this,)


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """An operator before its operand: `not`, `-`, `+` or `~`."""

    op: str
    this: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.this,)


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """An operator between two operands; `op` is a key of `compiled.OPERATORS`."""

    op: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """Both operands."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Is(Node):
    """IS [NOT] NULL, TRUE or FALSE."""

    this: Node
    what: bool | None
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        """What is tested."""
        return (self.this,)


@dataclass(frozen=True, slots=True)
class Between(Node):
    """[NOT] BETWEEN."""

    this: Node
    low: Node
    high: Node
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        """What is tested, and both bounds."""
        return (self.this, self.low, self.high)


@dataclass(frozen=True, slots=True)
class In(Node):
    """[NOT] IN a list."""

    this: Node
    items: tuple[Node, ...]
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        """What is tested, then the list."""
        return (self.this, *self.items)


@dataclass(frozen=True, slots=True)
class Like(Node):
    """[NOT] LIKE, ILIKE or RLIKE; `escape` is one character."""

    kind: str
    this: Node
    pattern: Node
    escape: str | None
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        """What is tested, and the pattern."""
        return (self.this, self.pattern)


@dataclass(frozen=True, slots=True)
class Case(Node):
    """CASE; `this` is None without an operand, `otherwise` without ELSE."""

    this: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None

    @property
    def children(self) -> tuple[Node, ...]:
        """The operand, the branches, and ELSE."""
        inside = [one for branch in self.branches for one in branch]
        return tuple(one for one in (self.this, *inside, self.otherwise) if one is not None)


@dataclass(frozen=True, slots=True)
class Field(Node):
    """A field of a struct, `this.name`."""

    this: Node
    name: str

    @property
    def children(self) -> tuple[Node, ...]:
        """The struct."""
        return (self.this,)


@dataclass(frozen=True, slots=True)
class Item(Node):
    """An element of an array or a map, `this[index]`."""

    this: Node
    index: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The array or map, and the index or key."""
        return (self.this, self.index)


@dataclass(frozen=True, slots=True)
class Star(Node):
    """`*` or `alias.*` in a SELECT list, without the columns of EXCEPT."""

    alias: str | None = None
    excepted: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Selected(Node):
    """One item of a SELECT list: an expression or a star, and the name behind AS."""

    this: Node
    name: str | None = None


def balanced(op: str, parts: Sequence[Node]) -> Node:
    """Parts that are joined by an operator for which their grouping is all the same."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return joined(op, balanced(op, parts[:half]), balanced(op, parts[half:]))


def joined(op: str, left: Node, right: Node) -> Node:
    """An operator between two operands, at the place of both."""
    return Binary(op, left, right, start=left.start, end=right.end)
