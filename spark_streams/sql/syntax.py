"""What is wrong with a text that is not SQL, in words for the person who wrote it."""

import difflib
import re
from collections.abc import Sequence

import sqlglot
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from spark_streams.sql.errors import Place, SqlError

_KEYWORDS = frozenset(
    {"SELECT", "INSERT", "INTO", "FROM", "JOIN", "LEFT", "INNER", "WHERE", "CASE", "WHEN", "THEN"}
    | {"ELSE", "CAST", "BETWEEN"}
)
"""Short ones are left out: they are like too much else."""
_NO_KEYWORDS = frozenset({"INT", "INSET", "WEND", "FORM", "FORMAT"})
"""Types, and what topics and columns are called."""
_NOT_BEHIND_COMMA = frozenset({TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM})
_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})
_NOT_AT_END = frozenset({TokenType.COMMA, TokenType.ON, TokenType.IN, TokenType.BETWEEN})
_MISSING = re.compile(r"Missing (\S+) from")
_ALIKE = 0.7


def told(text: str, error: ParseError | TokenError) -> SqlError:
    """The parser's error; it points to the word near its place that may be a misspelt keyword."""
    if isinstance(error, TokenError):
        missing = _MISSING.search(f"{error} {error.__cause__}")
        # what is not closed has none of its kind behind it
        place = Place.of(text, max(0, text.rfind(missing[1]))) if missing else None
        about = "cannot be read to its end: is a quote or a comment not closed?"
        return SqlError("sql_syntax", about, place)
    first = error.errors[0] if error.errors else {}
    line, column, at = first.get("line"), first.get("col"), first.get("highlight") or ""
    about = str(first.get("description") or error).partition("<")[0].strip(" .")
    if not line or not column:
        return SqlError("sql_syntax", about)
    place = Place(line, max(1, column - len(at) + 1))
    words = [(Place.of(text, one.start()), one[0]) for one in re.finditer(r"\w+|[^\w\s]", text)]
    number = next((n for n, (there, _) in enumerate(words) if there == place), 0)
    for there, word in (words[0], *words[max(0, number - 1) : number + 2]):
        if meant := _meant(word):
            return SqlError("sql_syntax", f"{word!r} is not known here: is {meant} meant?", there)
    behind = f", behind {words[number - 1][1]!r}" if number else ""
    if about.startswith("Required keyword"):
        return SqlError("sql_syntax", f"something is missing at {at!r}{behind}", place)
    if "Unexpected token" in about:
        return SqlError("sql_syntax", f"{at!r} is not expected here{behind}", place)
    return SqlError("sql_syntax", f"{about} at {at!r}{behind}", place)


def require_whole(text: str, dialect: str) -> None:
    """Raise SqlError `sql_syntax` for what the parser passes over, where it is patient."""
    tokens = sqlglot.tokenize(text, dialect=dialect)
    open_at: list[Token] = []
    for number, token in enumerate(tokens):
        kind, rest = token.token_type, tokens[number + 1 :]
        if kind is TokenType.L_PAREN:
            open_at.append(token)
        elif kind is TokenType.R_PAREN and open_at:
            open_at.pop()
        if why := _lacks(kind, rest):
            raise SqlError("sql_syntax", why, Place.of(text, token.start))
    if open_at:
        raise SqlError("sql_syntax", "this ( is not closed", Place.of(text, open_at[-1].start))


def _lacks(kind: TokenType, rest: Sequence[Token]) -> str:
    """What is missing behind a token, "" for nothing."""
    if not rest:
        return "something is missing behind this" if kind in _NOT_AT_END else ""
    if kind in _STRINGS and rest[0].token_type in _STRINGS:
        return "two strings beside each other: write \\' for a quote inside of one, || to join them"
    if kind is TokenType.COMMA and rest[0].token_type in _NOT_BEHIND_COMMA:
        return f"something is missing between ',' and {rest[0].text!r}"
    if kind is TokenType.IN:
        kinds = [token.token_type for token in rest[:2]]
        if kinds[0] is not TokenType.L_PAREN or kinds[1:] == [TokenType.R_PAREN]:
            return "IN is followed by values in parentheses: IN (1, 2)"
    if kind is TokenType.BETWEEN and not _has_and(rest):
        return "BETWEEN has two bounds: BETWEEN 1 AND 2"
    return ""


def _has_and(rest: Sequence[Token]) -> bool:
    """Whether an AND follows in the same parentheses."""
    depth = 0
    for token in rest:
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        if depth < 0 or (depth == 0 and token.token_type is TokenType.COMMA):
            return False
        if depth == 0 and token.token_type is TokenType.AND:
            return True
    return False


def _meant(word: str) -> str | None:
    """The keyword that a word is almost."""
    if word.upper() in _KEYWORDS | _NO_KEYWORDS:
        return None
    found = difflib.get_close_matches(word.upper(), _KEYWORDS, 1, _ALIKE)
    return found[0] if found else None
