import pytest

from spark_streams.errors import CopyError
from spark_streams.lag import behind, copied, record_ends
from spark_streams.log import TooLongError
from spark_streams.provenance import HEADER, Origin, Provenance
from spark_streams.tail import Tail, positions, read_tail
from tests.links.memory import MemoryCluster

ORIGIN = Origin("east", "id/1")


def place(offset: int, partition: int = 0, origin: Origin = ORIGIN) -> tuple[str, bytes]:
    return HEADER, Provenance(origin, partition, offset).encode()


@pytest.fixture
def west() -> MemoryCluster:
    made = MemoryCluster("west")
    made.create_topic("copy", 2, {})
    return made


def tails(west: MemoryCluster) -> dict[int, Tail]:
    return read_tail(west, "copy", 2, ORIGIN)


def code_of(west: MemoryCluster) -> str:
    with pytest.raises(CopyError) as caught:
        tails(west)
    return caught.value.code


def test_the_tail_is_behind_the_last_copied_record(west: MemoryCluster) -> None:
    first, second = west.topics["copy"].partitions
    first.append(b"k", (place(7),))
    first.append(b"k", (place(9),))
    assert tails(west) == {0: Tail(0, 2, 10), 1: Tail(0, 0, None)}
    assert positions(tails(west)) == {0: 10}
    second.append(b"k", (("other", b"1"), place(0, 1)))
    assert positions(tails(west)) == {0: 10, 1: 1}


def test_a_copy_of_a_copy_counts_its_own_header(west: MemoryCluster) -> None:
    """A product may be a copy itself: the last header is this link's."""
    west.topics["copy"].partitions[0].append(b"k", (place(90, 4, Origin("north", "n")), place(3)))
    assert positions(tails(west)) == {0: 4}


def test_markers_behind_the_last_record_are_passed_over(west: MemoryCluster) -> None:
    partition = west.topics["copy"].partitions[0]
    partition.append(b"k", (place(5),))
    for _ in range(40):
        partition.mark()
    assert tails(west)[0] == Tail(0, 41, 6)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("other", b"1"),),
        ((HEADER, b"nonsense"),),
        ((HEADER, None),),
        (place(5, 1),),
        (place(5, 0, Origin("east", "id/2")),),
        (place(5, 0, Origin("north", "id/1")),),
        (place(5), (HEADER, b"nonsense")),
    ],
)
def test_a_record_that_is_not_this_links_closes_the_copy(
    west: MemoryCluster, headers: tuple
) -> None:
    partition = west.topics["copy"].partitions[0]
    partition.append(b"k", (place(4),))
    partition.append(b"k", headers)
    assert code_of(west) == "destination_foreign"


def test_the_fault_names_the_place(west: MemoryCluster) -> None:
    west.topics["copy"].partitions[1].append(b"k")
    with pytest.raises(CopyError, match="copy/1 offset 0 was not written by a link"):
        tails(west)


def test_lag_counts_records_ahead_and_no_markers_at_the_end(west: MemoryCluster) -> None:
    east = MemoryCluster("east")
    east.create_topic("source", 2, {})
    source, _ = east.topics["source"].partitions
    for n in range(5):
        source.append(str(n).encode())
    source.mark()
    assert behind(east, "source", {0: 2, 1: 0}) == {0: 3, 1: 0}
    assert behind(east, "source", {0: 5, 1: 0}) == {0: 0, 1: 0}
    west.topics["copy"].partitions[0].append(b"0", (place(0),))
    come = copied(east, "source", west, "copy", 2, ORIGIN)
    assert behind(east, "source", come) == {0: 4, 1: 0}


def test_lag_of_an_empty_copy_begins_where_the_source_begins(west: MemoryCluster) -> None:
    east = MemoryCluster("east")
    east.create_topic("source", 2, {})
    source, _ = east.topics["source"].partitions
    for n in range(5):
        source.append(str(n).encode())
    source.expire(3)
    come = copied(east, "source", west, "copy", 2, ORIGIN)
    assert behind(east, "source", come) == {0: 2, 1: 0}


def test_a_last_record_that_is_not_found_in_time_is_told(
    west: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last(topic: str, *_: object, **__: object) -> None:
        raise TooLongError(f"reading {topic}", 1.0)

    monkeypatch.setattr(west, "last", last)
    assert code_of(west) == "destination_unreadable"
    # a copy of it is filled once no record is ahead, which the end is behind as well
    west.topics["copy"].partitions[0].append(b"k")
    assert record_ends(west, "copy", {0: 0, 1: 3}) == {0: 1, 1: 3}
