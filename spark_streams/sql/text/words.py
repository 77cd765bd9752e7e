"""A statement's text as words: names, numbers, strings and signs, each with its place. Pure.

The lexical rules are those of Spark's own grammar, and where two readings are possible the text is
refused. Nothing of a text goes further than what is read here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from spark_streams.sql.errors import Place, SqlError

LONGEST = 20_000
"""Characters of a statement: it stands on the log for ever."""
MOST_WORDS = 6_000
"""Words of a statement. Each costs some microseconds here, and far more in Spark."""
DEEPEST = 32
"""Parentheses, brackets and CASE inside each other."""
_SPACE = re.compile(r"(?:[ \t\r\n]|--[^\r\n]*)+")
_SIGN = re.compile(r"<=>|<>|<=|>=|!=|==|\|\||->|=>|::|<<|>>|[-+*/%&|^~!<>=.,;:?()\[\]{}@$#\\]")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_STRING = re.compile(r"(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL)
_RAW = re.compile(r"[rR](?:'([^']*)'|\"([^\"]*)\")")
_HEX = re.compile(r"[xX](?:'([^']*)'|\"([^\"]*)\")")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7][0-7])|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_LIKE_ESCAPES = frozenset("%_")
_OPENS, _CLOSES = {"(": ")", "[": "]"}, frozenset(")]")
_HIGHEST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


class Kind(StrEnum):
    """What a word is."""

    NAME = "name"
    QUOTED = "quoted"
    NUMBER = "number"
    STRING = "string"
    BYTES = "bytes"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Word:
    """One word.

    text: a name as it is written, a string without its quotes and escapes, a sign, hex digits.
    start, end: in characters of the text; `end` is behind the word.
    """

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A name or sign to compare with; "" for what stands in quotes."""
        return self.text.upper() if self.kind in (Kind.NAME, Kind.SIGN) else ""


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text, with one of kind END behind them.

    Raises:
        SqlError: `sql_syntax`, or `sql_not_supported` for what is too long or nested too deeply.
    """
    if len(text) > LONGEST:
        raise SqlError("sql_not_supported", f"a statement has at most {LONGEST} characters")
    if "${" in text:
        raise SqlError(
            "sql_not_supported",
            "${: variables are not for statements, they would be the server's",
            Place.of(text, text.index("${")),
        )
    found: list[Word] = []
    for word in _words(text):
        found.append(word)
        if len(found) > MOST_WORDS:
            raise SqlError(
                "sql_not_supported",
                f"a statement has at most {MOST_WORDS} words and signs",
                Place.of(text, word.start),
            )
    _require_closed(text, found)
    return (*found, Word(Kind.END, "", len(text), len(text)))


def _words(text: str) -> Iterator[Word]:
    at = 0
    while (at := _behind_space(text, at)) < len(text):
        word = _word(text, at)
        yield word
        at = word.end


def _behind_space(text: str, at: int) -> int:
    """Where the next word begins, behind white space and comments."""
    while True:
        if space := _SPACE.match(text, at):
            if (continued := text.find("\\\n", at, space.end())) >= 0:
                about = "a comment that ends with a backslash: to Spark the next line belongs to it"
                raise SqlError("sql_not_supported", about, Place.of(text, continued))
            at = space.end()
        if not text.startswith("/*", at):
            return at
        if text.startswith("/*+", at):
            raise SqlError("sql_not_supported", "/*+: hints are not supported", Place.of(text, at))
        end = text.find("*/", at + 2)
        if end < 0 or text.find("/*", at + 2, end) >= 0:
            why = "this comment is not closed" if end < 0 else "a comment inside of a comment"
            raise SqlError("sql_syntax", why, Place.of(text, at))
        at = end + 2


def _word(text: str, at: int) -> Word:
    if found := _RAW.match(text, at):
        return Word(Kind.STRING, found[1] if found[1] is not None else found[2], at, found.end())
    if found := _HEX.match(text, at):
        return _bytes(text, found)
    if found := _NAME.match(text, at):
        return Word(Kind.NAME, found[0], at, found.end())
    if found := _NUMBER.match(text, at):
        return _number(text, found)
    if found := _STRING.match(text, at):
        inside = found[1] if found[1] is not None else found[2]
        return Word(Kind.STRING, _unescaped(text, inside, at), at, found.end())
    if (found := _QUOTED.match(text, at)) and found[1]:
        return Word(Kind.QUOTED, found[1].replace("``", "`"), at, found.end())
    if found := _SIGN.match(text, at):
        return Word(Kind.SIGN, found[0], at, found.end())
    if text[at] in "'\"`":
        # what is not closed has none of its kind behind it
        about = "cannot be read to its end: is a quote or a comment not closed?"
        raise SqlError("sql_syntax", about, Place.of(text, at))
    raise SqlError("sql_syntax", f"{text[at]!r} is not expected here", Place.of(text, at))


def _number(text: str, found: re.Match[str]) -> Word:
    if tail := _NAME.match(text, found.end()):
        raise SqlError(
            "sql_not_supported",
            f"{found[0]}{tail[0]}: write the number alone, in a CAST for another type",
            Place.of(text, found.start()),
        )
    return Word(Kind.NUMBER, found[0], found.start(), found.end())


def _bytes(text: str, found: re.Match[str]) -> Word:
    digits = found[1] if found[1] is not None else found[2]
    if re.fullmatch(r"(?:[0-9a-fA-F]{2})*", digits) is None:
        why = f"{found[0]}: two digits of 0-9 and A-F are expected for each byte"
        raise SqlError("sql_syntax", why, Place.of(text, found.start()))
    return Word(Kind.BYTES, digits, found.start(), found.end())


def _unescaped(text: str, inside: str, at: int) -> str:
    r"""A string as Spark understands its escapes; \% and \_ stay, for LIKE."""

    def resolved(found: re.Match[str]) -> str:
        short, long, octal, one = found.groups()
        if one is not None:
            return f"\\{one}" if one in _LIKE_ESCAPES else _ESCAPED.get(one, one)
        number = int(octal, 8) if octal else int(short or long, 16)
        if number > _HIGHEST or number in _SURROGATES:
            raise SqlError(
                "sql_syntax", f"{found[0]} in this string is no character", Place.of(text, at)
            )
        return chr(number)

    return _ESCAPE.sub(resolved, inside)


def _require_closed(text: str, words: list[Word]) -> None:
    """Raise for parentheses that do not match, and for what is nested too deeply."""
    opened: list[Word] = []
    for word in words:
        if word.upper in _OPENS or word.upper == "CASE":
            opened.append(word)
        elif word.upper in _CLOSES:
            while opened and opened[-1].upper == "CASE":
                opened.pop()
            if not opened or _OPENS[opened.pop().text] != word.text:
                raise SqlError(
                    "sql_syntax", f"{word.text!r} is not expected here", Place.of(text, word.start)
                )
        elif word.upper == "END" and opened and opened[-1].upper == "CASE":
            opened.pop()
        if len(opened) > DEEPEST:
            raise SqlError(
                "sql_not_supported",
                f"the text is nested too deeply here, more than {DEEPEST} levels: make columns of "
                "its parts in a statement before",
                Place.of(text, word.start),
            )
    if left := [word for word in opened if word.upper != "CASE"]:
        raise SqlError(
            "sql_syntax", f"this {left[-1].text} is not closed", Place.of(text, left[-1].start)
        )
