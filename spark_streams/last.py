"""Records of a partition by its batches as they stand there: which is the last, or each. Pure.

A batch is unpacked up to a bound; on the way to the last record only the one that holds it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from mesh_events.kafka.batches import Batch, batches, headers_of, is_abort, last_record
from mesh_events.kafka.raw_fetch import Answer
from spark_streams.unpacking import UnreadError, unpacked

Headers = tuple[tuple[str, bytes | None], ...]
MOST_RECORDS = 1_000_000
"""Records of a batch that is read: walking through them takes a second."""


@dataclass(frozen=True, slots=True)
class Last:
    """The last record of what was read, or each; `headers` in their order, names may repeat.

    unread: why its headers are not known, as the end of a sentence; then there are none.
    is_marker: it is the end of a transaction, and no record.
    """

    offset: int
    headers: Headers
    unread: str = ""
    is_marker: bool = False


class Way(ABC):
    """The way through one partition's batches from `start` to `end`, by their headers."""

    def __init__(self, start: int, end: int, *, committed: bool) -> None:
        self._start, self._end, self._committed = start, end, committed
        self._aborting: set[int] = set()
        self.position, self.is_done = start, False

    @abstractmethod
    def _meet(self, batch: Batch) -> None:
        """Come to a batch with records that count."""

    def _pass(self, marker: Batch) -> None:
        """Come to the end of a transaction, which is no record."""
        del marker

    def take(self, answer: Answer) -> None:
        """Go on through what a response has."""
        aborted = sorted(answer.aborted, key=itemgetter(1))
        for batch in batches(answer.data):
            if batch.base >= self._end:
                self.is_done = True
                return
            while aborted and aborted[0][1] <= batch.last:
                self._aborting.add(aborted.pop(0)[0])
            if batch.is_control:
                # the cleaner leaves a batch without its marker
                if batch.count:
                    self._pass(batch)
                    if is_abort(batch):
                        self._aborting.discard(batch.producer_id)
            elif batch.count and not self._is_aborted(batch):
                # one that was compacted away may be left without a record
                self._meet(batch)
                if self.is_done:
                    return
            self.position = max(self.position, batch.last + 1)
        behind = answer.stable if self._committed else answer.end
        self.is_done = self.position >= min(self._end, behind)

    def _is_aborted(self, batch: Batch) -> bool:
        return batch.is_transactional and batch.producer_id in self._aborting


class Search(Way):
    """The way to the last record."""

    _candidate: Batch | None = None

    def _meet(self, batch: Batch) -> None:
        self._candidate = batch

    def last(self, *, headers: bool = True) -> Last | None:
        """The last record that was passed; of one that cannot be read, its place.

        headers: without, nothing is unpacked where the place is known without it.
        """
        if (batch := self._candidate) is None:
            return None
        end = min(batch.last + 1, self._end)
        if batch.is_old or (batch.is_full and not headers):
            return Last(end - 1, ()) if end > self._start else None
        if batch.count > MOST_RECORDS:
            return Last(end - 1, (), f"is one of more than {MOST_RECORDS} in a batch")
        try:
            records = unpacked(batch.compression, batch.packed)
            found = last_record(batch, records, (self._start, end))
        except UnreadError as error:
            return Last(end - 1, (), str(error))
        except ValueError as error:
            return Last(end - 1, (), f"cannot be read ({error})")
        return None if found is None else Last(found[0], tuple(found[1]))


class First(Search):
    """The way to the first record; `position` is where it stands, else where nothing was found."""

    def _meet(self, batch: Batch) -> None:
        super()._meet(batch)
        if self.last(headers=False) is not None:
            self.position, self.is_done = max(self.position, batch.base), True


class Each(Way):
    """The way past each record, which is handed to `take`; of a batch that is unread the first.

    The ends of transactions are handed over as well.

    names: of headers that are wanted; see `headers_of`.
    """

    def __init__(
        self, start: int, end: int, take: Callable[[Last], None], names: Sequence[bytes] = ()
    ) -> None:
        super().__init__(start, end, committed=False)
        self._take, self._names = take, names

    def _meet(self, batch: Batch) -> None:
        if batch.is_old:
            self._hand(batch.base, ())
            return
        if batch.count > MOST_RECORDS:
            self._hand(batch.base, (), f"is one of more than {MOST_RECORDS} in a batch")
            return
        try:
            records = unpacked(batch.compression, batch.packed)
            for offset, headers in headers_of(batch, records, self._names):
                self._hand(offset, tuple(headers))
        except UnreadError as error:
            self._hand(batch.base, (), str(error))
        except ValueError as error:
            self._hand(batch.base, (), f"cannot be read ({error})")

    def _pass(self, marker: Batch) -> None:
        if self._start <= marker.base < self._end:
            self._take(Last(marker.base, (), is_marker=True))

    def _hand(self, offset: int, headers: Headers, unread: str = "") -> None:
        if self._start <= offset < self._end:
            self._take(Last(offset, headers, unread))
