"""Records reach the fold in order and whole, whoever brings them and whatever is cancelled."""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest

from mesh_events.errors import InfrastructureError
from mesh_events.record import Record
from processors.governor.governor import Governor
from processors.log import fold as log_fold
from processors.log.fold import LogFold
from tests.memory_log import MemoryLog


def record(offset: int) -> Record:
    return Record(offset, 0, b"", b"", {})


class Folding:
    """A governor that keeps the offsets that it folded, and passes over what it has."""

    def __init__(self) -> None:
        self.image = MemoryLog().image._replace(offset=-1)
        self.folded: list[int] = []

    def fold(self, records: Iterable[Record], *, ours: bool = False) -> None:
        del ours
        for one in records:
            if one.offset > self.image.offset:
                self.image = self.image._replace(offset=one.offset)
                self.folded.append(one.offset)

    def caught_up(self) -> None:
        """Nothing is believed."""


class Log:
    """A log of so many records. Its readers share what was fetched, as a Kafka client does."""

    def __init__(self, count: int) -> None:
        self.count, self.fails = count, 0
        self.goes_on, self.begun = threading.Event(), threading.Event()
        self.goes_on.set()
        self.made: list[Log.Reader] = []

    class Reader:
        def __init__(self, log: "Log") -> None:
            self._log, self.partition = log, self
            self.closed = False
            self._next = 0

        def since(self, offset: int) -> Iterator[Record]:
            self._next = offset
            while self._next < self._log.count:
                self._log.begun.set()
                self._log.goes_on.wait(20)
                if self._log.fails:
                    self._log.fails -= 1
                    raise InfrastructureError("no broker", retriable=True)
                self._next += 1
                yield record(self._next - 1)

        def rest(self) -> None:
            """Nothing is fetched."""

        def close(self) -> None:
            self.closed = True

    def reader(self, *_: Any) -> "Log.Reader":
        self.made.append(self.Reader(self))
        return self.made[-1]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    found = Log(1000)
    monkeypatch.setattr(log_fold, "LogReader", found.reader)
    return found


def fold_over(governor: Folding) -> LogFold:
    return LogFold(cast("Any", None), cast("Governor", governor))


def test_a_read_that_is_cancelled_takes_no_record_from_the_next_one(log: Log) -> None:
    """A rebalance cancels whoever reads; its thread goes on beside the next leadership's."""
    governor = Folding()

    async def scene() -> None:
        fold = fold_over(governor)
        log.goes_on.clear()
        first = asyncio.create_task(fold.catch_up())
        await asyncio.to_thread(log.begun.wait, 20)
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.create_task(fold.catch_up())
        await asyncio.sleep(0)
        log.goes_on.set()
        await asyncio.wait_for(second, 20)

    asyncio.run(scene())
    assert governor.folded == list(range(1000))


def test_the_log_is_read_when_it_has_come_further_than_it_is_folded(log: Log) -> None:
    governor = Folding()

    async def scene() -> None:
        fold = fold_over(governor)
        await fold.read_to(0)
        await fold.read_to(999)

    asyncio.run(scene())
    assert governor.folded == list(range(1000))
    assert len(log.made) == 1


def test_what_is_folded_already_is_not_read(log: Log) -> None:
    governor = Folding()

    async def scene() -> None:
        fold = fold_over(governor)
        await fold.echo([record(0), record(1)])
        await fold.read_to(1)

    asyncio.run(scene())
    assert governor.folded == [0, 1]
    assert log.made == []


def test_what_was_appended_far_ahead_is_read_with_what_stands_before_it(log: Log) -> None:
    governor = Folding()
    asyncio.run(fold_over(governor).echo([record(998), record(999)]))
    assert governor.folded == list(range(1000))


def test_a_reader_that_fails_is_not_used_again(log: Log) -> None:
    governor = Folding()

    async def scene() -> None:
        fold = fold_over(governor)
        log.fails = 1
        with pytest.raises(InfrastructureError):
            await fold.catch_up()
        await fold.catch_up()

    asyncio.run(scene())
    assert [one.closed for one in log.made] == [True, False]
    assert governor.folded == list(range(1000))
