"""Kafka's record batches, byte by byte: what a record is, whoever wrote it and whoever reads it.

Brokers take records that clients do not agree about. Of an uncompressed batch they look at no
offset of a record (its place in the batch), take any negative length for null, and of a length the
lowest 32 bits, though five bytes of it have 35. Here a record's
offset is that of its batch and its number in it, so that none is read twice, or as another one.

Format: https://kafka.apache.org/documentation/#recordbatch, magic 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from mesh_events.errors import StateFaultError

_HEADER = Struct(">qiibIhiqqqhii")
_FRAME = Struct(">qi")
"""Base offset, and the number of bytes that follow."""
_APPEND_TIME, _TRANSACTIONAL, _CONTROL, _COMPRESSION = 0x08, 0x10, 0x20, 0x07
_MAGIC, _OLD_HEADER = 16, 18
"""Where a batch of any format has its format's number, and the length of the oldest header."""
_MOST_HEADERS = 100_000
"""librdkafka reads none of a record that has more."""
_LONGEST_END = 1024
"""Bytes of a header that is looked for from the end of a record."""

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as Kafka holds it, with the questions that a message of confluent-kafka answers."""

    _offset: int
    _timestamp: tuple[int, int]
    _key: bytes | None
    _value: bytes | None
    _headers: list[Header]

    def offset(self) -> int:
        """Its place on the partition."""
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        """(kind, ms since 1970); kinds are confluent-kafka's."""
        return self._timestamp

    def key(self) -> bytes | None:
        """Its key, None where the length is negative."""
        return self._key

    def value(self) -> bytes | None:
        """Its value, None where the length is negative."""
        return self._value

    def headers(self) -> list[Header]:
        """Its headers in their order; none where librdkafka reads none."""
        return self._headers

    def error(self) -> None:
        """A record is no error."""


