"""What a setting of a connector may have as its value: kinds of values, each with its words. Pure.

Every kind takes time that is linear in the value's length.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

MOST_QUANTIFIERS = 3
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
_TOKEN = re.compile(
    r"\\[.\-_$\\dws]|\[\^?[A-Za-z0-9 _.,:@\-]+\]|[*+?]|\{[0-9,]{1,7}\}|\(|\)|[^\\\[{]"
)


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


def listed(kind: Kind) -> Kind:
    """A list of values of one kind, with commas."""
    return Kind(
        lambda text: all(kind.fits(one.strip()) for one in text.split(",")),
        f"with a comma between them: {kind.words}",
    )


def parts(text: str, count: int) -> tuple[str, ...] | None:
    """The parts of a name such as schema.table; None where it is none of `count` parts."""
    found = tuple(text.split("."))
    return found if len(found) == count and all(map(_is_part, found)) else None


def is_host(text: str) -> bool:
    """Whether it is the name or the IP address of one host, an IPv6 address in brackets."""
    return _HOST.fullmatch(text) is not None


def is_bounded_pattern(text: str) -> bool:
    """Whether it is a regular expression whose search ends soon on a name of a topic.

    A group that is repeated, a reference back, or a look around may take a time that is
    exponential in the name's length; so none of them is allowed, and few repetitions.
    """
    at, open_groups, quantifiers, before = 0, 0, 0, ""
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return False
        part, at = found[0], found.end()
        if part[0] in "*+?{":
            quantifiers += 1
            if before in ("", "(", ")", "|") or quantifiers > MOST_QUANTIFIERS:
                return False
        open_groups += (part == "(") - (part == ")")
        before = part
    return bool(text) and open_groups == 0


def _is_part(text: str) -> bool:
    size = len(text.encode("utf-8", "surrogatepass"))
    return 0 < size <= LONGEST_IDENTIFIER and text == text.strip() and not _NO_PART.search(text)


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
TABLES = Kind(lambda text: bool(text) and listed(TABLE).fits(text), f"a list of {TABLE.words}")
COLUMNS = listed(Kind(lambda text: parts(text, 3) is not None, "schema.table.column"))
PATTERN = Kind(
    is_bounded_pattern,
    f"a regular expression with at most {MOST_QUANTIFIERS} of * + ? {{}}, none of them behind a "
    "group, no look around and no reference back",
)
REPLACEMENT = matching(
    r"(?:[a-zA-Z0-9._-]|\$[1-9]|\$\{routedByValue\}){1,249}", "a topic's name with $1 to $9"
)
REFERENCE = Kind(lambda _: True, "a reference to a secret")
"""Judged by its own rule."""
