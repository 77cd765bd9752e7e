"""Which operands Spark casts to a number, and to which one. Pure.

Asked of Spark's own analyzer: each of the functions that a statement may call, with a string in
each place. What Spark refuses by itself, and what is a cast by its name (`int(s)`), is not here.
"""

from collections.abc import Iterator, Mapping

from spark_streams.sql.functions.allowed import FUNCTIONS
from spark_streams.sql.text.tree import Binary, Call, Node, Unary

_OPERATORS = frozenset({"+", "-", "*", "/", "%", "div"})
_SHIFTS = frozenset({"<<", ">>"})
_ARITHMETICAL = frozenset(
    {"abs", "bround", "cbrt", "ceil", "ceiling", "exp", "floor", "ln", "log", "log10", "log2"}
    | {"mod", "negative", "pmod", "positive", "pow", "power", "round"}
    | {"sign", "signum", "sqrt", "try_add", "try_divide"}
    | {"try_mod", "try_multiply", "try_subtract"}
)
"""Functions that calculate, some of them also with times and intervals."""
_OF_NUMBERS = {
    "double": "acos acosh asin asinh atan atan2 atanh cos cosh cot csc degrees expm1 hypot isnan "
    "log1p nanvl nullifzero radians rint sec sin sinh tan tanh",
    "int": "date_from_unix_date factorial make_date shiftleft shiftright shiftrightunsigned space",
    "bigint": "bin char chr",
}
"""Type -> functions that cast all of their arguments to it."""
_AT = {
    "int": "add_months:1 bit_get:1 conv:1,2 elt:0 get:1 getbit:1 left:1 levenshtein:2 locate:2 "
    "lpad:1 make_timestamp:0,1,2,3,4 make_timestamp_ntz:0,1,2,3,4 position:2 regexp_extract:2 "
    "regexp_extract_all:2 repeat:1 right:1 rpad:1 sha2:1 slice:1,2 split:2 split_part:2 "
    "substr:1,2 substring:1,2 substring_index:2",
    "bigint": "from_unixtime:0 width_bucket:3",
    "double": "width_bucket:0,1,2",
    "decimal(16, 6)": "make_timestamp:5 make_timestamp_ntz:5",
    "decimal(38, 18)": "to_char:0 to_varchar:0",
}
"""Type -> functions that cast these of their arguments to it, by their index."""


def _placed() -> Iterator[tuple[str, int, str]]:
    """Each argument that becomes a number: function, index, type."""
    for name in _ARITHMETICAL:
        yield from ((name, at, "double") for at in range(FUNCTIONS[name].most))
    for kind, names in _OF_NUMBERS.items():
        for name in names.split():
            yield from ((name, at, kind) for at in range(FUNCTIONS[name].most))
    for kind, names in _AT.items():
        for name, _, places in (word.partition(":") for word in names.split()):
            yield from ((name, int(at), kind) for at in places.split(","))


ARGUMENTS: Mapping[tuple[str, int], str] = {(name, at): kind for name, at, kind in _placed()}
"""Function and index of an argument -> the number that Spark makes of a string there."""


def is_calculation(node: Node) -> bool:
    """Whether a node is calculated by an operator."""
    if isinstance(node, Unary):
        return node.op in ("-", "+")
    return isinstance(node, Binary) and node.op in _OPERATORS


def calculated(node: Node) -> tuple[Node, ...]:
    """The operands of a calculation, which may be with times; () for anything else."""
    is_call = isinstance(node, Call) and node.name in _ARITHMETICAL
    return node.children if is_call or is_calculation(node) else ()


def numbers(node: Node) -> Mapping[str, list[Node]]:
    """The operands that Spark casts to a number, by the type that it casts them to."""
    found: dict[str, list[Node]] = {}
    if isinstance(node, Call):
        for at, one in enumerate(node.args):
            if kind := ARGUMENTS.get((node.name, at)):
                found.setdefault(kind, []).append(one)
    elif is_calculation(node):
        found["double"] = list(node.children)
    elif isinstance(node, Binary) and node.op in _SHIFTS:
        found["int"] = [node.left, node.right]
    return found
