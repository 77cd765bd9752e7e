"""The last record of a partition, out of batches as brokers hold them."""

import zlib
from collections.abc import Iterator, Mapping
from operator import itemgetter
from struct import pack_into
from typing import ClassVar

import pyarrow as pa
import pytest

from mesh_events.errors import StateFaultError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.raw_fetch import Answer
from spark_streams import log as module
from spark_streams.last import Each, First, Last, Search
from spark_streams.log import Ahead, KafkaLog, TooLongError
from spark_streams.unpacking import MOST_UNPACKED, UnreadError, unpacked
from tests.odd_batches import batch, header, number, record

KINDS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
HEADERS = [header(b"place", b"7")]
FOUND = (("place", b"7"),)


def last(
    data: bytes, within: tuple[int, int], end: int | None = None, *, headers: bool = True
) -> Last | None:
    search = Search(*within, committed=False)
    search.take(Answer(data, within[1] if end is None else end, -1))
    assert search.is_done
    return search.last(headers=headers)


def compacted(*records: bytes, base: int, last: int) -> bytes:
    """A batch that compaction has taken records from: it keeps its last offset."""
    found = bytearray(batch(*records, base=base))
    pack_into(">i", found, 23, last - base)
    return bytes(found)


def packed(kind: int, *records: bytes, base: int = 0) -> bytes:
    """A compressed batch."""
    whole = batch(*records, attributes=kind, base=base)
    body = pa.Codec(KINDS[kind]).compress(whole[61:], asbytes=True)
    found = bytearray(whole[:61] + body)
    pack_into(">i", found, 8, len(found) - 12)
    return bytes(found)


def test_the_last_record_within_offsets_is_found() -> None:
    data = batch(record(), record(delta=1), record(headers=HEADERS, delta=2), base=4)
    assert last(data, (0, 7)) == Last(6, FOUND)
    assert last(data, (0, 6)) == Last(5, ())
    assert last(data, (7, 9), end=7) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_batch_is_read(kind: int) -> None:
    data = packed(kind, record(), record(headers=HEADERS, delta=1), base=4)
    assert last(data, (0, 6)) == Last(5, FOUND)


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_batch_that_unpacks_to_very_much_the_place_is_known(kind: int) -> None:
    found = last(packed(kind, record(value=bytes(MOST_UNPACKED)), base=4), (0, 5))
    assert found is not None
    assert (found.offset, found.headers) == (4, ())
    assert found.unread == "unpacks to more than 32 MiB"


def test_without_headers_a_place_is_known_that_nothing_is_unpacked_for() -> None:
    data = batch(b"no records", b"of", b"any kind", attributes=1, base=4)
    assert last(data, (0, 7), headers=False) == Last(6, ())
    assert last(data, (0, 5), headers=False) == Last(4, ())
    assert last(data, (7, 7), headers=False) is None


def test_a_batch_of_very_many_records_is_not_walked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_streams.last.MOST_RECORDS", 2)
    found = last(batch(record(), record(), record(headers=HEADERS)), (0, 3))
    assert found is not None
    assert (found.offset, found.headers) == (2, ())
    assert "more than 2" in found.unread


def test_a_batch_without_records_is_passed_over() -> None:
    """Kafka's cleaner keeps the last batch of a producer, without its records."""
    data = batch(record(headers=HEADERS)) + compacted(base=1, last=3)
    assert last(data, (0, 4)) == Last(0, FOUND)


def test_of_a_compacted_batch_records_say_where_they_stand() -> None:
    data = compacted(record(headers=HEADERS), record(delta=3), base=2, last=9)
    assert last(data, (0, 10)) == Last(5, ())
    assert last(data, (0, 5)) == Last(2, FOUND)


def test_a_message_of_an_old_format_has_no_headers() -> None:
    data = bytearray(batch(record(), base=3))
    data[16] = 1
    assert last(bytes(data), (0, 4)) == Last(3, ())


def test_a_record_that_cannot_be_read_is_told_by_its_place() -> None:
    data = batch(number(99) + b"short", base=3)
    found = last(data, (0, 4))
    assert found is not None
    assert found.offset == 3
    assert "cannot be read" in found.unread


def test_what_is_no_batch_is_an_error() -> None:
    data = bytearray(batch(record()))
    data[16] = 7
    with pytest.raises(StateFaultError):
        last(bytes(data), (0, 1))


