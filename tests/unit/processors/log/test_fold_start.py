"""How a worker reads what waits in the snapshot that it begins at."""

from collections.abc import Iterator
from typing import Any

import pytest

from mesh_events.record import Record
from processors.log.fold_start import _NEAR, _records
from snapshots.history import OtherLogError


class Reader:
    """A log without records at the offsets `gone`; what was asked for, in order."""

    def __init__(self, *gone: int) -> None:
        self.asked: list[tuple[int, int]] = []
        self._gone = gone

    def between(self, first: int, last: int) -> Iterator[Record]:
        self.asked.append((first, last))
        for offset in range(first, last + 1):
            if offset not in self._gone:
                yield Record(offset, 0, None, b"", {})


def read(reader: Reader, offsets: list[int]) -> dict[int, Record]:
    log: Any = reader
    return _records(log, offsets)


def test_records_that_stand_near_each_other_are_read_in_one_pass() -> None:
    reader, far = Reader(), 8 + _NEAR + 1
    found = read(reader, [far, 3, 7, 8])
    assert sorted(found) == [3, 7, 8, far]
    assert all(record.offset == offset for offset, record in found.items())
    assert reader.asked == [(3, 8), (far, far)]


def test_a_record_that_is_not_there_is_another_log() -> None:
    with pytest.raises(OtherLogError) as told:
        read(Reader(7), [3, 7, 8])
    assert told.value.first == 7


def test_nothing_is_read_where_nothing_waits() -> None:
    reader = Reader()
    assert read(reader, []) == {}
    assert reader.asked == []
