"""Which records a decision on a range sets aside."""

from datetime import UTC, datetime

import pytest

from mesh_events.decisions import RecordsSetAside
from tests.memory_log import meta

RANGE = RecordsSetAside(
    meta=meta("mesh", "01a0c451-0000-7000-8000-000000000000", 0),
    offset=10,
    last=30,
    exceptions=[12, 20],
    counts={"garbage": 15},
    epoch=1,
    basis=26,
    clock=datetime(2026, 1, 1, tzinfo=UTC),
    follows="",
)


@pytest.mark.parametrize(
    ("offsets", "found"),
    [
        ({1, 10, 12, 26, 27, 40}, [10, 26]),
        (set(range(1000)), [at for at in range(10, 27) if at not in (12, 20)]),
        (set(), []),
    ],
    ids=["few offsets", "very many offsets", "none"],
)
def test_those_of_the_offsets_that_are_set_aside(offsets: set[int], found: list[int]) -> None:
    assert sorted(RANGE.among(offsets)) == found
    assert [at for at in sorted(offsets) if RANGE.decides(at)] == found
    assert sorted(RANGE.among(dict.fromkeys(offsets, 1).keys())) == found


def test_a_range_of_any_length_is_looked_at() -> None:
    """A length above 2**63 is none in Python, and the numbers are those of a record."""
    wide = RANGE.model_copy(update={"offset": -(2**63), "last": 2**63 - 1, "basis": 2**63 - 1})
    assert wide.among({11, 12}) == [11]
