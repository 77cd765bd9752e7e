"""Escapes, and sets of characters in brackets. Pure."""

import re
from typing import NoReturn

from spark_streams.sql.regex import sets
from spark_streams.sql.regex.cursor import Cursor

_CODE = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_STEPS = {
    **dict.fromkeys("bB", "write what stands beside the word, as in (^|[^A-Za-z0-9_])word"),
    "Z": "write $",
    **dict.fromkeys("pP", "write the ranges, as in [A-Za-z\u00c0-\u024f]"),
    **dict.fromkeys("QE", "write a backslash before each character that is to mean itself"),
    "v": r"write [\n\x0b\f\r\x85\u2028\u2029]",
    "h": r"write the characters, as in [ \t\u00a0]",
    "R": r"write (?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
    "0": r"write \x and two digits",
}
"""Letter of an escape that is refused -> what to write."""
_SURROGATES = (0xD800, 0xDFFF)
_BEYOND_BMP = 0xFFFF


def escaped(at: Cursor, start: int) -> int | sets.Ranges:
    """The character, or the named set, of an escape from behind its backslash on."""
    if not at.more:
        raise at.refused("a backslash stands at the end", r"write \\", start)
    one = at.take()
    if one in sets.NAMED:
        return sets.NAMED[one]
    if one in _CONTROLS:
        return ord(_CONTROLS[one])
    if one.isascii() and not one.isalnum() and one.isprintable():
        return ord(one)
    if found := _CODE.match(at.pattern, at.index - 1):
        at.index = found.end()
        code = int(found[1] or found[2] or found[3], 16)
        if not 0 < code <= _BEYOND_BMP or _SURROGATES[0] <= code <= _SURROGATES[1]:
            raise at.refused(f"{found[0]} is not supported", "write the character itself", start)
        return code
    step = _STEPS.get(one, "write a group, a set or the character itself")
    raise at.refused(f"\\{one} is not supported", step, start)


def class_of(at: Cursor, start: int, *, ignores_case: bool) -> sets.Ranges:
    """The set in brackets, from behind the first one on."""
    negated = at.takes("^")
    found: list[tuple[int, int]] = []
    first = at.index
    while not at.takes("]"):
        if not at.more:
            raise at.refused("[ has no ] behind it", "write \\[", start)
        found += _member(at, first, ignores_case=ignores_case)
    ranges = sets.united(found)
    if ranges in ((), sets.ANY):
        raise at.refused("a set of no characters, or of all", r"write \] for ]", start)
    if not negated:
        return ranges
    if _lists_beyond_bmp(found):
        raise at.refused(
            "a character beyond U+FFFF in [^...]", "write the characters that are meant", start
        )
    return sets.complement(ranges)


def _lists_beyond_bmp(found: list[tuple[int, int]]) -> bool:
    r"""Whether a single character beyond U+FFFF is listed, and not by `\D`, `\W` or `\S`."""
    return any(first > _BEYOND_BMP for first, _ in found)


def _member(at: Cursor, first: int, *, ignores_case: bool) -> sets.Ranges:
    start = at.index
    low = _single(at, first)
    if not isinstance(low, int):
        if at.next == "-" and at.rest[1:2] != "]":
            _refuse_dash(at)
        return low
    if at.next != "-" or at.rest[1:2] == "]":
        found: sets.Ranges = ((low, low),)
    else:
        if low == ord("-") and at.pattern[start] == "-":
            _refuse_dash(at)
        at.index += 1
        high = _single(at, -1)
        if not isinstance(high, int) or high < low:
            raise at.refused("a range that begins behind its end", "write it as in [a-z]", start)
        if (low < _SURROGATES[0] and high > _SURROGATES[1]) or high > _BEYOND_BMP:
            raise at.refused(
                "a range that goes beyond U+FFFF or over U+D800 to U+DFFF",
                "write a smaller range",
                start,
            )
        if at.next == "-" and at.rest[1:2] != "]":
            _refuse_dash(at)
        found = ((low, high),)
    return sets.folded(found) if ignores_case else found


def _single(at: Cursor, first: int) -> int | sets.Ranges:
    """A character of a set, or a named set; `first` is the index where `-` means itself."""
    start = at.index
    if not at.more:
        raise at.refused("[ has no ] behind it", "write \\[", start)
    one = at.take()
    if one == "\\":
        return escaped(at, start)
    if one == "[":
        raise at.refused("[ in a set begins a set in Java", "write \\[", start)
    if one == "&" and at.next == "&":
        raise at.refused("&& intersects sets in Java", "write \\&, or the characters", start)
    if one == "^":
        raise at.refused("^ stands in a set", "write \\^", start)
    if one == "-" and start != first and at.next != "]":
        at.index = start
        _refuse_dash(at)
    return at.plain(one, start)


def _refuse_dash(at: Cursor) -> NoReturn:
    raise at.refused("- stands between a set and a character", "write \\-")
