"""What a value needs at most, from what it is made of: a rule for each node and function. Pure."""

from collections.abc import Callable, Mapping, Sequence

from spark_streams.sql.functions.patterns import MATCHED
from spark_streams.sql.growing.amount import Amount, Need, total
from spark_streams.sql.growing.names import HIDING, NUMBERS, OF_TEXTS, SCALARS, SEARCHES, TWICE
from spark_streams.sql.text.tree import (
    Binary,
    Call,
    Case,
    Cast,
    Field,
    Item,
    Like,
    Node,
    Number,
    Text,
    Type,
)

SCALAR = 64
"""Bytes of a number, a date, or a boolean, also as text."""
_LEVENSHTEIN = 8
"""Steps for each pair of characters, against one for a byte that is copied."""
_WORD = 8
"""Bytes that are compared in one step."""
_COMPARED = 16
"""Steps for each pair of elements that are compared, which may be structs."""
_TRIMMED = 4
"""Steps for each pair of characters where the ends of a text are looked for."""
_TEXT_OF_ELEMENT = 32
"""Bytes that an element has in text besides its own."""
_LONGEST_PART = 100_000
"""Characters that `left` and the like are told to take; one that takes more takes mostly all."""
Made = tuple[Amount, Amount, Amount]
"""(bytes, elements, steps besides one for each byte that is read or written)."""


def made(node: Node, parts: Sequence[Need]) -> Made:
    """What a node without a lambda makes of its parts."""
    size, elements = total(one.size for one in parts), total(one.elements for one in parts)
    one, nothing = Amount.of(1), Amount()
    match node:
        case Call():
            return _called(node, parts, size, elements)
        case Binary(op="||"):
            return size, elements, nothing
        case Cast():
            return _cast(node.to, parts[0])
        case Case() | Field():
            return _largest(parts)
        case Item():
            return parts[0].size, parts[0].elements, parts[0].elements
        case Like():
            length = len(node.pattern.value) if isinstance(node.pattern, Text) else 1
            return Amount.of(SCALAR), one, parts[0].size * length
    return Amount.of(SCALAR), one, nothing


def _largest(parts: Sequence[Need]) -> Made:
    size, elements = Amount.of(SCALAR), Amount.of(1)
    for part in parts:
        size, elements = size.most(part.size), elements.most(part.elements)
    return size, elements, Amount()


def _cast(to: Type, this: Need) -> Made:
    if to.name in ("string", "binary"):
        return this.size + this.elements * _TEXT_OF_ELEMENT + SCALAR, Amount.of(1), Amount()
    if to.name == "decimal":
        return Amount.of(SCALAR), Amount.of(1), _digits(this)
    steps = _digits(this) if _has_decimals(to) else Amount()
    return this.size + this.elements * SCALAR + SCALAR, this.elements + 1, steps


def _digits(this: Need) -> Amount:
    """Java reads the digits of a decimal in quadratic time, on a server without `PatchSpark`."""
    return _per_word(this.size * this.size)


def _has_decimals(to: Type) -> bool:
    return to.name == "decimal" or any(map(_has_decimals, to.inner))