def test_snappy_in_the_blocks_of_the_java_library_is_unpacked() -> None:
    codec, found = pa.Codec("snappy"), b"\x82SNAPPY\0" + bytes(8)
    for part in (b"first", b"second"):
        block = codec.compress(part, asbytes=True)
        found += len(block).to_bytes(4) + block
    assert unpacked(2, memoryview(found)) == b"firstsecond"
    with pytest.raises(UnreadError, match="more than"):
        unpacked(2, memoryview(found), most=8)
    with pytest.raises(UnreadError, match="cut off"):
        unpacked(2, memoryview(found[:-1]))


@pytest.mark.parametrize("kind", [*KINDS, 5])
def test_what_is_not_packed_is_an_error(kind: int) -> None:
    with pytest.raises(UnreadError):
        unpacked(kind, memoryview(b"\xff" * 40))


def test_what_is_cut_off_is_an_error() -> None:
    whole = zlib.compress(bytes(1000), wbits=31)
    with pytest.raises(UnreadError):
        unpacked(1, memoryview(whole[:-9]))


def test_a_batch_that_lost_its_marker_to_the_cleaner_is_passed() -> None:
    """Brokers keep the empty batch of an active producer, and the last one that they cleaned."""
    marker = bytearray(batch(attributes=0x30, base=1))
    pack_into(">i", marker, 23, 0)
    data = batch(record(headers=HEADERS)) + bytes(marker)
    assert last(data, (0, 2)) == Last(0, FOUND)


def each(data: bytes, within: tuple[int, int], *names: bytes) -> list[Last]:
    found: list[Last] = []
    way = Each(*within, found.append, names)
    way.take(Answer(data, within[1], -1))
    assert way.is_done
    return found


@pytest.mark.parametrize("kind", [0, *KINDS])
def test_each_record_within_offsets_is_handed_over(kind: int) -> None:
    every = record(key=b"k", headers=HEADERS), record(value=b"v", delta=1), record(delta=2)
    data = packed(kind, *every, base=4) if kind else batch(*every, base=4)
    assert each(data, (0, 7)) == [Last(4, FOUND), Last(5, ()), Last(6, ())]
    assert each(data, (5, 6)) == [Last(5, ())]


WANTED = (b"second", b"last")


@pytest.mark.parametrize("value", [b"", b"v" * 63, b"v" * 64, b"v" * 5000, b"v" * 9000, None])
@pytest.mark.parametrize("size", [0, 63, 64, 900, 1100])
def test_of_headers_only_the_last_ones_that_are_wanted_are_told(
    value: bytes | None, size: int
) -> None:
    end, before = header(b"last", b"9" * size), header(b"second", b"8")
    every: list[tuple[bytes, ...]] = [
        (HEADERS[0], before, end), (before, HEADERS[0], end), (end, before), (end,), (),
        (header(b"other", end), before), (header(b"last", None),), (header(b"xlast", b"7"),),
    ]  # fmt: skip
    data = batch(*[record(value=value, headers=one, delta=at) for at, one in enumerate(every)])
    whole, found = each(data, (0, len(every))), each(data, (0, len(every)), *WANTED)
    for one, short in zip(whole, found, strict=True):
        assert one.offset == short.offset
        names = [name for name, _ in one.headers]
        if names[-1:] == ["last"]:
            assert short.headers == one.headers[-len(short.headers) :]
            assert len(short.headers) >= (2 if names[-2:] == ["second", "last"] else 1)
        else:
            assert short.headers == one.headers


def test_each_record_of_a_compacted_batch_says_where_it_stands() -> None:
    data = compacted(record(headers=HEADERS), record(delta=3), base=2, last=9)
    assert each(data, (0, 10)) == [Last(2, FOUND), Last(5, ())]


def test_each_message_of_an_old_format_has_no_headers() -> None:
    data = bytearray(batch(record(), base=3))
    data[16] = 1
    assert each(bytes(data), (0, 4)) == [Last(3, ())]


def test_of_a_batch_that_is_not_read_the_first_place_is_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (found,) = each(packed(4, record(value=bytes(MOST_UNPACKED)), base=4), (0, 5))
    assert (found.offset, found.unread) == (4, "unpacks to more than 32 MiB")
    (found,) = each(batch(number(99) + b"short", base=3), (0, 4))
    assert (found.offset, "cannot be read" in found.unread) == (3, True)
    (found,) = each(batch(record()[:-1], base=3), (0, 4))
    assert (found.offset, "cannot be read" in found.unread) == (3, True)
    cut = batch(record(headers=[header(b"last", b"77")])[:-1], base=3)
    (found,) = each(cut, (0, 4), *WANTED)
    assert (found.offset, "cannot be read" in found.unread) == (3, True)
    monkeypatch.setattr("spark_streams.last.MOST_RECORDS", 1)
    (found,) = each(batch(record(), record(delta=1), base=3), (0, 5))
    assert (found.offset, "more than 1 in a batch" in found.unread) == (3, True)


