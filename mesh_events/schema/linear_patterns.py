"""Regular expressions of domains, matched in time that is linear in the string. Pure.

The engine is RE2: in Python by `re2`, in Spark by re2j (`spark_streams/jvm/Patterns.scala`). What
the two read differently is refused, so that a string has one verdict (decision 0024). `re` and
Java's regular expressions take exponential time for `(a+)+$` and are not used for these patterns.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import re2

LONGEST_PATTERN = 1_000
"""Characters of a pattern."""
MOST_INSTRUCTIONS = 2_000
"""Instructions of a pattern's program: matching takes at most so many steps for each byte."""
LONGEST_TEXT = 65_536
"""Bytes in UTF-8 of a string that is matched; a longer one does not match."""
_LONGEST_REASON = 100
_NEXT = "write it in the syntax of RE2: https://github.com/google/re2/wiki/Syntax"
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\x\{[0-9A-Fa-f]+\}|\\.|\[\^?+\]?+(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*+\]"
    r"|\{[0-9]+(?:,[0-9]*)?\}|\(\?[a-zA-Z-]*+|.",
    re.DOTALL,
)
"""A quotation, an escape, a class, a repetition, the begin of a group, or one character."""
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_UNICODE = frozenset({r"\p", r"\P"})
_NUMBERED = frozenset(rf"\{one}" for one in "x01234567")


class PatternError(ValueError):
    """A pattern that is not matched; the text is the reason and the next step."""


class LinearPattern:
    """A pattern of a domain.

    Raises PatternError for what is none, is not RE2's, or has more than `longest` characters or
    `most` instructions.
    """

    def __init__(
        self, pattern: str, longest: int = LONGEST_PATTERN, most: int = MOST_INSTRUCTIONS
    ) -> None:
        _require_short(pattern, longest)
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(pattern, options)
        except re2.error as error:
            raise PatternError(f"{_reason(error)}: {_NEXT}") from error
        _require_portable(pattern)
        if self._compiled.programsize > most:
            raise PatternError(
                f"it has {self._compiled.programsize} instructions, at most {most} "
                "are allowed: repeat less in it"
            )

    @property
    def groups(self) -> int:
        """The number of its capturing groups."""
        return int(self._compiled.groups)

    def matches(self, text: str) -> bool:
        """Whether the whole string matches; False for more than `LONGEST_TEXT` bytes."""
        found = _encoded(text)
        return found is not None and self._compiled.fullmatch(found) is not None

    def is_in(self, text: str) -> bool:
        """Whether a part of the string matches; False for more than `LONGEST_TEXT` bytes."""
        found = _encoded(text)
        return found is not None and self._compiled.search(found) is not None


@lru_cache(maxsize=256)
def linear_pattern(pattern: Any) -> LinearPattern:
    """The pattern, compiled once; raises PatternError also for what is no string."""
    if not isinstance(pattern, str):
        raise PatternError("it is no string: write a regular expression")
    return LinearPattern(pattern)


def _encoded(text: str) -> bytes | None:
    """UTF-8; None for a string that is too long, or has half of a surrogate pair."""
    if len(text) > LONGEST_TEXT:
        return None
    try:
        found = text.encode()
    except UnicodeEncodeError:
        return None
    return found if len(found) <= LONGEST_TEXT else None


def _reason(error: Exception) -> str:
    """The engine's own words, which are bytes."""
    [*_, words] = error.args or ("it is no regular expression",)
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


def _require_short(pattern: str, longest: int) -> None:
    """Raise PatternError for a pattern that is too long, or is no UTF-8."""
    if len(pattern) > longest:
        raise PatternError(
            f"it has {len(pattern)} characters, at most {longest} are allowed: shorten it"
        )
    if any("\ud800" <= one <= "\udfff" for one in pattern):
        raise PatternError("it has half of a surrogate pair: write whole characters")


def _require_portable(pattern: str) -> None:
    """Raise PatternError for a pattern that re2j reads differently."""
    tokens = _TOKEN.findall(pattern)
    escapes = set(_escapes(tokens))
    if escapes & _UNICODE:
        raise PatternError(
            "\\p and \\P depend on the version of Unicode: write the ranges of the letters, as in "
            "[A-Za-z\u00c0-\u024f]"
        )
    if r"\C" in escapes:
        raise PatternError("\\C matches a part of a character: write a dot")
    if "{" in tokens:
        raise PatternError("a brace that begins no repetition is read differently: write \\{")
    if "(?P" in tokens or ("(?", "<") in pairwise(tokens):
        raise PatternError("names of groups are read differently: write (...)")
    ignores_case = any(one.startswith("(?") and "i" in one.partition("-")[0] for one in tokens)
    if ignores_case and (not pattern.isascii() or escapes & _NUMBERED):
        raise PatternError(
            "(?i) with other characters than those of ASCII depends on the version of Unicode: "
            "write both cases, as in [\u00e4\u00c4]"
        )


def _escapes(tokens: list[str]) -> Iterator[str]:
    """A backslash with the character behind it, of every escape that is not quoted."""
    for one in tokens:
        if one.startswith(("\\", "[")) and not one.startswith("\\Q"):
            yield from _ESCAPE.findall(one)
