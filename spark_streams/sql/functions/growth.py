"""How long a value may become: bounded before anything runs, for all that a text can ask for. Pure.

All statements of a domain share one Spark server. A value of gigabytes, made of one short text,
would end it for all of them. So the number of times that a value is repeated has to stand in the
text, and what is repeated again inside of it counts as often.
"""

from collections.abc import Callable

from spark_streams.sql.functions.allowed import FUNCTIONS, Growth
from spark_streams.sql.text.tree import Call, Constant, Form, Node, Number, Text

MOST = 10_000
"""Times that a part of a record may come in a value."""
MOST_LAMBDAS = 4
"""Depth of nested lambdas. Each level takes 3.5 times as long to find what they may need."""
_EACH = 200
"""An array is taken to have so many elements, so that one in another is more than `MOST`."""
_UNKNOWN = 100
"""So often a replacement that does not stand in the text is taken to make a value longer."""
_MOST_DECIMALS = 30


def require_bounded(node: Node, refuse: Callable[[str, Node], Exception]) -> None:
    """Raise what `refuse` makes of the first part of an expression that may become too long."""
    _bounded(node, 1, 0, refuse)


def _bounded(
    node: Node, times: int, lambdas: int, refuse: Callable[[str, Node], Exception]
) -> None:
    if isinstance(node, Call):
        lambdas += FUNCTIONS[node.name].takes_lambda is not None
        if lambdas > MOST_LAMBDAS:
            raise refuse(
                f"more than {MOST_LAMBDAS} lambdas inside each other: make a column of the inner "
                "ones in a statement before",
                node,
            )
        try:
            times *= max(1, factor(node))
        except ValueError as error:
            raise refuse(str(error), node) from error
        if times > MOST:
            raise refuse(
                f"{node.name} would make a value more than {MOST} times as long as what it is made "
                "of: make a column of a part of it in a statement before",
                node,
            )
    for child in node.children:
        _bounded(child, times, lambdas, refuse)


def factor(call: Call) -> int:
    """How many times as long as its arguments a value may be.

    Raises:
        ValueError: the text does not tell, or it is too long.
    """
    match FUNCTIONS[call.name].growth:
        case Growth.COUNT:
            return _counted(call)
        case Growth.EACH:
            return _EACH
        case Growth.JOINS:
            separators = call.args[:1] if call.name == "concat_ws" else call.args[1:]
            return max(_length(one) + 1 for one in separators)
        case Growth.REPLACES:
            return _replaced(call)
        case _:
            return 1


def _counted(call: Call) -> int:
    if call.name == "sequence":
        numbers = [_whole(call, one) for one in call.args]
        step = abs(numbers[2]) if len(numbers) > 2 else 1
        count = abs(numbers[1] - numbers[0]) // max(1, step) + 1
    else:
        count = _whole(call, call.args[FUNCTIONS[call.name].counts])
    most = _MOST_DECIMALS if call.name == "format_number" else MOST
    if count > most:
        raise ValueError(f"{call.name}: {count} is more than the {most} that are allowed")
    return 1 if call.name == "format_number" else max(1, count)


def _whole(call: Call, node: Node) -> int:
    if isinstance(node, Constant) and node.value is None:
        return 0
    if not isinstance(node, Number) or node.form is not Form.INTEGER:
        raise ValueError(
            f"{call.name}: how long its value may be has to stand in the text, as a whole number"
        )
    return int(node.digits)


def _replaced(call: Call) -> int:
    if len(call.args) < 3:
        return 1
    by = _length(call.args[2])
    if call.name == "regexp_replace":
        # a pattern may match between all characters, and `$0` puts in what it has matched
        return by + 1
    what = call.args[1]
    looked_for = len(what.value) if isinstance(what, Text) else 1
    return -(-by // max(1, looked_for))


def _length(node: Node) -> int:
    return len(node.value) if isinstance(node, Text) else _UNKNOWN