class Topic:
    """Partitions with one record each."""

    asked: ClassVar[list[int]] = []

    def __init__(self, *_: object) -> None:
        self.asked.clear()

    def fetch(self, _: str, offsets: Mapping[int, int], *__: int, **___: bool) -> dict[int, Answer]:
        self.asked.append(len(offsets))
        # a response has room for one
        first = next(iter(offsets))
        return {one: Answer(batch(record()) if one == first else b"", 1, 1) for one in offsets}

    def close(self) -> None:
        pass


def test_a_few_partitions_are_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds its last batch until it is done, of up to 17 MiB."""
    monkeypatch.setattr("spark_streams.log.RawTopics", Topic)
    log = KafkaLog(Connection("127.0.0.1:1", "nobody", "secret"))
    try:
        found = log.last("topic", dict.fromkeys(range(20), (0, 1)))
        asked, met = Topic.asked.copy(), list[tuple[int, Last]]()
        log.each("topic", dict.fromkeys(range(20), (0, 1)), lambda p, one: met.append((p, one)))
    finally:
        log.close()
    assert found == {number: Last(0, ()) for number in range(20)}
    assert asked == [*range(8, 0, -1), *range(8, 0, -1), *range(4, 0, -1)]
    assert sorted(met, key=itemgetter(0)) == [*found.items()]


def marker(base: int) -> bytes:
    """The end of a transaction that was committed."""
    return batch(record(key=b"\0\0\0\1", value=bytes(6)), attributes=0x30, base=base)


def test_ends_of_transactions_are_handed_over_as_such() -> None:
    data = batch(record()) + marker(1) + batch(record(), base=2) + marker(3)
    assert [(one.offset, one.is_marker) for one in each(data, (0, 3))] == [
        (0, False), (1, True), (2, False),
    ]  # fmt: skip


def test_the_first_record_is_found_behind_the_ends_of_transactions() -> None:
    data = marker(4) + marker(5) + batch(record(), record(delta=1), base=6) + batch(base=8)
    for start, place in ((4, 6), (6, 6), (7, 6)):
        way = First(start, 9, committed=True)
        way.take(Answer(data, 9, 9))
        assert way.is_done
        assert (way.position, way.last(headers=False) is not None) == (max(place, start), True)
    way = First(4, 6, committed=True)
    way.take(Answer(data, 9, 9))
    assert (way.is_done, way.position, way.last()) == (True, 6, None)


class Markers:
    """A topic whose partitions have ends of transactions without end."""

    def __init__(self, *_: object) -> None:
        pass

    def fetch(self, _: str, offsets: Mapping[int, int], *__: int, **___: bool) -> dict[int, Answer]:
        return {p: Answer(marker(at), END, END) for p, at in offsets.items()}

    def close(self) -> None:
        pass


END = 10**12


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaLog]:
    """The log of such a topic."""
    monkeypatch.setattr(module, "RawTopics", Markers)
    monkeypatch.setattr(module, "LAST_S", 0.2)
    log = KafkaLog(Connection("127.0.0.1:1", "nobody", "secret"))
    yield log
    log.close()


def test_the_last_record_is_looked_for_no_longer_than_there_is_time(endless: KafkaLog) -> None:
    with pytest.raises(TooLongError, match="without a record"):
        endless.last("topic", {0: (0, END), 1: (0, END)})
    with pytest.raises(TooLongError, match=r"more than 0\.1 s"):
        endless.each("topic", {0: (0, END)}, lambda *_: None, most_s=0.1)


def test_a_search_for_the_first_record_goes_on_where_the_one_before_had_to_end(
    endless: KafkaLog,
) -> None:
    found = endless.first("topic", {0: (5, END), 1: (7, 7), 2: (0, END)}, 0.1)
    assert found[1] == Ahead(7, is_record=False, is_known=True)
    assert found[0].offset > 5
    assert not found[0].is_known
    assert not found[0].is_none
    later = endless.first("topic", {0: (found[0].offset, END)}, 0.1)
    assert later[0].offset > found[0].offset


def test_an_answer_that_comes_late_counts_for_nothing_in_the_budget(
    endless: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka may stand still for seconds: a link must not end over it."""
    clock = [0.0]

    class Late(Topic):
        def fetch(
            self, _: str, offsets: Mapping[int, int], *__: int, **___: bool
        ) -> dict[int, Answer]:
            clock[0] += 30
            return super().fetch(_, offsets)

    monkeypatch.setattr(module, "RawTopics", Late)
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    found = endless.last("topic", dict.fromkeys(range(20), (0, 1)))
    assert found == {number: Last(0, ()) for number in range(20)}
