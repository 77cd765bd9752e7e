"""What a statement compares and calculates with. Pure.

Spark would cast a string to a number on its way, and make null of what is none. Who asks for the
types of these operands can tell so before anything runs; see `spark_streams.sql.types.strict`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from spark_streams.sql.errors import Place
from spark_streams.sql.text.tree import Between, Binary, Call, Case, In, Is, Lambda, Node, Text
from spark_streams.sql.types.numbers import is_calculation, numbers

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression of a statement.

    node: as it is compiled, each column with its source.
    source: the statement's text.
    """

    node: Node
    source: str = field(compare=False)

    @property
    def text(self) -> str:
        """As it was written."""
        return self.source[self.node.start : self.node.end]

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place.of(self.source, self.node.start)

    @property
    def literal(self) -> str | None:
        """What stands between the quotes, None for anything but a string literal."""
        return self.node.value if isinstance(self.node, Text) else None

    @property
    def probe(self) -> Node:
        """What has the same type: of string literals, one for all."""
        return self.node if self.literal is None else Text("")


class Purpose(Enum):
    """What operands are there for."""

    COMPARED = auto()
    """Spark casts a string to the type of the other one."""
    LISTED = auto()
    """Compared by IN: Spark casts the other one to a string."""
    CALCULATED = auto()
    TESTED = auto()
    """By IS TRUE or IS FALSE."""


@dataclass(frozen=True, slots=True)
class Use:
    """Operands of one expression: two that are compared, those of a calculation, or what is tested.

    kind: the type that Spark casts them to; of those that are compared it is the other one's.
    """

    purpose: Purpose
    operands: tuple[Operand, ...]
    kind: str = ""


def uses(node: Node, made: Callable[[Node], Operand]) -> Iterator[Use]:
    """Every use in an expression.

    What stands in a lambda is passed over: its names mean nothing outside of it. So are operands
    that are calculations themselves: they are numbers if their own operands are.
    """
    if isinstance(node, Lambda):
        return
    parts = compared(node)
    if len(parts) > 1:
        left = made(parts[0])
        purpose = Purpose.LISTED if isinstance(node, In) else Purpose.COMPARED
        for other in parts[1:]:
            yield Use(purpose, (left, made(other)))
    for kind, operands in numbers(node).items():
        if own := [part for part in operands if not is_calculation(part)]:
            yield Use(Purpose.CALCULATED, tuple(map(made, own)), kind)
    if isinstance(node, Is) and node.what is not None:
        yield Use(Purpose.TESTED, (made(node.this),), "boolean")
    for child in node.children:
        yield from uses(child, made)


def compared(node: Node) -> list[Node]:
    """What is held against what: the first against each of the others; [] for anything else."""
    match node:
        case Binary(op=op) if op in _COMPARISONS:
            return [node.left, node.right]
        case Call(name="nullif" | "equal_null"):
            return list(node.args)
        case Between() | In():
            return list(node.children)
        case Case(this=this) if this is not None:
            return [this, *(when for when, _ in node.branches)]
        case Call(name="decode") if len(node.args) > 2:
            # decode(x, a, is_a, b, is_b, else)
            return [node.args[0], *node.args[1:-1:2]]
    return []
