"""Sets of characters as ranges, with the meaning that Java gives to their names. Pure."""

from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]
"""(first, last) code points: sorted, apart from each other."""
LAST = 0x10FFFF
_LAST_OF_BMP = 0xFFFF


def united(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges, sorted and merged."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    found = []
    start = 0
    for first, last in ranges:
        if start < first:
            found.append((start, first - 1))
        start = last + 1
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


def common(one: Ranges, other: Ranges) -> Ranges:
    """The characters of both."""
    return complement(united((*complement(one), *complement(other))))


def of(characters: str) -> Ranges:
    """The set of these characters."""
    return united((ord(one), ord(one)) for one in characters)


def folded(ranges: Ranges) -> Ranges:
    """The ranges with both cases of ASCII letters: Java's `(?i)` knows no others."""
    more = []
    for a, b, shift in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
        more += [(first + shift, last + shift) for first, last in common(ranges, ((a, b),))]
    return united((*ranges, *more))


def has_beyond_bmp(ranges: Ranges) -> bool:
    """Whether a character of it takes two of Java's `char`."""
    return bool(ranges) and ranges[-1][1] > _LAST_OF_BMP


def written(ranges: Ranges) -> str:
    """The set in RE2's syntax."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        one = chr(ranges[0][0])
        return one if one.isascii() and one.isalnum() else _code(ranges[0][0])
    outside = complement(ranges)
    sign, inner = ("^", outside) if ranges[-1][1] == LAST and outside else ("", ranges)
    return f"[{sign}{''.join(_range(*one) for one in inner)}]"


def _range(first: int, last: int) -> str:
    return _code(first) if first == last else f"{_code(first)}-{_code(last)}"


def _code(code: int) -> str:
    return f"\\x{{{code:x}}}"


TERMINATORS = of("\n\r\u0085\u2028\u2029")
"""Java's line terminators of one character; `\\r\\n` is one, too."""
DIGITS = of("0123456789")
WORDS: Ranges = united(((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)))
SPACES = of(" \t\n\v\f\r")
NAMED = {
    "d": DIGITS,
    "D": complement(DIGITS),
    "w": WORDS,
    "W": complement(WORDS),
    "s": SPACES,
    "S": complement(SPACES),
}
"""Letter behind a backslash -> its set."""
ANY: Ranges = ((0, LAST),)
DOT = complement(TERMINATORS)
