"""What two texts make of the same records, held against each other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from self_service.cli.streaming.trial_comparison import Result, compare, comparison_text

ROWS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2).map(Result)
DEAD = st.sampled_from([Result(None, "no Avro"), Result(None, "too long")])
RESULTS = st.dictionaries(st.tuples(st.integers(0, 1), st.integers(0, 5)), ROWS | DEAD, max_size=8)


def test_what_is_the_same_differs_in_nothing() -> None:
    result = {(0, 1): Result({"a": 1}), (0, 2): Result(None, "no Avro")}
    found = compare(result, result)
    assert (found.compared, found.same, found.differs) == (2, 2, False)


def test_columns_and_records_that_differ_are_told_by_name_and_place() -> None:
    before = {(0, 1): Result({"a": 1, "b": 1}), (0, 2): Result({"a": 1, "b": 2})}
    after = {(0, 1): Result({"a": 2, "c": 1}), (1, 7): Result({"a": 3, "c": 1})}
    found = compare(before, after)
    assert (found.changed, found.only_before, found.only_after) == (1, 1, 1)
    assert (found.columns, found.added, found.removed) == ({"a": 1}, {"c"}, {"b"})
    text = comparison_text(found)
    assert "0@1" in text
    assert '1@7: nothing -> {"a": 3, "c": 1}' in text


def test_a_record_that_can_be_read_no_more_is_told() -> None:
    found = compare({(0, 0): Result({"a": 1})}, {(0, 0): Result(None, "a is no number")})
    assert found.differs
    assert "a is no number" in comparison_text(found)


def test_new_columns_alone_are_a_difference() -> None:
    found = compare({(0, 0): Result({"a": 1})}, {(0, 0): Result({"a": 1, "b": 2})})
    assert (found.same, found.differs) == (1, True)


def test_new_columns_are_told_by_the_schemas_where_no_record_came_out() -> None:
    found = compare({}, {}, (("a", "b"), ("a", "c")))
    assert (found.added, found.removed, found.differs) == ({"c"}, {"b"}, True)


@pytest.mark.parametrize(
    ("there", "dealt_with", "results", "doubt"),
    [
        (0, 0, {}, None),
        (10, 10, {(0, 1): Result({"a": 1})}, None),
        (10, 10, {}, "neither text gave a result for a record of the stream"),
        (10, 4, {(0, 1): Result({"a": 1})}, "both have processed only 4 of 10 offsets"),
        (10, 0, {}, "both have processed only 0 of 10 offsets"),
    ],
)
def test_what_was_not_compared_is_not_said_to_be_the_same(
    there: int, dealt_with: int, results: Any, doubt: str | None
) -> None:
    found = compare(results, results)
    found.there, found.dealt_with = there, dealt_with
    assert not found.differs
    told = found.doubt
    assert told is None if doubt is None else told is not None and told.startswith(doubt)


@given(RESULTS, RESULTS)
def test_every_record_is_counted_once_and_nothing_differs_from_itself(
    before: dict[tuple[int, int], Result], after: dict[tuple[int, int], Result]
) -> None:
    found = compare(before, after)
    assert found.compared == len(before.keys() | after.keys())
    assert found.only_before == len(before.keys() - after.keys())
    assert not compare(before, before).differs
    assert found.differs == (before != after)
