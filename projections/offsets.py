"""Offsets in order, in a table: the next one before or behind any offset is found in a few looks.

A tree over the digits of the offsets. A node is named by its level and by the digits above it, and
has a bit for each digit below which something stands; a node without bits is not there.
"""

from collections.abc import Callable, Iterator

from immutables import Map

from projections.table import Table

DIGIT = 5
"""Bits of a digit."""
LEVELS = 13
"""Digits of the largest offset, 2**63 - 1."""
_MASK = (1 << DIGIT) - 1

Ordered = Table[tuple[int, int], int]
"""(level, digits above it) -> bits."""
EMPTY: Ordered = Map()


def added(known: Ordered, offset: int) -> Ordered:
    """With one offset more, from 0 to 2**63 - 1."""
    for level in range(LEVELS):
        above, bit = offset >> DIGIT, 1 << (offset & _MASK)
        node = known.get((level, above), 0)
        known = known.set((level, above), node | bit)
        if node:
            break
        offset = above
    return known


def removed(known: Ordered, offset: int) -> Ordered:
    """Without an offset, which must be there."""
    for level in range(LEVELS):
        above, bit = offset >> DIGIT, 1 << (offset & _MASK)
        left = known[level, above] & ~bit
        if left:
            return known.set((level, above), left)
        known = known.delete((level, above))
        offset = above
    return known


def last_until(known: Ordered, offset: int) -> int | None:
    """The largest offset that is not above a given one."""
    at, end = max(offset, -1), (offset & _MASK) + 1
    for level in range(LEVELS):
        above = at >> DIGIT
        if bits := known.get((level, above), 0) & ((1 << end) - 1):
            return _below(known, level, above << DIGIT | _highest(bits), _highest)
        at = above
        end = at & _MASK
    return None


def first_from(known: Ordered, offset: int) -> int | None:
    """The smallest offset that is not below a given one."""
    at = max(offset, 0)
    begin = at & _MASK
    for level in range(LEVELS):
        above = at >> DIGIT
        if bits := known.get((level, above), 0) >> begin << begin:
            return _below(known, level, above << DIGIT | _lowest(bits), _lowest)
        at = above
        begin = (at & _MASK) + 1
    return None


def _below(known: Ordered, level: int, at: int, digit: Callable[[int], int]) -> int:
    """The first or the last offset below a digit of a node."""
    for lower in range(level - 1, -1, -1):
        at = at << DIGIT | digit(known[lower, at])
    return at


def between(known: Ordered, first: int, last: int) -> Iterator[int]:
    """Those from one offset to another, ascending."""
    found = first_from(known, first)
    while found is not None and found <= last:
        yield found
        found = first_from(known, found + 1)


def _highest(bits: int) -> int:
    return bits.bit_length() - 1


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
