"""Java's regular expressions as they are read: an allow-list of syntax. Pure."""

import re
from collections.abc import Mapping

from spark_streams.sql.regex import sets
from spark_streams.sql.regex.classes import class_of, escaped
from spark_streams.sql.regex.cursor import Cursor, RegexError
from spark_streams.sql.regex.facts import instructions, may_be_empty
from spark_streams.sql.regex.tree import Anchor, At, Chars, Group, Item, Regex, Repeat, Sequence

__all__ = ["RegexError", "parse"]

LONGEST = 1_000
"""Characters of a pattern."""
MOST_INSTRUCTIONS = 2_000
"""Instructions of its program: matching takes at most so many steps for each character."""
MOST_REPETITIONS = 1_000
_MOST_LEVELS = 50
_FLAGS = re.compile(r"\(\?(i|s|is|si)\)")
_COUNT = re.compile(r"\{(\d{1,5})(?:(,)(\d{1,5})?)?\}")
_SIGNS: Mapping[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ANCHORS = {"A": Anchor.START, "z": Anchor.END}


def parse(pattern: str) -> Regex:
    """The tree of a pattern; raises RegexError for what is not known to mean the same in RE2."""
    if not pattern:
        raise RegexError("it is empty: write what to look for")
    if len(pattern) > LONGEST:
        raise RegexError(f"it has {len(pattern)} characters, at most {LONGEST} are allowed")
    flags = _FLAGS.match(pattern)
    found = _Parser(Cursor(pattern, flags.end() if flags else 0), flags[1] if flags else "").whole()
    if instructions(found.alternatives) > MOST_INSTRUCTIONS:
        raise RegexError(
            f"it has more than the {MOST_INSTRUCTIONS} instructions that are allowed: "
            "repeat less in it"
        )
    return found


class _Parser:
    def __init__(self, cursor: Cursor, flags: str) -> None:
        self._at = cursor
        self._ignores_case = "i" in flags
        self._dot = sets.ANY if "s" in flags else sets.DOT
        self._groups = 0
        self._levels = 0

    def whole(self) -> Regex:
        found = self._alternatives()
        if self._at.more:
            raise self._at.refused(") has no ( before it", "write \\)")
        return Regex(found, self._groups)

    def _alternatives(self) -> tuple[Sequence, ...]:
        found = [self._sequence()]
        while self._at.takes("|"):
            found.append(self._sequence())
        return tuple(found)

    def _sequence(self) -> Sequence:
        found: list[Item] = []
        start = self._at.index
        while self._at.more and self._at.next not in "|)":
            found.append(self._repeated())
        if not found:
            raise self._at.refused("an alternative is empty", "write (a|b)? for (a|b|)", start)
        return tuple(found)

    def _repeated(self) -> Item:
        start = self._at.index
        item = self._item()
        bounds = self._bounds()
        if bounds is None:
            return item
        if isinstance(item, At):
            raise self._at.refused("an anchor is repeated", "write it once", start)
        if isinstance(item, Group) and may_be_empty(item):
            raise self._at.refused(
                "what is repeated may be empty", "write (a+)* or (a*) for (a*)*", start
            )
        greedy = not self._at.takes("?")
        if self._at.more and (self._at.next in "*+?" or _COUNT.match(self._at.rest)):
            raise self._at.refused(
                "a repetition is repeated or possessive", "write one repetition, and a+ for a++"
            )
        return Repeat(item, *bounds, greedy)  # type: ignore[arg-type]

    def _bounds(self) -> tuple[int, int | None] | None:
        if not self._at.more:
            return None
        if signs := _SIGNS.get(self._at.next):
            self._at.index += 1
            return signs
        if self._at.next != "{":
            return None
        start = self._at.index
        counted = _COUNT.match(self._at.rest)
        if counted is None:
            raise self._at.refused("{ begins no repetition", "write \\{")
        self._at.index += counted.end()
        least = int(counted[1])
        most = None if counted[2] and not counted[3] else int(counted[3] or counted[1])
        highest = least if most is None else most
        if not (least <= highest <= MOST_REPETITIONS and most != 0):
            raise self._at.refused(
                f"{counted[0]} repeats by no number from 1 to {MOST_REPETITIONS}",
                "write the smaller number first",
                start,
            )
        return least, most

    def _item(self) -> Item:
        start = self._at.index
        one = self._at.take()
        match one:
            case ".":
                return Chars(self._dot)
            case "^":
                return At(Anchor.START, start)
            case "$":
                return At(Anchor.LINE_END, start)
            case "(":
                return self._group(start)
            case "[":
                return Chars(class_of(self._at, start, ignores_case=self._ignores_case))
            case "\\":
                return self._escape(start)
            case "*" | "+" | "?":
                raise self._at.refused(f"{one} repeats nothing", f"write \\{one}", start)
            case "{" | "}" | "]":
                raise self._at.refused(f"{one} stands alone", f"write \\{one}", start)
        return self._literal(self._at.plain(one, start))

    def _escape(self, start: int) -> Item:
        anchor = _ANCHORS.get(self._at.next) if self._at.more else None
        if anchor:
            self._at.index += 1
            return At(anchor, start)
        found = escaped(self._at, start)
        return self._literal(found) if isinstance(found, int) else Chars(found)

    def _literal(self, code: int) -> Chars:
        found: sets.Ranges = ((code, code),)
        return Chars(sets.folded(found) if self._ignores_case else found)

    def _group(self, start: int) -> Group:
        captures = True
        if self._at.takes("?"):
            if not self._at.takes(":"):
                raise self._at.refused(
                    f"(?{self._at.rest[:1]} is not supported",
                    "write (...) or (?:...); (?i), (?s) and (?is) begin a pattern",
                    start,
                )
            captures = False
        self._groups += captures
        self._levels += 1
        if self._levels > _MOST_LEVELS:
            raise self._at.refused(
                f"groups are nested in more than {_MOST_LEVELS} levels", "nest less", start
            )
        found = self._alternatives()
        self._levels -= 1
        if not self._at.takes(")"):
            raise self._at.refused("( has no ) behind it", "write \\(", start)
        return Group(found, captures)
