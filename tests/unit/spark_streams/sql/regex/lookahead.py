"""A pattern as Python's `re` matches it: like Java, it goes back, and it can look ahead."""

import re

from spark_streams.sql.regex.sets import Ranges
from spark_streams.sql.regex.tree import Anchor, At, Chars, Group, Item, Regex, Repeat

_LINE_END = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]\Z)|\Z)"  # as `Pattern.Dollar`
_ANCHORS = {Anchor.START: r"\A", Anchor.END: r"\Z", Anchor.LINE_END: _LINE_END}


def model(regex: Regex) -> re.Pattern[str]:
    """The pattern with Java's meaning of `$`."""
    return re.compile(_alternatives(regex.alternatives))


def _alternatives(alternatives: tuple[tuple[Item, ...], ...]) -> str:
    return "|".join("".join(map(_item, one)) for one in alternatives)


def _item(item: Item) -> str:
    match item:
        case Chars():
            return _set(item.ranges)
        case At():
            return _ANCHORS[item.anchor]
        case Group():
            return f"({'' if item.captures else '?:'}{_alternatives(item.alternatives)})"
        case Repeat():
            most = "" if item.most is None else item.most
            return f"{_item(item.item)}{{{item.least},{most}}}{'' if item.greedy else '?'}"


def _set(ranges: Ranges) -> str:
    return "[" + "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges) + "]"