def _per_word(amount: Amount) -> Amount:
    return amount.replaced(lambda term, factor: Amount({term: -(-factor // _WORD)}))


def _called(node: Call, parts: Sequence[Need], size: Amount, elements: Amount) -> Made:
    rule = _OF_FUNCTIONS.get(node.name)
    if rule is not None:
        return rule(node, parts)
    nothing, first = Amount(), parts[0] if parts else Need()
    steps = nothing
    if node.name in SEARCHES:
        by = parts[1].size if len(parts) > 1 else nothing
        steps = _per_word(first.size * by)
    if node.name in MATCHED and isinstance(node.args[1], Text):
        steps = first.size * (4 * len(node.args[1].value) + 4)
    if node.name in TWICE and not all(map(_of_texts, node.args)):
        steps = elements * elements * _COMPARED
    if node.name in HIDING:
        return _largest(parts)
    if node.name in NUMBERS:
        return Amount.of(SCALAR), Amount.of(1), _cast(Type(node.name), first)[2]
    if node.name in SCALARS:
        return Amount.of(SCALAR), Amount.of(1), steps
    return size + SCALAR, elements + len(parts), steps


def _of_texts(node: Node) -> bool:
    """Whether an array is known to be one of strings or numbers, which Spark hashes."""
    return isinstance(node, Call) and node.name in OF_TEXTS


def _literal(node: Node) -> int:
    """A whole number that stands in the text, 0 for NULL; `growth` refuses anything else."""
    return max(0, int(node.digits)) if isinstance(node, Number) else 0


def _repeat(node: Call, parts: Sequence[Need]) -> Made:
    times = _literal(node.args[1])
    is_array = node.name == "array_repeat"
    elements = parts[0].elements * times + times if is_array else Amount.of(1)
    return parts[0].size * times, elements, Amount()


def _pad(node: Call, parts: Sequence[Need]) -> Made:
    del parts
    length = _literal(node.args[0 if node.name == "space" else 1])
    return Amount.of(4 * length), Amount.of(1), Amount()


def _part(node: Call, parts: Sequence[Need]) -> Made:
    """A part of a text, whose length may stand in the text; else it is bounded by the text."""
    last = node.args[-1]
    is_bounded = isinstance(last, Number) and (node.name in ("left", "right") or len(parts) > 2)
    is_bounded = is_bounded and _literal(last) <= _LONGEST_PART
    size = Amount.of(4 * _literal(last)) if is_bounded else parts[0].size
    return size, Amount.of(1), Amount()


def _sequence(node: Call, parts: Sequence[Need]) -> Made:
    del parts
    from spark_streams.sql.functions.growth import factor

    number = factor(node)
    return Amount.of(_WORD * number), Amount.of(number), Amount()


def _joined(node: Call, parts: Sequence[Need]) -> Made:
    if node.name == "concat_ws":
        between, given = parts[0].size, list(parts[1:])
    else:
        between, given = total(one.size for one in parts[1:]), [parts[0]]
    gaps = total(one.elements for one in given) + len(given)
    return total(one.size for one in given) + gaps * between, Amount.of(1), Amount()


def _replaced(node: Call, parts: Sequence[Need]) -> Made:
    this = parts[0].size
    pattern = node.args[1]
    looked_for = len(pattern.value.encode()) if isinstance(pattern, Text) else 1
    by = parts[2].size if len(parts) > 2 else Amount()
    if node.name == "regexp_replace":
        # a pattern may match between all characters; `$0` puts in what it has matched
        copies = "$" in node.args[2].value if isinstance(node.args[2], Text) else True
        grown = this + (this + 1) * by + (this * by if copies else Amount())
        return grown, Amount.of(1), this * (4 * looked_for + 4)
    if isinstance(node.args[-1], Text) and len(parts) > 2:
        times = -(-len(node.args[-1].value.encode()) // max(1, looked_for))
        grown = this * max(1, times)
    else:
        grown = this + this * by
    return grown, Amount.of(1), _per_word(this * parts[1].size)


def _split(node: Call, parts: Sequence[Need]) -> Made:
    _, _, steps = _called(Call("regexp_like", node.args[:2]), parts[:2], Amount(), Amount())
    return parts[0].size, parts[0].size + 1, steps


def _pairs(node: Call, parts: Sequence[Need]) -> Made:
    del node
    return parts[0].size, parts[0].size * 2 + 2, Amount()


def _distance(node: Call, parts: Sequence[Need]) -> Made:
    del node
    steps = parts[0].size * parts[1].size * _LEVENSHTEIN
    return Amount.of(SCALAR), Amount.of(1), steps


def _trimmed(node: Call, parts: Sequence[Need]) -> Made:
    del node
    searched = parts[0].size * (parts[1].size if len(parts) > 1 else Amount())
    return parts[0].size, Amount.of(1), searched * _TRIMMED


def _times(number: int) -> Callable[[Call, Sequence[Need]], Made]:
    def made(node: Call, parts: Sequence[Need]) -> Made:
        del node
        return total(one.size for one in parts) * number + SCALAR, Amount.of(1), Amount()

    return made


def json(node: Node, parts: Sequence[Need], names: int) -> Made:
    """Each leaf of a value has its field's name before it, which is no part of the value."""
    longest = max((len(one.value) for one in node.walk() if isinstance(one, Text)), default=0)
    per_element = names + 6 * longest + _TEXT_OF_ELEMENT
    size = parts[0].size * 6 + parts[0].elements * per_element + per_element
    return size, Amount.of(1), Amount()


_OF_FUNCTIONS: Mapping[str, Callable[[Call, Sequence[Need]], Made]] = {
    **dict.fromkeys(("repeat", "array_repeat"), _repeat),
    **dict.fromkeys(("left", "right", "substr", "substring"), _part),
    **dict.fromkeys(("lpad", "rpad", "space"), _pad),
    **dict.fromkeys(("concat_ws", "array_join"), _joined),
    **dict.fromkeys(("replace", "regexp_replace"), _replaced),
    **dict.fromkeys(("split", "regexp_extract_all"), _split),
    **dict.fromkeys(("str_to_map", "json_object_keys"), _pairs),
    **dict.fromkeys(("btrim", "ltrim", "rtrim", "trim"), _trimmed),
    **dict.fromkeys(("translate", "mask", "lower", "lcase", "upper", "ucase"), _times(4)),
    **dict.fromkeys(("hex", "base64", "url_encode", "initcap", "encode", "decode"), _times(4)),
    "make_valid_utf8": _times(4),
    **dict.fromkeys(("date_format", "from_unixtime", "to_char", "to_varchar"), _times(16)),
    "sequence": _sequence,
    "levenshtein": _distance,
}
