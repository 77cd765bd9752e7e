"""Offsets in order: compared with a sorted list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections import offsets
from projections.offsets import Ordered

MOST = 2**63 - 1
NEAR = st.integers(0, 70)
ANY = NEAR | st.integers(0, MOST) | st.sampled_from([MOST, MOST - 1, 2**62, 2**60])
ASKED = ANY | st.integers(-70, -1) | st.just(-(2**63))


def made(of: set[int]) -> Ordered:
    known = offsets.EMPTY
    for one in of:
        known = offsets.added(known, one)
    return known


@given(st.sets(ANY), ASKED)
def test_the_next_one_before_and_behind_any_offset(of: set[int], asked: int) -> None:
    known = made(of)
    assert offsets.last_until(known, asked) == max((x for x in of if x <= asked), default=None)
    assert offsets.first_from(known, asked) == min((x for x in of if x >= asked), default=None)


@given(st.sets(ANY), ASKED, ASKED)
def test_those_in_a_range(of: set[int], first: int, last: int) -> None:
    assert list(offsets.between(made(of), first, last)) == sorted(
        x for x in of if first <= x <= last
    )


@given(st.sets(ANY), st.sets(ANY))
def test_the_table_is_the_same_whatever_was_there_before(of: set[int], others: set[int]) -> None:
    known = made(of | others)
    for one in others - of:
        known = offsets.removed(known, one)
    assert known == made(of)


@pytest.mark.parametrize("count", [1, 1000])
def test_one_offset_is_found_and_changed_in_a_few_looks(count: int) -> None:
    known = made({300 * number for number in range(count)})
    assert len(offsets.added(known, 299)) <= len(known) + offsets.LEVELS
    assert not made(set())
