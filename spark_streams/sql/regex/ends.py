r"""`$` without lookahead: what RE2 matches in its place. Pure.

Java's `$` matches at the end of the text, and before a line terminator that the text ends with, but
not within `\r\n`. RE2 cannot look ahead, so the terminator is matched, too: which one may follow
depends on the characters that stand before `$`.
"""

from spark_streams.sql.regex import sets
from spark_streams.sql.regex.facts import lasts, may_be_empty
from spark_streams.sql.regex.tree import Anchor, At, Chars, Group, Item, Repeat, Sequence

_BREAK = sets.of("\r\n")


def terminators(before: Sequence) -> sets.Ranges | None:
    """The line terminators that may follow `before`; None where `$` is not equal to any.

    Args:
        before: what stands before `$`, from the begin of the pattern or of its alternative on.
    """
    items = _flat(before)
    allowed = sets.TERMINATORS
    for place, item in enumerate(reversed(items)):
        if isinstance(item, At):
            if item.anchor is Anchor.START:
                return allowed
            return None
        ending = sets.common(lasts((item,)), sets.TERMINATORS)
        if ending:
            if place or not _is_run(item):
                return None
            # a run goes on over what it may match, before `$` is tried in front of it
            if sets.common(ending, _BREAK) not in ((), _BREAK):
                return None
            allowed = sets.common(allowed, sets.complement(ending))
        if not may_be_empty(item):
            return allowed
    return allowed


def _flat(sequence: Sequence) -> list[Item]:
    """The items, with those of groups that come once and have no alternatives."""
    found: list[Item] = []
    for item in sequence:
        if isinstance(item, Group) and len(item.alternatives) == 1:
            found += _flat(item.alternatives[0])
        else:
            found.append(item)
    return found


def _is_run(item: Item) -> bool:
    """Whether it takes characters of one set for as long as it can."""
    return (
        isinstance(item, Repeat)
        and item.greedy
        and item.most is None
        and isinstance(item.item, Chars)
    )


def written(allowed: sets.Ranges) -> str:
    """An optional line terminator of RE2, "" where none is allowed."""
    if not allowed:
        return ""
    if sets.common(allowed, _BREAK):
        return rf"(?:\r\n|{sets.written(allowed)})?"
    return f"{sets.written(allowed)}?"
