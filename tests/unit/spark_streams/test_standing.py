"""Which records of a source stand in a topic that was filled from it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_streams import standing as module
from spark_streams.errors import CopyError
from spark_streams.log import TooLongError
from spark_streams.provenance import HEADER, Origin, Provenance
from spark_streams.sql.running.again import again
from spark_streams.standing import AGAIN, Filled, Standing, standing
from spark_streams.tail import Tail
from tests.links.memory import Headers, MemoryCluster, MemoryPartition

ORIGIN, OTHER = Origin("east", "id/1"), Origin("east", "id/2")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST", 1)


@pytest.fixture
def west() -> MemoryCluster:
    made = MemoryCluster("west")
    made.create_topic("filled", 1, {})
    return made


def place(offset: int, until: int | None = None, origin: Origin = ORIGIN) -> Headers:
    again = () if until is None else ((AGAIN, str(until).encode()),)
    return (*again, (HEADER, Provenance(origin, 0, offset).encode()))


def fill(west: MemoryCluster, *records: Headers) -> MemoryPartition:
    (partition,) = west.topics["filled"].partitions
    for headers in records:
        partition.append(b"k", headers)
    return partition


def stood(west: MemoryCluster, floor: int, told: int = 0, begin: int = 0, **says: bool) -> Standing:
    (partition,) = west.topics["filled"].partitions
    tails = {0: Tail(partition.low, partition.end, None)}
    filled = Filled("filled", tails, {0: told}, {0: begin}, **says)
    return standing(west, filled, {0: floor}, ORIGIN)[0]


def places(found: Standing) -> list[int]:
    bits = "".join(f"{one:08b}"[::-1] for one in found.places)
    return [found.floor + index for index, bit in enumerate(bits) if bit == "1"]


def test_what_stands_there_from_a_place_on_is_found(west: MemoryCluster) -> None:
    fill(west, *[place(offset) for offset in (1, 4, 5, 9)])
    found = stood(west, floor=4)
    assert (found.known, found.next, places(found)) == (4, 10, [4, 5, 9])
    assert places(stood(west, floor=10)) == []


def test_of_a_topic_without_records_all_is_known(west: MemoryCluster) -> None:
    found = stood(west, floor=4, told=9)
    assert (found.known, found.next) == (4, 4)


def test_of_an_emptied_topic_what_was_told_is_not_known(west: MemoryCluster) -> None:
    fill(west, place(4), place(7)).expire(2)
    assert stood(west, floor=4, told=8).known == 8
    assert stood(west, floor=4).known == 4, "it did not come to a rest since: nothing was told"


def test_before_what_is_left_nothing_is_known(west: MemoryCluster) -> None:
    """Its retention has passed, or somebody deleted records."""
    fill(west, place(4), place(7), place(9)).expire(1)
    found = stood(west, floor=2)
    assert (found.known, places(found)) == (7, [7, 9])


def test_before_an_offset_without_a_record_nothing_is_known(west: MemoryCluster) -> None:
    """Compaction removes a row once there is a later one with its key."""
    partition = fill(west, *[place(offset) for offset in range(10)])
    del partition.records[5]
    found = stood(west, floor=2)
    assert (found.known, places(found)[-4:]) == (6, [6, 7, 8, 9])
    assert stood(west, floor=7).known == 7
    # also where a step back ends there
    del partition.records[8]
    assert (stood(west, floor=2).known, stood(west, floor=9).known) == (9, 9)


@pytest.mark.parametrize("markers", [1, 2, 40])
def test_the_ends_of_transactions_are_no_gaps(west: MemoryCluster, markers: int) -> None:
    """Who may write to the topic can end transactions there that have no record."""
    partition = fill(west, *[place(offset) for offset in range(10)])
    for _ in range(markers):
        partition.mark()
    found = stood(west, floor=2)
    assert (found.known, found.next, places(found)) == (2, 10, [*range(2, 10)])
    fill(west, place(10))
    found = stood(west, floor=2)
    assert (found.known, found.next, places(found)) == (2, 11, [*range(2, 11)])


def test_behind_a_last_offset_that_is_gone_nothing_before_it_is_known(west: MemoryCluster) -> None:
    partition = fill(west, *[place(offset) for offset in range(10)])
    del partition.records[9]
    assert stood(west, floor=2).known >= 2
    found = stood(west, floor=2)
    assert found.known >= found.next


def test_what_takes_too_long_to_look_through_is_told(
    west: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(west, place(1))

    def each(topic: str, *_: object) -> None:
        raise TooLongError(f"reading {topic}", 1.0)

    monkeypatch.setattr(west, "each", each)
    with pytest.raises(CopyError) as told:
        stood(west, floor=0)
    assert told.value.code == "too_much_again"


def test_a_record_that_may_stand_behind_later_ones_does_not_end_the_search(
    west: MemoryCluster,
) -> None:
    fill(west, place(1), place(8), place(2, until=9), place(10))
    assert places(stood(west, floor=3, says=True)) == [8, 10]
    assert stood(west, floor=9, says=True).known == 9


def test_behind_a_gap_only_what_is_behind_all_of_before_is_known(west: MemoryCluster) -> None:
    fill(west, place(8), place(2, until=9), place(10)).expire(1)
    found = stood(west, floor=1, says=True)
    assert (found.known, places(found)) == (9, [2, 10])


@pytest.mark.parametrize("value", [b"9", None, b"-9", b"", b"9" * 20])
def test_only_a_topic_whose_headers_are_the_meshs_says_so(
    west: MemoryCluster, value: bytes | None
) -> None:
    """A result has the headers of the stream's record."""
    fill(west, place(1), place(8), ((AGAIN, value), *place(2)))
    assert places(stood(west, floor=3, says=False)) == []
    if value != b"9":
        assert places(stood(west, floor=3, says=True)) == []


