"""JSON whose numbers keep the digits that they were written with.

Python makes the nearest double of a number with a fraction or an exponent, and writes the shortest
text of that: 123456789012345678.91 would become 1.2345678901234568e+17.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Self

_MOST_EXPONENT = 18
"""Digits of an exponent; Python's decimals have no more."""
_MOST_WHOLE = 400
"""Digits of an integer that is written with an exponent; no type of a record has more."""


class Number(float):
    """A double for whoever counts with it, and the digits that it was read from."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Raises ValueError for an exponent that nothing can have."""
        exponent = text.lower().partition("e")[2]
        if len(exponent.lstrip("+-0")) > _MOST_EXPONENT:
            raise ValueError(f"a number's exponent has more than {_MOST_EXPONENT} digits")
        found = super().__new__(cls, text)
        found.text = text
        return found

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def exact(self) -> tuple[str, int]:
        """(digits, power of ten) whose product it is: the same for equal numbers only.

        The digits have no zeros at either end, so that those of zero are "".
        """
        mantissa, _, exponent = self.text.lower().partition("e")
        whole, _, fraction = mantissa.lstrip("-").partition(".")
        digits = (whole + fraction).lstrip("0")
        stripped = digits.rstrip("0")
        if not stripped:
            return "", 0
        power = int(exponent or 0) - len(fraction) + len(digits) - len(stripped)
        return ("-" if mantissa.startswith("-") else "") + stripped, power

    def is_integer(self) -> bool:
        """Whether nothing stands behind the point, by all digits."""
        return self.exact()[1] >= 0

    def __int__(self) -> int:
        """By all digits; raises ValueError for what is no integer, or one that nothing can have."""
        digits, power = self.exact()
        if power < 0 or len(digits) + power > _MOST_WHOLE:
            raise ValueError(f"{self.text} is no integer that a record can have")
        return int((digits or "0") + "0" * power)


def parsed(text: str) -> Any:
    """A JSON value, with NaN and infinities as Python reads them.

    Raises ValueError for what is no JSON, for a name that stands twice in one object, of which
    only one would be kept, and RecursionError.
    """
    return json.loads(text, parse_float=Number, object_pairs_hook=_object)


def strictly_parsed(text: str) -> Any:
    """The same; raises ValueError also for NaN and infinities, which are no JSON."""
    return json.loads(
        text, parse_float=Number, parse_constant=_no_number, object_pairs_hook=_object
    )


def written(
    value: Any, *, indent: int | None = None, in_ascii: bool = False, allow_nan: bool = True
) -> str:
    """A value as JSON text, numbers as they were read; raises ValueError, RecursionError."""

    def plain(one: Any) -> str:
        return json.dumps(one, ensure_ascii=in_ascii, allow_nan=allow_nan)

    def parts(one: Any, line: str) -> Iterator[str]:
        inner = line + " " * (indent or 0)
        comma = f",{inner}" if indent is not None else ", "
        match one:
            case Number():
                yield one.text
            case dict() if one:
                yield "{" + (inner if indent is not None else "")
                for number, (name, below) in enumerate(one.items()):
                    yield f"{comma if number else ''}{plain(str(name))}: "
                    yield from parts(below, inner)
                yield (line if indent is not None else "") + "}"
            case list() | tuple() if one:
                yield "[" + (inner if indent is not None else "")
                for number, below in enumerate(one):
                    yield comma if number else ""
                    yield from parts(below, inner)
                yield (line if indent is not None else "") + "]"
            case _:
                yield plain(one)

    if not any(isinstance(one, Number) for one in _leaves(value)):
        return json.dumps(value, indent=indent, ensure_ascii=in_ascii, allow_nan=allow_nan)
    return "".join(parts(value, "\n"))


def too_great(value: Any) -> Number | None:
    """A number within a value that no double has room for, if there is one."""
    numbers = (one for one in _leaves(value) if isinstance(one, Number))
    return next((one for one in numbers if math.isinf(one)), None)


def _leaves(value: Any) -> Iterable[Any]:
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list | tuple):
            left.extend(one)
        else:
            yield one


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"{twice[:80]!r} stands twice in one object")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
