"""Which record of a partition is the last one, by its batches as they stand there. Pure.

Only the batch that holds it is unpacked, up to a bound.
"""

from dataclasses import dataclass
from operator import itemgetter

from mesh_events.batches import Batch, batches, is_abort, last_record
from mesh_events.raw_fetch import Answer
from spark_streams.unpacking import UnreadError, unpacked

MOST_RECORDS = 1_000_000
"""Records of a batch that is read: walking through them takes a second."""


@dataclass(frozen=True, slots=True)
class Last:
    """The last record of a partition; `headers` in their order, names may repeat.

    unread: why its headers are not known, as the end of a sentence; then there are none.
    """

    offset: int
    headers: tuple[tuple[str, bytes | None], ...]
    unread: str = ""


class Search:
    """The way through one partition's batches from `start` to `end`, by their headers."""

    def __init__(self, start: int, end: int, *, committed: bool) -> None:
        self._start, self._end, self._committed = start, end, committed
        self._aborting: set[int] = set()
        self._candidate: Batch | None = None
        self.position, self.is_done = start, False

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
                if batch.count and is_abort(batch):
                    self._aborting.discard(batch.producer_id)
            elif batch.count and not self._is_aborted(batch):
                # one that was compacted away may be left without a record
                self._candidate = batch
            self.position = max(self.position, batch.last + 1)
        behind = answer.stable if self._committed else answer.end
        self.is_done = self.position >= min(self._end, behind)

    def _is_aborted(self, batch: Batch) -> bool:
        return batch.is_transactional and batch.producer_id in self._aborting

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
