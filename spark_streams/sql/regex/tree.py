"""A regular expression as a tree: the syntax that is allowed, and nothing else. Pure."""

from dataclasses import dataclass
from enum import Enum

from spark_streams.sql.regex.sets import Ranges


class Anchor(Enum):
    """A place between characters."""

    START = "start"
    END = "end"
    r"""`\z`: behind the last character."""
    LINE_END = "line end"
    """`$`: there, or before a line terminator that the text ends with."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class At:
    """An anchor, and its index in the pattern."""

    anchor: Anchor
    index: int


@dataclass(frozen=True, slots=True)
class Group:
    """Alternatives in parentheses; none of them is empty."""

    alternatives: "tuple[Sequence, ...]"
    captures: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """`item` from `least` to `most` times, None for no bound."""

    item: "Chars | Group"
    least: int
    most: int | None
    greedy: bool


Item = Chars | At | Group | Repeat
Sequence = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Regex:
    """A whole pattern, and how many groups of it capture."""

    alternatives: tuple[Sequence, ...]
    groups: int
