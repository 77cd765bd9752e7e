"""What stands behind a value: IS and LIKE, with all that belongs to them. Pure."""

from collections.abc import Callable

from spark_streams.sql.text.constants import CONSTANTS
from spark_streams.sql.text.syntax import Words
from spark_streams.sql.text.tree import Binary, Is, Like, Node, Unary
from spark_streams.sql.text.words import Kind

LIKES = {"LIKE": "like", "ILIKE": "ilike", "RLIKE": "rlike", "REGEXP": "rlike"}


def is_what(words: Words, this: Node, value: Callable[[], Node]) -> Node:
    """What stands behind IS: NULL, TRUE, FALSE or DISTINCT FROM a value."""
    negated = words.takes("NOT")
    if words.takes("DISTINCT", "FROM"):
        right = value()
        place = {"start": this.start, "end": right.end}
        same = Binary("<=>", this, right, **place)
        return same if negated else Unary("not", same, **place)
    if words.current.upper not in CONSTANTS:
        raise words.unexpected()
    word = words.next()
    what = CONSTANTS[word.upper]
    return Is(this, what, negated, start=this.start, end=word.end)


def like(words: Words, this: Node, value: Callable[[], Node], *, negated: bool) -> Node:
    """A pattern, with the character that escapes in it."""
    kind = LIKES[words.next().upper]
    if words.current.upper in ("ANY", "ALL", "SOME") and words.ahead(1).upper == "(":
        raise words.refused("LIKE ANY and LIKE ALL: write a LIKE for each, with OR or AND")
    pattern, escape = value(), None
    if kind != "rlike" and words.takes("ESCAPE"):
        word = words.next()
        if word.kind is not Kind.STRING or len(word.text) != 1:
            raise words.wrong("ESCAPE is followed by one character in quotes", word)
        escape = word.text
    return Like(kind, this, pattern, escape, negated, start=this.start, end=words.before.end)
