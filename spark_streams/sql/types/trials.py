"""Which parts of a statement are computed when it is planned, since a constant decides. Pure.

Spark reads the charset of `encode(name, 'latin')` or the pattern of `date_format(at, 'bbbb')` for
each record, or once, when the query starts. What it does not take then makes every record a dead
letter, or ends the query at each start. So a call with such constants is computed with samples in
place of the rest, and what is the same for all records as it is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from spark_streams.sql.growing.rules import peak
from spark_streams.sql.text.tree import (
    Binary,
    Bytes,
    Call,
    Cast,
    Column,
    Constant,
    Extract,
    Form,
    Item,
    Lambda,
    Moment,
    Node,
    Number,
    Parameter,
    Text,
    Type,
    Unary,
)
from spark_streams.sql.types.operands import Operand

_COMPUTED = (Binary, Call, Cast, Extract, Item, Unary)
"""Nodes that may have no value; of others, their parts may."""
_AT = Moment("timestamp", "2026-01-31T10:00:00+00:00")
_ONE = Number("1", Form.INTEGER)
_ARRAY = Call("array", (_ONE,))
_PARSED = (Text(""), Text("yyyy"))
_MOST_STEPS = 1_000_000
"""Of what is computed, of 10 ns each; a statement has hundreds of these parts at most."""
_SAMPLES: Mapping[str, tuple[Node, ...]] = {
    "convert_timezone": (Text("UTC"), Text("UTC"), Moment("timestamp_ntz", "2026-01-31T10:00:00")),
    "date_format": (_AT, Text("yyyy")),
    # no bytes are a text in every charset, as one byte is none in UTF-16
    "decode": (Bytes(b""), Text("UTF-8")),
    "encode": (Text("a"), Text("UTF-8")),
    "from_unixtime": (_ONE, Text("yyyy")),
    "from_utc_timestamp": (_AT, Text("UTC")),
    "slice": (_ARRAY, _ONE, _ONE),
    "split_part": (Text("a"), Text("b"), _ONE),
    "to_date": _PARSED,
    "to_timestamp": _PARSED,
    "to_timestamp_ltz": _PARSED,
    "to_timestamp_ntz": _PARSED,
    "to_unix_timestamp": _PARSED,
    "to_utc_timestamp": (_AT, Text("UTC")),
    "try_to_date": _PARSED,
    "try_to_timestamp": _PARSED,
    "unix_timestamp": _PARSED,
}
"""Function -> arguments that it takes; with another number of them it is not computed."""
_FIRST = (_ARRAY, _ONE)
_BIT = Number("0", Form.INTEGER)
_FORMATTED = dict.fromkeys(("date", "timestamp", "timestamp_ntz"), (_AT, Text("yyyy")))
_BITS = {name: (Cast(_ONE, Type(name)), _BIT) for name in ("tinyint", "smallint", "int", "bigint")}
_OF_TYPES: Mapping[str, Mapping[str, tuple[Node, ...]]] = {
    "bit_get": _BITS,
    "element_at": {"array": _FIRST},
    "getbit": _BITS,
    "to_char": _FORMATTED,
    "to_varchar": _FORMATTED,
    "try_element_at": {"array": _FIRST},
}
"""Function -> type of its first argument -> the same, where the type decides what is taken."""


def trials(node: Node, made: Callable[[Node], Operand]) -> Iterator[Operand]:
    """Every part of an expression to compute, each as large as can be."""
    if isinstance(node, _COMPUTED) and _is_constant(node):
        yield made(node)
        return
    if isinstance(node, Call) and any(map(_is_constant, node.args)):
        is_known = len(node.args) == len(_SAMPLES.get(node.name, ()))
        if is_known or node.name == "map" or typed(node) is not None:
            yield made(node)
    for child in node.children:
        yield from trials(child, made)


def typed(node: Node) -> Node | None:
    """The argument on whose type it depends what is computed, None if it does not.

    The type of what a lambda's parameter gives is not known, and it is not computed.
    """
    if not isinstance(node, Call) or node.name not in _OF_TYPES or _is_constant(node):
        return None
    first = node.args[0]
    return None if any(isinstance(one, Parameter) for one in first.walk()) else first


def trial(node: Node, kind: str) -> Node | None:
    """What to compute for one of `trials`; it has a value unless its constants are wrong.

    Args:
        node: one of `trials`.
        kind: what Spark calls the type of `typed(node)`, "" without one.

    Returns:
        A node without columns and parameters, None where there is nothing to compute, or where
        that would take long.
    """
    found = _sampled(node, kind)
    return found if found is not None and peak([found]).steps.at(0) <= _MOST_STEPS else None


def _sampled(node: Node, kind: str) -> Node | None:
    if not isinstance(node, Call) or _is_constant(node):
        return node
    if node.name == "map":
        return _keys(node)
    samples = _SAMPLES.get(node.name)
    if samples is None:
        samples = _OF_TYPES[node.name].get(kind.partition("<")[0])
    if samples is None:
        return None
    pairs = zip(node.args, samples, strict=True)
    return replace(node, args=tuple(one if _is_constant(one) else sample for one, sample in pairs))


def _keys(node: Call) -> Node:
    """A map with those of the keys that are constant."""
    found: list[Node] = []
    for key in node.args[::2]:
        found += [key, Constant(None)] if _is_constant(key) else []
    return replace(node, args=tuple(found))


def _is_constant(node: Node) -> bool:
    """Whether it is the same for all records, without a lambda."""
    return not any(isinstance(one, Column | Parameter | Lambda) for one in node.walk())
