"""Regular expressions that a connector's config may have, and what they make of a topic. Pure.

Kafka Connect runs them with java.util.regex, which goes back where a match fails. The grammar
leaves it one way to match everything up to the last repetition, so that no search takes more
than 2 x (length of the text + 1) x (length of the pattern + 2) steps.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mesh_events.schema.linear_patterns import LinearPattern

LONGEST_PATTERN = 250
LONGEST_END = 32
"""Characters of what stands behind a last repetition that may go back."""
MOST_GROUPS = 9
WORDS = (
    f"a regular expression of at most {LONGEST_PATTERN} characters: letters, digits, . [] \\. \\d "
    "\\w \\s, groups such as (a+) that are not repeated, and words (a|b) of which none begins "
    "another; each of * + ? is followed by a character that it cannot match, as in [^.]+\\., or "
    f"it is the last one with at most {LONGEST_END} characters behind it, as in .*_users"
)
_LITERAL = r"[A-Za-z0-9_ :/@,-]|\\[.\-$]"
_CLASS = r"\[\^?(?:\\[.\-dws]|[A-Za-z0-9](?:-[A-Za-z0-9])?|[_ .,:@])+-?\]|\[\^?-\]"
_PART = re.compile(
    rf"(?P<words>\((?:{_LITERAL})+(?:\|(?:{_LITERAL})+)+\))"
    r"|(?P<open>\()|(?P<close>\))"
    rf"|(?P<atom>{_LITERAL}|{_CLASS}|\\[dws]|\.)(?P<often>[*+?]?)"
)
_ITEM = re.compile(r"\\(?P<escaped>.)|(?P<low>[A-Za-z0-9])-(?P<high>[A-Za-z0-9])|(?P<plain>.)")
_GROUP = re.compile(r"\$(?:([1-9])|\{routedByValue\})")
_ALL = (1 << 129) - 1
"""A set of characters as the bits of a number: those of ASCII, and one for all others."""


def _bits(characters: str) -> int:
    return sum(1 << ord(one) for one in characters)


_DIGITS = _bits("0123456789")
_WORD = _bits("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_ESCAPED = {"d": _DIGITS, "w": _WORD, "s": _bits(" \t\n\x0b\f\r")}
_DOT = _ALL & ~_bits("\n\r")


@dataclass(frozen=True, slots=True)
class _Element:
    """A part of a pattern.

    first: the characters that it may begin with, as bits.
    often: "", "*", "+" or "?".
    length: how many characters a repetition's part, or anything else, has at most.
    """

    first: int
    often: str = ""
    length: int = 1


@lru_cache(maxsize=1024)
def groups(pattern: str) -> int | None:
    """How many groups a pattern has; None where it is not of the grammar."""
    found = _parsed(pattern)
    if found is None:
        return None
    elements, count = found
    return count if count <= MOST_GROUPS and _goes_back_once(elements) else None


def is_linear(pattern: str) -> bool:
    """Whether Java matches the pattern in a time that is linear in the text."""
    return groups(pattern) is not None


def matches(pattern: str, topic: str) -> bool:
    """Whether a pattern of the grammar matches the whole name of a topic."""
    return _whole(pattern).matches(topic)


def missing_groups(pattern: str | None, replacement: str) -> list[str]:
    """What a replacement names that the pattern does not have.

    Args:
        pattern: None for an outbox router's own, `(?<routedByValue>.*)`.
        replacement: with $1 to $9 and ${routedByValue}.
    """
    most = 1 if pattern is None else groups(pattern) or 0
    return [
        one[0]
        for one in _GROUP.finditer(replacement)
        if (int(one[1]) > most if one[1] else pattern is not None)
    ]


def repeats_group(replacement: str) -> bool:
    """Whether a replacement names a group twice, so that names grow from router to router."""
    named = [one[0] for one in _GROUP.finditer(replacement)]
    return len(set(named)) < len(named)


def replaced(pattern: str, replacement: str, topic: str) -> str:
    """The topic that Kafka's RegexRouter makes of a topic, as `Matcher.replaceFirst` does.

    What matches need not be the whole name: of two matches from its start, the first that the
    pattern tries is replaced.
    """
    if not matches(pattern, topic):
        return topic
    found = _compiled(pattern).match(topic)
    assert found is not None  # noqa: S101 - what matches as a whole matches
    made = _GROUP.sub(lambda one: found[int(one[1])], replacement)
    return made + topic[found.end() :]


@lru_cache(maxsize=256)
def _whole(pattern: str) -> LinearPattern:
    # its parentheses are groups, never literals; without them RE2 goes over the name once
    return LinearPattern(pattern.replace("(", "(?:"))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _goes_back_once(elements: list[_Element]) -> bool:
    """Whether one repetition at most, the last, may be followed by what it matches itself."""
    repeated = [at for at, one in enumerate(elements) if one.often]
    for at in repeated:
        after = elements[at + 1] if at + 1 < len(elements) else None
        if after is None:
            continue
        ends = after.often in ("", "+") and not elements[at].first & after.first
        last = at == repeated[-1] and sum(one.length for one in elements[at + 1 :]) <= LONGEST_END
        if not ends and not last:
            return False
    return True


def _parsed(pattern: str) -> tuple[list[_Element], int] | None:
    """The elements of a pattern and how many groups it has; None where it is no such pattern."""
    text = pattern.removeprefix("^")
    if text.endswith("$") and not text.endswith("\\$"):
        text = text[:-1]
    elements: list[_Element] = []
    at, count, is_open = 0, 0, False
    while at < len(text) <= LONGEST_PATTERN:
        found = _PART.match(text, at)
        if found is None or (is_open and (found["words"] or found["open"])):
            return None
        if found["close"] and not is_open:
            return None
        element = _element(found)
        if element is None:
            return None
        elements += element
        count += bool(found["words"] or found["open"])
        is_open = bool(found["open"]) or (is_open and not found["close"])
        at = found.end()
    return (elements, count) if pattern and at == len(text) and not is_open else None


def _element(found: re.Match[str]) -> list[_Element] | None:
    if found["words"]:
        words = sorted(found["words"][1:-1].replace("\\", "").split("|"))
        if any(after.startswith(one) for one, after in pairwise(words)):
            return None
        return [_Element(_bits("".join({one[0] for one in words})), length=max(map(len, words)))]
    if not found["atom"]:
        return []
    first = _characters(found["atom"])
    return [_Element(first, found["often"])] if first else None


def _characters(atom: str) -> int:
    """The characters that a literal, an escape, a class or a dot matches; 0 where it is wrong."""
    if atom == ".":
        return _DOT
    if atom[0] == "\\":
        return _escaped(atom[1])
    if atom[0] != "[":
        return 1 << ord(atom)
    found = 0
    for one in _ITEM.finditer(atom.removeprefix("[").removeprefix("^")[:-1]):
        characters = _item(one)
        if not characters:
            return 0
        found |= characters
    return _ALL & ~found if atom[1] == "^" else found


def _item(found: re.Match[str]) -> int:
    if found["escaped"]:
        return _escaped(found["escaped"])
    if found["plain"]:
        return 1 << ord(found["plain"])
    low, high = ord(found["low"]), ord(found["high"])
    return (1 << (high + 1)) - (1 << low) if low <= high else 0


def _escaped(name: str) -> int:
    return _ESCAPED.get(name) or 1 << ord(name)
