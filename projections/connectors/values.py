"""What a setting of a connector may have as its value: kinds of values, each with its words. Pure.

Every kind takes time that is linear in the value's length.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from projections.connectors import patterns

MOST_LISTED = 200
"""Values in a list."""
LONGEST_TARGET = 249
LONGEST_IDENTIFIER = 63
"""Bytes of a name in PostgreSQL."""
_HOST = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
    r"|\[[0-9A-Fa-f:.]{2,45}\]"
)
_NO_PART = re.compile(r'[\x00-\x1f\x7f-\x9f,."\\`]')
"""What a part of a table's name may not have here: Debezium could not tell `a."b.c"` from
`"a.b".c`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: what fits, and how that is told to people."""

    fits: Callable[[str], bool]
    words: str


def one_of(*values: str) -> Kind:
    """One of a few words."""
    return Kind(frozenset(values).__contains__, " or ".join(values))


def number(low: int, high: int) -> Kind:
    """A whole number within bounds."""
    return Kind(lambda text: _within(text, low, high), f"a number from {low} to {high}")


def matching(pattern: str, words: str) -> Kind:
    """What a pattern of our own matches as a whole."""
    found = re.compile(pattern)
    return Kind(lambda text: found.fullmatch(text) is not None, words)


def items(text: str) -> list[str]:
    """The values of a list with commas; empty ones are left out."""
    return [one.strip() for one in text.split(",") if one.strip()]


def listed(kind: Kind) -> Kind:
    """A list of values of one kind, with commas."""
    return Kind(
        lambda text: (
            text.count(",") < MOST_LISTED and all(kind.fits(one.strip()) for one in text.split(","))
        ),
        f"at most {MOST_LISTED} with a comma between them: {kind.words}",
    )


def parts(text: str, count: int) -> tuple[str, ...] | None:
    """The parts of a name such as schema.table; None where it is none of `count` parts."""
    found = tuple(text.split("."))
    return found if len(found) == count and all(map(_is_part, found)) else None


def is_host(text: str) -> bool:
    """Whether it is the name or the IP address of one host, an IPv6 address in brackets."""
    return _HOST.fullmatch(text) is not None


def _is_part(text: str) -> bool:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return 0 < size <= LONGEST_IDENTIFIER and text == text.strip() and not _NO_PART.search(text)


def _is_target(text: str, group: str) -> bool:
    legal = re.fullmatch(rf"(?:[a-zA-Z0-9._-]|{group}){{1,{LONGEST_TARGET}}}", text)
    return legal is not None and not patterns.repeats_group(text)


def _within(text: str, low: int, high: int) -> bool:
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(max(-low, high)))
    return plain and low <= int(text) <= high


BOOLEAN = one_of("true", "false")
HOST = Kind(is_host, "the name or the address of one host")
PORT = number(1, 65535)
TEXT = matching(r"[^\x00-\x1f\x7f]{1,200}", "1 to 200 characters")
FIELD = matching(r"[A-Za-z_][A-Za-z0-9_.]{0,199}", "the name of a field")
FIELDS = listed(FIELD)
IDENTIFIER = matching(r"[a-z0-9_]{1,63}", "a-z, 0-9 and '_', at most 63")
DATABASE = matching(r"[A-Za-z0-9_-]{1,63}", "letters, digits, '_' and '-', at most 63")
TOPIC = matching(r"[a-zA-Z0-9._-]{1,249}", "the name of a topic")
TABLE = Kind(
    lambda text: parts(text, 2) is not None,
    'schema.table as the database spells it, neither of them with . , " ` or \\',
)
NO_TABLES = Kind(lambda text: not text or listed(TABLE).fits(text), f"empty, or {TABLE.words}")
TABLES = Kind(lambda text: bool(text) and listed(TABLE).fits(text), f"a list of {TABLE.words}")
COLUMNS = listed(Kind(lambda text: parts(text, 3) is not None, "schema.table.column"))
PATTERN = Kind(patterns.is_linear, patterns.WORDS)
_NAMED_ONCE = "each at most once"
ROUTED = Kind(
    lambda text: _is_target(text, r"\$[1-9]"), f"a topic's name with $1 to $9, {_NAMED_ONCE}"
)
OUTBOX_ROUTED = Kind(
    lambda text: _is_target(text, r"\$[1-9]|\$\{routedByValue\}"),
    f"a topic's name with $1 to $9 or ${{routedByValue}}, {_NAMED_ONCE}",
)
REFERENCE = Kind(lambda _: True, "a reference to a secret")
"""Judged by its own rule."""