@pytest.mark.parametrize("headers", [(), ((HEADER, b"x"),), place(5, origin=OTHER)])
def test_a_record_of_somebody_else_closes_it(west: MemoryCluster, headers: Headers) -> None:
    fill(west, place(4), headers, place(6))
    with pytest.raises(CopyError, match="filled/0 offset 1") as caught:
        stood(west, floor=4)
    assert caught.value.code == "destination_foreign"


def test_what_is_of_an_earlier_life_ends_the_search(west: MemoryCluster) -> None:
    fill(west, place(9, origin=OTHER), place(4), place(6))
    found = stood(west, floor=4, begin=1)
    assert (found.known, places(found)) == (4, [4, 6])
    # of the same stream, what was told when it ended counts
    found = stood(west, floor=3, told=5, begin=2)
    assert (found.known, places(found)) == (4, [4, 6])
    # the stream was cut, and its offsets mean something else by now
    assert places(stood(west, floor=4, begin=2)) == [6]


@pytest.mark.parametrize(
    ("clock", "bound"), [("thread_time", "MOST_CPU_S"), ("monotonic", "MOST_S")]
)
def test_nobody_is_read_back_for_long_whatever_stands_there(
    west: MemoryCluster, monkeypatch: pytest.MonkeyPatch, clock: str, bound: str
) -> None:
    # places before the floor are none that are kept, and take as long to read
    fill(west, *[place(1, until=9) for _ in range(100)])
    monkeypatch.setattr(module, "_LOOK", 10)
    now = iter(range(1_000_000))
    monkeypatch.setattr(module.time, clock, lambda: next(now))
    monkeypatch.setattr(module, bound, 20)
    assert stood(west, floor=2, says=True).known == 2
    monkeypatch.setattr(module, bound, 2)
    with pytest.raises(CopyError) as caught:
        stood(west, floor=2, says=True)
    assert caught.value.code == "too_much_again"


def test_more_than_there_is_room_for_is_refused(
    west: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(west, *[place(offset) for offset in (1, 2, 3, 4, 5, 6, 7)])
    monkeypatch.setattr(module, "MOST_PLACES", 5)
    assert places(stood(west, floor=3)) == [3, 4, 5, 6, 7]
    with pytest.raises(CopyError) as caught:
        stood(west, floor=2)
    assert caught.value.code == "too_much_again"
    assert "behind offset 2 of the stream's partition 0" in caught.value.reason


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, int | None]]:
    """(place, what it says) of each record, as starts one after the other leave them."""
    found: list[tuple[int, int | None]] = []
    until = 0
    for _ in range(draw(st.integers(1, 4))):
        late = draw(st.lists(st.integers(0, max(0, until - 1)), max_size=3, unique=True))
        known = {one for one, _ in found}
        found += [(one, until) for one in sorted(late) if one not in known and one < until]
        until += draw(st.integers(0, 3))
        for step in draw(st.lists(st.integers(0, 3), max_size=6)):
            found.append((until + step, None))
            until += step + 1
    return found


@given(logs(), st.integers(0, 20), st.integers(0, 12), st.sets(st.integers(0, 20), max_size=2))
def test_what_is_known_is_right_whatever_was_removed(
    log: list[tuple[int, int | None]], floor: int, low: int, holes: set[int]
) -> None:
    west = MemoryCluster("west")
    west.create_topic("filled", 1, {})
    partition = fill(west, *[place(*one) for one in log])
    for hole in holes:
        partition.records.pop(hole, None)
    partition.expire(min(low, partition.end))
    told = max((one for one, _ in log), default=-1) + 1
    found = stood(west, floor, told=told, says=True)
    every = {one for one, _ in log if one >= found.known}
    assert {one for one in places(found) if one >= found.known} == every
    if len(partition.records) == len(log):
        assert found.known == floor


def of(floor: int, known: int, *there: int) -> Mapping[int, Standing]:
    bits = sum(1 << one - floor for one in there)
    until = max(there, default=floor - 1) + 1
    return {
        0: Standing(
            floor, known, until, bytearray(bits.to_bytes((until - floor + 7) // 8, "little"))
        )
    }


def test_what_stands_in_one_of_two_topics_is_told_from_where_both_are_known() -> None:
    found = again(of(4, 4, 5, 9, 13), of(4, 6, 4, 7))
    assert (found.floor, found.known, found.until) == ({0: 4}, {0: 6}, {0: 14})
    assert found.stands == {0: bytes([0b00101011, 0b10])}
    assert again(of(4, 4), of(4, 9)) == again({}, {})