def stored(data: bytes) -> Iterator[tuple[int, list[Stored]]]:
    """(offset behind it, its records) for each whole batch; markers of transactions are no records.

    Args:
        data: batches as they stand on the partition; the last one may be cut off.

    Raises:
        StateFaultError: it is compressed, or no batch that a broker takes.
    """
    for base, found in _framed(data, _HEADER.size):
        try:
            yield _batch(found, base)
        except (IndexError, ValueError) as error:
            raise StateFaultError(f"the batch at offset {base} is no batch: {error}") from error


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch by its header; `packed` are its records, as they were compressed.

    last: offset of its last record, which compaction may have removed.
    is_old: of a format whose records have no headers; `packed` is not to be read.
    producer_id: -1 without one.
    """

    base: int
    last: int
    is_old: bool
    compression: int
    is_transactional: bool
    is_control: bool
    producer_id: int
    count: int
    packed: memoryview

    @property
    def is_full(self) -> bool:
        """Whether each of its offsets has a record."""
        return self.count == self.last - self.base + 1


def batches(data: bytes) -> Iterator[Batch]:
    """Each whole batch, by its header alone.

    Of the formats before 2, whose records have no headers, a message is a batch of one record; a
    compressed one has the offset of the last record in it.

    Args:
        data: batches as they stand on the partition; the last one may be cut off.

    Raises:
        StateFaultError: it is no batch that a broker takes.
    """
    for base, found in _framed(data, _OLD_HEADER):
        if found[_MAGIC] < 2:
            yield Batch(base, base, True, 0, False, False, -1, 1, found[_OLD_HEADER:])
        elif found[_MAGIC] == 2 and len(found) >= _HEADER.size:
            *_, attributes, last, _, _, producer, _, _, count = _HEADER.unpack_from(found)
            yield Batch(
                base,
                base + last,
                False,
                attributes & _COMPRESSION,
                bool(attributes & _TRANSACTIONAL),
                bool(attributes & _CONTROL),
                producer,
                count,
                found[_HEADER.size :],
            )
        else:
            raise StateFaultError(f"the batch at offset {base} is no batch of a format up to 2")


def last_record(
    batch: Batch, records: bytes | memoryview, within: tuple[int, int]
) -> tuple[int, list[Header]] | None:
    """(offset, headers) of the last record within [first, end); None without one.

    Of a batch whose offsets all have a record its place is what counts, else what it says.

    Args:
        batch: its header.
        records: its records, no longer compressed.
        within: offsets.

    Raises:
        ValueError: they are no records.
    """
    bytes_of = _Bytes(memoryview(records), 0)
    try:
        if not batch.is_full:
            return _last_that_says(batch, bytes_of, within)
        place = min(batch.last + 1, within[1]) - batch.base - 1
        if batch.base + place < max(batch.base, within[0]):
            return None
        for _ in range(place):
            bytes_of.skip()
        return batch.base + place, bytes_of.record()[-1]
    except IndexError as error:
        raise ValueError("its records are cut off") from error


def _last_that_says(
    batch: Batch, bytes_of: "_Bytes", within: tuple[int, int]
) -> tuple[int, list[Header]] | None:
    found: tuple[int, _Bytes] | None = None
    for _ in range(batch.count):
        here = bytes_of.copy()
        offset = batch.base + bytes_of.delta()
        if within[0] <= offset < within[1]:
            found = offset, here
    return None if found is None else (found[0], found[1].record()[-1])


def headers_of(
    batch: Batch, records: bytes | memoryview, names: Sequence[bytes] = ()
) -> Iterator[tuple[int, list[Header]]]:
    """(offset, headers) of each record; of offsets as `last_record` has them.

    names: of a record that ends with headers of these names, only they are told, from the first
        name that is there on: the rest is not looked at.

    Raises:
        ValueError: they are no records.
    """
    data, ends = bytes(records), [(bytes([2 * len(name)]) + name, name.decode()) for name in names]
    bytes_of = _Bytes(memoryview(data), 0)
    try:
        for place in range(batch.count):
            found = bytes_of.ends(data, ends) if batch.is_full else []
            said, headers = (place, found) if found else bytes_of.place()
            yield batch.base + (place if batch.is_full else said), headers
    except IndexError as error:
        raise ValueError("its records are cut off") from error


def is_abort(control: Batch) -> bool:
    """Whether a batch of markers says that a transaction was aborted."""
    _, key, *_ = _Bytes(control.packed, 0).record()
    return key is not None and key[2:4] == b"\0\0"


def _framed(data: bytes, least: int) -> Iterator[tuple[int, memoryview]]:
    """(first offset, bytes) of each batch that is there as a whole."""
    at = 0
    while at + least <= len(data):
        base, length = _FRAME.unpack_from(data, at)
        end = at + _FRAME.size + length
        if end > len(data):
            return
        if end < at + least:
            raise StateFaultError(f"the batch at offset {base} is no batch: it is too short")
        yield base, memoryview(data)[at:end]
        at = end


def _batch(data: memoryview, base: int) -> tuple[int, list[Stored]]:
    _, _, _, magic, _, attributes, last, first_time, last_time, *_, count = _HEADER.unpack_from(
        data
    )
    if magic != 2:
        raise ValueError(f"format {magic} is not read")
    if attributes & _COMPRESSION:
        raise ValueError("it is compressed, and the log's topic is compression.type=uncompressed")
    records: list[Stored] = []
    if not attributes & _CONTROL:
        bytes_of = _Bytes(data, _HEADER.size)
        for number in range(count):
            later, key, value, headers = bytes_of.record()
            if attributes & _APPEND_TIME:
                time = TIMESTAMP_LOG_APPEND_TIME, last_time
            else:
                time = TIMESTAMP_CREATE_TIME, first_time + later
            records.append(Stored(base + number, time, key, value, headers))
    return base + last + 1, records


class _Bytes:
    """The records of a batch, one after the other."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at

    def copy(self) -> "_Bytes":
        """The same place, to go on from again."""
        return _Bytes(self._data, self._at)

    def skip(self) -> None:
        """Go on behind a record."""
        length = self._length()
        self._at += length
        if length < 0 or self._at > len(self._data):
            raise ValueError("a record is longer than its batch")

    def delta(self) -> int:
        """What a record says of its place in the batch; goes on behind it."""
        inside = self.copy()
        self.skip()
        inside._length()  # noqa: SLF001 - of the same class
        inside._at += 1  # noqa: SLF001
        inside._number()  # noqa: SLF001
        return inside._number()  # noqa: SLF001

    def record(self) -> tuple[int, bytes | None, bytes | None, list[Header]]:
        """(ms behind the batch's first time, key, value, headers)."""
        end = self._length() + self._at
        self._at += 1  # attributes: none are in use
        time = self._number()
        self._number()  # what the writer says of its place
        key = self._text(end, self._length())
        value = self._text(end, self._length())
        headers = self._headers(end)
        self._at = end
        return time, key, value, headers

    def ends(self, data: bytes, names: list[tuple[bytes, str]]) -> list[Header]:
        """The last headers, where the very last has the last of the names; goes on behind them.

        data: the same bytes, in which it is quicker to search.
        names: each behind its length, and as a text.
        """
        begin, size, shift = self._at + 1, data[self._at], 7
        if size >= 0x80:
            size &= 0x7F
            # a batch is of less than two to the 34th bytes
            while shift < 35:
                part, begin = data[begin], begin + 1
                size |= (part & 0x7F) << shift
                shift += 7
                if part < 0x80:
                    break
        end = at = begin + (size >> 1)
        if size & 1 or end > len(data):
            return []
        found: list[Header] = []
        for name, text in reversed(names):
            place = data.rfind(name, max(begin, at - _LONGEST_END), at)
            if place < 0:
                break
            value = place + len(name) + 1
            length = data[value - 1]
            if length >= 0x80:
                length, value = (length & 0x7F) | data[value] << 7, value + 1
            if value + (length >> 1) != at or length & 1:
                break
            found.insert(0, (text, data[value:at]))
            at = place
        if found:
            self._at = end
        return found

    def place(self) -> tuple[int, list[Header]]:
        """(what a record says of its place in the batch, headers); goes on behind it."""
        end = self._length() + self._at
        if end > len(self._data):
            raise ValueError("a record is longer than its batch")
        self._at += 1  # attributes
        self._number()  # time
        place = self._number()
        for _ in ("key", "value"):
            length = self._length()
            self._at += max(0, length)
        headers = self._headers(end)
        self._at = end
        return place, headers

    def _headers(self, end: int) -> list[Header]:
        """As librdkafka reads them: all or none, a name up to its first zero byte."""
        count = self._number()
        if not 0 < count <= _MOST_HEADERS:
            return []
        found: list[Header] = []
        try:
            for _ in range(count):
                name = self._text(end, self._number())
                length = self._number()
                if name is None or length < -1:
                    return []
                value = self._text(end, length)
                found.append((name.partition(b"\0")[0].decode(), value))
        except ValueError:
            # a name that is no text, or a length with more bits than the broker has read
            return []
        return found

    def _text(self, end: int, length: int) -> bytes | None:
        if length < 0:
            return None
        begin, self._at = self._at, self._at + length
        if self._at > end:
            raise ValueError("a length in a record is longer than the record")
        return bytes(self._data[begin : self._at])

    def _length(self) -> int:
        """A signed number of 32 bits; what is written above them is dropped, as brokers do."""
        return _signed(self._unsigned() & 0xFFFFFFFF)

    def _number(self) -> int:
        """A signed number of 64 bits."""
        return _signed(self._unsigned())

    def _unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return found
            shift += 7
            if shift > 63:
                raise ValueError("a number has more than ten bytes")


def _signed(number: int) -> int:
    """A number out of Protobuf's zig-zag form."""
    return (number >> 1) ^ -(number & 1)
