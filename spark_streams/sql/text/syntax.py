"""What is wrong with a text that is not SQL, in words for the person who wrote it."""

import difflib
from collections.abc import Sequence

from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.text.words import Kind, Word

_KEYWORDS = frozenset(
    {"SELECT", "INSERT", "INTO", "FROM", "JOIN", "LEFT", "INNER", "WHERE", "CASE", "WHEN", "THEN"}
    | {"ELSE", "CAST", "BETWEEN"}
)
"""Short ones are left out: they are like too much else."""
_NO_KEYWORDS = frozenset({"INT", "INSET", "WEND", "FORM", "FORMAT"})
"""Types, and what topics and columns are called."""
_BEFORE_OPERANDS = frozenset({"SELECT", "WHERE", "AND", "OR", "NOT", "ON", "(", ",", "=", "<", ">"})
"""A name that cannot be behind one of these is a keyword."""
_ALIKE = 0.7
_STRINGS = "two strings beside each other: write \\' for a quote inside of one, || to join them"


class Words:
    """The words of a text, read from the first to the last."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self._words = list(words)
        self._at = 0

    @property
    def current(self) -> Word:
        """The word that is read next; one of kind END behind the last."""
        return self._words[self._at]

    @property
    def at_end(self) -> bool:
        """Whether all is read."""
        return self.current.kind is Kind.END

    @property
    def before(self) -> Word:
        """The word that was read last."""
        return self._words[max(0, self._at - 1)]

    def ahead(self, count: int) -> Word:
        """The word `count` words behind the current one."""
        return self._words[min(self._at + count, len(self._words) - 1)]

    def next(self) -> Word:
        """Read a word."""
        word = self.current
        self._at = min(self._at + 1, len(self._words) - 1)
        return word

    def sees(self, *words: str) -> bool:
        """Whether these keywords or signs are next."""
        return all(self.ahead(count).upper == word for count, word in enumerate(words))

    def takes(self, *words: str) -> bool:
        """Read these keywords or signs if they are next, and tell whether they were."""
        if not self.sees(*words):
            return False
        for _ in words:
            self.next()
        return True

    def expect(self, word: str) -> Word:
        """Read this keyword or sign.

        Raises:
            SqlError: `sql_syntax`, if another one is there.
        """
        if not self.sees(word):
            raise self.unexpected()
        return self.next()

    def split(self, sign: str) -> None:
        """Leave the rest of the current sign, which begins with `sign`, to be read."""
        word = self.current
        rest = Word(word.kind, word.text[len(sign) :], word.start + len(sign), word.end)
        self._words[self._at] = rest

    def place(self, word: Word) -> Place:
        """Where a word stands."""
        return Place.of(self.text, word.start)

    def refused(self, reason: str, at: Word | None = None) -> SqlError:
        """What is understood, and not supported."""
        return SqlError("sql_not_supported", reason, self.place(at or self.current))

    def wrong(self, reason: str, at: Word) -> SqlError:
        """What is no SQL, with a word that tells why."""
        return SqlError("sql_syntax", reason, self.place(at))

    def unexpected(self) -> SqlError:
        """That the current word cannot be here; it may be a misspelt keyword, or one beside it."""
        word, before = self.current, self.before
        at = self._at
        near = self._words[max(0, at - 1) : at + 2]
        for one in (self._words[0], *near):
            if meant := self._meant(one):
                told = f"{one.text!r} is not known here: is {meant} meant?"
                return SqlError("sql_syntax", told, self.place(one))
        if word.kind is Kind.STRING and before.kind is Kind.STRING:
            return SqlError("sql_syntax", _STRINGS, self.place(before))
        if before.upper == ",":
            told = f"something is missing between ',' and {self._shown(word)}"
            return SqlError("sql_syntax", told, self.place(before))
        if word.kind is Kind.END:
            told = "something is missing behind this"
            return SqlError("sql_syntax", told, self.place(before))
        behind = f", behind {self._shown(before)}" if at else ""
        told = f"{self._shown(word)} is not expected here{behind}"
        if word.upper == "-" or before.upper == "-":
            told += ": a name with - in it stands between `"
        elif word.kind is Kind.NAME and before.upper in _BEFORE_OPERANDS:
            told += f": {word.text} is a keyword, and as a name it stands between `"
        return SqlError("sql_syntax", told, self.place(word))

    def _shown(self, word: Word) -> str:
        return repr(self.text[word.start : word.end]) if word.kind is not Kind.END else "the end"

    def _meant(self, word: Word) -> str | None:
        """The keyword that a word is almost."""
        if word.kind is not Kind.NAME or word.upper in _KEYWORDS:
            return None
        if word.upper in _NO_KEYWORDS:
            # what is called so is no keyword, unless the text has none
            has_from = any(one.upper == "FROM" for one in self._words)
            return "FROM" if word.upper == "FORM" and not has_from else None
        found = difflib.get_close_matches(word.upper, _KEYWORDS, 1, _ALIKE)
        return found[0] if found else None
