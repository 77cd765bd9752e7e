"""What a statement compares and calculates with. Pure.

Spark would cast a string to a number on its way, and make null of what is none. Who asks for the
types of these operands can tell so before anything runs; see `spark_streams.sql.strict`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from sqlglot import exp

from spark_streams.sql.errors import Place
from spark_streams.sql.parse import DIALECT, function_name, place_of

_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif),
)
_OPERATORS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg)
_OF_NUMBERS = frozenset(
    {"abs", "bround", "cbrt", "ceil", "ceiling", "exp", "floor", "ln", "log", "log10", "log2"}
    | {"mod", "negative", "pmod", "positive", "pow", "power", "round", "safe_add", "safe_divide"}
    | {"safe_multiply", "safe_subtract", "sign", "signum", "sqrt", "try_add", "try_divide"}
    | {"try_mod", "try_multiply", "try_subtract"}
)
"""Functions that cast what they are given to a number, by our parser's names and Spark's."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression of a statement.

    sql: as Spark is given it.
    source: the statement's text.
    node: the expression in it.
    """

    sql: str
    source: str
    node: exp.Expr = field(compare=False)

    @property
    def text(self) -> str:
        """As it was written, so far as the parser keeps it."""
        return self.node.sql(dialect=DIALECT)

    @property
    def place(self) -> Place | None:
        """Where it stands."""
        return place_of(self.source, self.node)

    @property
    def literal(self) -> str | None:
        """What stands between the quotes, None for anything but a string literal."""
        bare = self.node.unnest()
        is_string = isinstance(bare, exp.RawString) or (
            isinstance(bare, exp.Literal) and bare.is_string
        )
        return str(bare.this) if is_string else None

    @property
    def probe(self) -> str:
        """What has the same type: of literals, one for all."""
        return self.sql if self.literal is None else "''"


class Purpose(Enum):
    """What operands are there for."""

    COMPARED = auto()
    CALCULATED = auto()


@dataclass(frozen=True, slots=True)
class Use:
    """Operands of one expression: two that are compared, or those of a calculation."""

    purpose: Purpose
    operands: tuple[Operand, ...]


def uses(node: exp.Expr, made: Callable[[exp.Expr], Operand]) -> Iterator[Use]:
    """Every use in an expression.

    What stands in a lambda is passed over: its names mean nothing outside of it. So are operands
    that are calculations themselves: they are numbers if their own operands are.
    """
    for one in node.walk(prune=lambda part: isinstance(part, exp.Lambda)):
        if isinstance(one, exp.Lambda):
            continue
        compared = _compared(one)
        if len(compared) > 1:
            left = made(compared[0])
            for other in compared[1:]:
                yield Use(Purpose.COMPARED, (left, made(other)))
        parts = [part for part in _calculated(one) if not isinstance(part.unnest(), _OPERATORS)]
        if parts:
            yield Use(Purpose.CALCULATED, tuple(map(made, parts)))


def _compared(node: exp.Expr) -> list[exp.Expr]:
    """What is held against what: the first against each of the others; [] for anything else."""
    if isinstance(node, _COMPARISONS):
        return [one for one in (node.this, node.args.get("expression")) if one is not None]
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.In):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Case) and node.this is not None:
        return [node.this, *(branch.this for branch in node.args["ifs"])]
    if isinstance(node, exp.DecodeCase):
        # decode(x, a, is_a, b, is_b, else)
        return [node.expressions[0], *node.expressions[1:-1:2]]
    return []


def _calculated(node: exp.Expr) -> Iterator[exp.Expr]:
    is_number = isinstance(node, exp.Func) and function_name(node) in _OF_NUMBERS
    if is_number or isinstance(node, _OPERATORS):
        yield from node.iter_expressions()
