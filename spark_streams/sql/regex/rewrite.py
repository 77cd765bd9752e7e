"""A pattern as RE2 is to match it, for what a function reads of a match. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from spark_streams.sql.regex import ends, sets
from spark_streams.sql.regex.cursor import RegexError
from spark_streams.sql.regex.facts import firsts, has_line_end, is_empty_possible
from spark_streams.sql.regex.tree import Anchor, At, Chars, Group, Item, Regex, Repeat, Sequence


class Use(Enum):
    """What a function reads of the matches of a pattern."""

    PLACE = "place"
    """Whether there is one, and where it begins."""
    GROUP = "group"
    """A group of the first one."""
    GROUPS = "groups"
    """A group of each one."""
    COUNT = "count"
    REPLACE = "replace"
    SPLIT = "split"


_EACH = frozenset({Use.GROUPS, Use.COUNT, Use.REPLACE, Use.SPLIT})
"""Every match is read."""


@dataclass(frozen=True, slots=True)
class Written:
    """A pattern of RE2.

    `numbers` are those of its groups by their numbers in the text; the groups `kept` have a line
    terminator that is no part of a match.
    """

    pattern: str
    numbers: Mapping[int, int]
    kept: tuple[int, ...]


def rewrite(regex: Regex, use: Use, group: int = 1) -> Written:
    """The pattern for RE2; raises RegexError where none gives Spark's value.

    Args:
        regex: as it was read.
        use: what is read of a match.
        group: the group that is read, 0 for the whole match.
    """
    dollars = has_line_end(regex.alternatives)
    if use in _EACH:
        _require_each(regex, use, dollars=dollars)
    whole = dollars and group == 0 and use in (Use.GROUP, Use.GROUPS)
    if whole and len(regex.alternatives) > 1:
        raise RegexError("$ stands in one of several alternatives: write (?:a|b)$ for a$|b$")
    return _Writer(use, whole=whole).written(regex)


def _require_each(regex: Regex, use: Use, *, dollars: bool) -> None:
    """Raise RegexError where the matches behind the first one could be others."""
    if is_empty_possible(regex.alternatives):
        raise RegexError("it also matches an empty text: write a+ for a*, and (a|b) for (a|b)?")
    if not dollars:
        return
    if use is Use.SPLIT:
        raise RegexError("$ splits no text: write the pattern without it")
    for one in regex.alternatives:
        after = one and isinstance(one[-1], At) and ends.terminators(one[:-1])
        for other in regex.alternatives:
            if after and other is not one and sets.common(firsts(other), after):
                raise RegexError(
                    "behind $ another alternative may match a line terminator: "
                    "write two calls, with a pattern each"
                )


class _Writer:
    def __init__(self, use: Use, *, whole: bool) -> None:
        self._use = use
        self._whole = whole
        self._numbers = {0: 1 if whole else 0}
        self._next = 2 if whole else 1
        self._kept: list[int] = []

    def written(self, regex: Regex) -> Written:
        parts = (self._sequence(one, (), tail=True, top=True) for one in regex.alternatives)
        return Written("|".join(parts), self._numbers, tuple(self._kept))

    def _sequence(self, items: Sequence, before: Sequence, *, tail: bool, top: bool) -> str:
        found = []
        for place, item in enumerate(items):
            is_last = place == len(items) - 1
            found.append(self._item(item, (*before, *items[:place]), tail=tail and is_last))
        if top and self._whole:
            # `$` is the last item: the match is what stands before it
            return f"({''.join(found[:-1])}){found[-1]}"
        return "".join(found)

    def _item(self, item: Item, before: Sequence, *, tail: bool) -> str:
        match item:
            case Chars():
                return sets.written(item.ranges)
            case Repeat():
                return self._repeat(item)
            case Group():
                return self._group(item, before, tail=tail and self._use is Use.PLACE)
            case At(anchor=Anchor.START):
                return r"\A"
            case At(anchor=Anchor.END):
                return r"\z"
        return self._line_end(item, before, tail=tail)

    def _repeat(self, item: Repeat) -> str:
        inner = self._item(item.item, (), tail=False)
        lazy = "" if item.greedy else "?"
        match item.least, item.most:
            case 0, None:
                sign = "*"
            case 1, None:
                sign = "+"
            case 0, 1:
                sign = "?"
            case least, None:
                sign = f"{{{least},}}"
            case least, most:
                sign = f"{{{least},{most}}}"
        return f"{inner}{sign}{lazy}"

    def _group(self, item: Group, before: Sequence, *, tail: bool) -> str:
        if item.captures:
            self._numbers[len(self._numbers)] = self._next
            self._next += 1
        parts = (self._sequence(one, before, tail=tail, top=False) for one in item.alternatives)
        return f"({'' if item.captures else '?:'}{'|'.join(parts)})"

    def _line_end(self, item: At, before: Sequence, *, tail: bool) -> str:
        place = f"character {item.index + 1} of the pattern: $"
        if not tail:
            raise RegexError(
                f"{place} stands within the pattern: write it at the end, as in (a|b)$"
            )
        allowed = ends.terminators(before)
        if allowed is None:
            raise RegexError(
                f"{place} stands behind what may match a line terminator, but not as often as it "
                r"can, or only one of \r and \n: write \z for the end of the text"
            )
        found = ends.written(allowed)
        if self._use is Use.REPLACE and found:
            self._kept.append(self._next)
            self._next += 1
            found = f"({found})"
        return rf"{found}\z"
