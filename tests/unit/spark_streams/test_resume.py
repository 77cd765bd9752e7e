import pytest

from spark_streams.errors import CopyError
from spark_streams.resume import start_positions
from spark_streams.tail import Tail


@pytest.mark.parametrize(
    ("case", "tail", "floor", "source", "start"),
    [
        ("a first copy begins at the beginning", Tail(0, 0, None), None, (0, 9), 0),
        ("the beginning may not be 0", Tail(0, 0, None), None, (4, 9), 4),
        ("an empty source is copied from its end", Tail(0, 0, None), None, (4, 4), 4),
        ("a copy goes on behind its tail", Tail(0, 5, 7), None, (0, 9), 7),
        ("the floor may be behind the tail", Tail(0, 5, 7), 3, (0, 9), 7),
        ("the floor may be the tail", Tail(0, 5, 7), 7, (0, 9), 7),
        ("a complete copy waits at the source's end", Tail(0, 9, 9), 9, (0, 9), 9),
        ("the tail may be the source's first record", Tail(0, 5, 7), 7, (7, 9), 7),
        ("no record was copied yet", Tail(0, 0, None), 4, (4, 9), 4),
        ("only an aborted transaction is there", Tail(0, 5, None), 0, (0, 9), 0),
        ("retention has emptied both, of all that was copied", Tail(5, 5, None), 7, (7, 7), 7),
    ],
)
def test_where_a_copy_starts(
    case: str, tail: Tail, floor: int | None, source: tuple[int, int], start: int
) -> None:
    floors = {} if floor is None else {0: floor}
    assert start_positions({0: tail}, floors, {0: source}) == {0: start}, case


@pytest.mark.parametrize(
    ("code", "tail", "floor", "source"),
    [
        ("destination_lost", Tail(0, 5, 7), 8, (0, 9)),
        ("destination_lost", Tail(5, 5, None), 7, (0, 9)),
        ("destination_lost", Tail(5, 5, None), None, (0, 9)),
        ("destination_lost", Tail(5, 5, None), None, (7, 7)),
        ("destination_lost", Tail(5, 5, None), 7, (0, 7)),
        ("destination_lost", Tail(5, 5, None), 7, (8, 8)),
        ("destination_lost", Tail(5, 5, None), 0, (0, 9)),
        ("destination_lost", Tail(0, 5, None), 5, (0, 9)),
        ("destination_lost", Tail(0, 0, None), 5, (0, 9)),
        ("source_gap", Tail(0, 5, 7), 7, (8, 9)),
        ("source_gap", Tail(0, 0, None), 4, (5, 9)),
        ("source_truncated", Tail(0, 9, 9), 9, (0, 8)),
    ],
)
def test_in_doubt_a_copy_does_not_start(
    code: str, tail: Tail, floor: int | None, source: tuple[int, int]
) -> None:
    floors = {} if floor is None else {0: floor}
    with pytest.raises(CopyError) as caught:
        start_positions({0: tail}, floors, {0: source})
    assert caught.value.code == code
    assert "partition 0" in caught.value.reason
    assert "delete the link" in caught.value.reason
    assert not caught.value.retriable


@pytest.mark.parametrize(
    ("case", "tail", "floor", "start"),
    [
        ("the last record was the end of a row", Tail(0, 9, 5), 7, 7),
        ("no row is left", Tail(0, 9, None), 7, 7),
        ("more was copied than the log knows", Tail(0, 9, 8), 7, 8),
        ("nothing was ever copied", Tail(0, 0, None), None, 0),
    ],
)
def test_what_compaction_may_have_removed_is_not_missed(
    case: str, tail: Tail, floor: int | None, start: int
) -> None:
    floors = {} if floor is None else {0: floor}
    assert start_positions({0: tail}, floors, {0: (0, 9)}, compacted=True) == {0: start}, case


def test_a_compacted_copy_that_was_cut_is_lost_all_the_same() -> None:
    with pytest.raises(CopyError) as caught:
        start_positions({0: Tail(4, 9, None)}, {0: 7}, {0: (0, 9)}, compacted=True)
    assert caught.value.code == "destination_lost"


def test_source_and_copy_need_the_same_partitions() -> None:
    with pytest.raises(CopyError) as caught:
        start_positions({0: Tail(0, 0, None)}, {}, {0: (0, 0), 1: (0, 0)})
    assert caught.value.code == "partitions_differ"
