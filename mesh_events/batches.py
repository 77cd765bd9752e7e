"""Kafka's record batches, byte by byte: what a record is, whoever wrote it and whoever reads it.

Brokers take records that clients do not agree about. Of an uncompressed batch they look at no
offset of a record (its place in the batch), take any negative length for null, and of a length the
lowest 32 bits, though five bytes of it have 35. Here a record's
offset is that of its batch and its number in it, so that none is read twice, or as another one.

Format: https://kafka.apache.org/documentation/#recordbatch, magic 2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from mesh_events.errors import StateFaultError

_HEADER = Struct(">qiibIhiqqqhii")
_FRAME = Struct(">qi")
"""Base offset, and the number of bytes that follow."""
_APPEND_TIME, _CONTROL, _COMPRESSION = 0x08, 0x20, 0x07
_MOST_HEADERS = 100_000
"""librdkafka reads none of a record that has more."""

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
    at = 0
    while at + _HEADER.size <= len(data):
        base, length = _FRAME.unpack_from(data, at)
        end = at + _FRAME.size + length
        if end > len(data):
            return
        try:
            yield _batch(memoryview(data)[at:end], base)
        except (IndexError, ValueError) as error:
            raise StateFaultError(f"the batch at offset {base} is no batch: {error}") from error
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
