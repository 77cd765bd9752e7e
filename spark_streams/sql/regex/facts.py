"""What is known of a part of a pattern: empty or not, its first and last characters, size. Pure."""

from collections.abc import Callable, Iterable
from functools import reduce

from spark_streams.sql.regex import sets
from spark_streams.sql.regex.tree import Anchor, At, Chars, Group, Item, Repeat, Sequence


def may_be_empty(item: Item) -> bool:
    """Whether it may match no character at all."""
    match item:
        case Chars():
            return False
        case At():
            return True
        case Group():
            return any(all(map(may_be_empty, one)) for one in item.alternatives)
        case Repeat():
            return item.least == 0 or may_be_empty(item.item)


def is_empty_possible(alternatives: Iterable[Sequence]) -> bool:
    """Whether one of the alternatives may match no character."""
    return any(all(map(may_be_empty, one)) for one in alternatives)


def firsts(sequence: Iterable[Item]) -> sets.Ranges:
    """The characters that a match behind the begin of the text may begin with."""
    found: sets.Ranges = ()
    for item in sequence:
        if isinstance(item, At):
            if item.anchor is Anchor.START:
                return found
            continue
        found = sets.united((*found, *_edge(item, firsts)))
        if not may_be_empty(item):
            break
    return found


def lasts(sequence: Sequence) -> sets.Ranges:
    """The characters that a match may end with."""
    found: sets.Ranges = ()
    for item in reversed(sequence):
        if isinstance(item, At):
            continue
        found = sets.united((*found, *_edge(item, lasts)))
        if not may_be_empty(item):
            break
    return found


def _edge(item: Item, edge: Callable[[Sequence], sets.Ranges]) -> sets.Ranges:
    match item:
        case Chars():
            return item.ranges
        case Repeat():
            return _edge(item.item, edge)
        case Group():
            found = [one for sequence in item.alternatives for one in edge(sequence)]
            return sets.united(found)
    return ()


def has_line_end(alternatives: Iterable[Sequence]) -> bool:
    """Whether `$` stands anywhere in it."""
    return any(_has_line_end(item) for sequence in alternatives for item in sequence)


def _has_line_end(item: Item) -> bool:
    match item:
        case At():
            return item.anchor is Anchor.LINE_END
        case Repeat():
            return _has_line_end(item.item)
        case Group():
            return has_line_end(item.alternatives)
    return False


def instructions(alternatives: tuple[Sequence, ...]) -> int:
    """An upper bound of the instructions of its program in re2j."""
    each = (reduce(lambda total, item: total + _size(item), one, 1) for one in alternatives)
    return sum(each)


def _size(item: Item) -> int:
    match item:
        case Group():
            return instructions(item.alternatives) + 2
        case Repeat():
            times = item.least + 1 if item.most is None else item.most
            return _size(item.item) * times + times
    return 1
