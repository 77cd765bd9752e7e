"""The tree over a log as it is read, held against the checkpoints that were signed over it.

    verifier = LogVerifier()
    verifier.expect(checkpoints)            # what was signed, oldest first
    for record in records:
        verifier.take(record, verified=...)   # raises where the log is not what was signed
    body = verifier.head(origin, 1000)        # what is to be signed next

Of the records before the last checkpoint that came out right only the tree's edge is kept, of the
others 40 bytes each. A verifier can also begin in the midst of a log, with the tree over what
stands before it.
"""

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise

from mesh_events.errors import MeshError
from mesh_events.integrity.checkpoint import Checkpoint, ranges
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.record import Record
from projections.integrity.tree import CompactRange

HASH_BYTES = 32


class MismatchError(MeshError):
    """The log is not the one that a checkpoint was signed over; `code` is stable.

    `first` and `last` are the offsets between which the difference lies.
    """

    def __init__(self, code: str, first: int, last: int, text: str) -> None:
        super().__init__(text)
        self.code, self.first, self.last = code, first, last


class LogVerifier:
    """The tree so far, and the checkpoints that it has not reached yet.

    Args:
        base: the tree over the records before the first that is taken.
        offset: where the last of those stands.
        confirmed: the last checkpoint over some of them.
        unverified: offsets behind it, among them, whose signature does not verify.
    """

    def __init__(
        self,
        base: CompactRange | None = None,
        offset: int = -1,
        confirmed: Checkpoint | None = None,
        unverified: Iterable[int] = (),
    ) -> None:
        self.confirmed = confirmed
        self._base, self._base_offset = base or CompactRange(), offset
        self._hashes = bytearray()
        self._offsets = array("q")
        # those among the offsets whose signature does not verify
        self._unverified = array("q", unverified)
        self._expected: deque[Checkpoint] = deque()

    @property
    def size(self) -> int:
        """How many records were taken."""
        return self._base.size + len(self._offsets)

    @property
    def based_on(self) -> int:
        """How many of them stand before the beginning or the last confirmed checkpoint."""
        return self._base.size

    @property
    def offset(self) -> int:
        """Where the last of them stands, -1 before the first."""
        return self._offsets[-1] if self._offsets else self._base_offset

    @property
    def root(self) -> bytes:
        """The root over all of them."""
        return self._grown(len(self._offsets)).root

    @property
    def unconfirmed(self) -> int:
        """How many records stand behind the last confirmed checkpoint."""
        return len(self._offsets)

    @property
    def expected(self) -> Checkpoint | None:
        """The next checkpoint that the log has not reached."""
        return self._expected[0] if self._expected else None

    def pass_over(self) -> None:
        """Expect the next checkpoint no more, such as one that nobody signed."""
        self._expected.popleft()

    def expect(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Hold the log against more checkpoints, ascending; raises MismatchError as `take`.

        They may lie before or behind the last record that was taken, not before one that was
        confirmed.
        """
        self._expected.extend(checkpoints)
        self._compare(self.offset)

    def take(self, record: Record, *, verified: bool = True) -> None:
        """The next record, and whether its signature verifies.

        Raises MismatchError once a checkpoint is reached that was signed over other records.
        """
        offset = record.offset
        if self._expected and offset > self._expected[0].offset:
            self._compare(offset)
        self._offsets.append(offset)
        self._hashes += leaf_hash(record)
        if not verified:
            self._unverified.append(offset)
        if self._expected and offset == self._expected[0].offset:
            self._compare(offset)

    def head(self, origin: str, most: int) -> Checkpoint:
        """The checkpoint over at most `most` records behind the confirmed one, not signed yet.

        Raises ValueError where there is no such record.
        """
        count = min(most, len(self._offsets))
        if not count:
            raise ValueError("no record stands behind the last checkpoint")
        grown, offset = self._grown(count), self._offsets[count - 1]
        return Checkpoint(
            origin=origin,
            size=grown.size,
            root=grown.root,
            offset=offset,
            unverified=ranges(self._unverified[: bisect_right(self._unverified, offset)]),
            previous=self.confirmed.digest if self.confirmed else "",
        )

    def confirm(self, checkpoint: Checkpoint) -> None:
        """Go on behind a checkpoint over records that were taken. Raises MismatchError."""
        count = bisect_right(self._offsets, checkpoint.offset)
        grown = self._grown(count)
        if (grown.size, grown.root) != (checkpoint.size, checkpoint.root):
            raise self._mismatch(checkpoint, count)
        del self._hashes[: HASH_BYTES * count]
        del self._offsets[:count]
        del self._unverified[: bisect_right(self._unverified, checkpoint.offset)]
        self._base, self._base_offset, self.confirmed = grown, checkpoint.offset, checkpoint

    def _compare(self, reached: int) -> None:
        while self._expected and self._expected[0].offset <= reached:
            self.confirm(self._expected[0])
            self._expected.popleft()

    def _grown(self, count: int) -> CompactRange:
        places = range(0, HASH_BYTES * count, HASH_BYTES)
        with memoryview(self._hashes) as hashes:
            return self._base.extend([bytes(hashes[at : at + HASH_BYTES]) for at in places])

    def _mismatch(self, checkpoint: Checkpoint, count: int) -> MismatchError:
        """What differs between the confirmed checkpoint and this one, as narrow as can be said."""
        start, size = self._base_offset + 1, self._base.size
        wanted, found = checkpoint.size - size, count
        place = f"offsets {start} to {checkpoint.offset}"
        if found > wanted:
            text = f"{place} hold {found} records, and {wanted} when the checkpoint was signed"
            return MismatchError("record_inserted", start, checkpoint.offset, text)
        if found == wanted:
            text = f"{place} hold other bytes than when the checkpoint was signed"
            return MismatchError("record_edited", start, checkpoint.offset, text)
        first, last = self._hole(start, count, checkpoint.offset, wanted - found)
        text = (
            f"{place} hold {found} records, and {wanted} when the checkpoint was signed: "
            f"missing among {first} to {last}"
        )
        return MismatchError("record_deleted", first, last, text)

    def _hole(self, start: int, count: int, end: int, missing: int) -> tuple[int, int]:
        """(first, last) offset of where records are missing, as narrow as can be said."""
        present = [start - 1, *self._offsets[:count], end + 1]
        gaps = [(a + 1, b - 1) for a, b in pairwise(present) if b > a + 1]
        if sum(last - first + 1 for first, last in gaps) == missing and gaps:
            # every offset that is empty now held a record: the first of them is certain
            return gaps[0]
        return (gaps[0][0], gaps[-1][1]) if gaps else (start, end)


class Before:
    """What is known of the beginning of a log.

    Args:
        offset: the last one that it covers.
        tree: over the records up to there.
        signed: checkpoints up to there.
    """

    def __init__(self, offset: int, tree: CompactRange, signed: list[Checkpoint]) -> None:
        self.offset, self.tree = offset, tree
        self._verifier = LogVerifier()
        self._verifier.expect(signed)

    @property
    def held(self) -> int:
        """The last offset that was held against this; -1 before the first."""
        return self._verifier.offset

    def hold(self, records: Iterable[Record], is_over: Callable[[], bool] = lambda: False) -> bool:
        """Hold a log, from the record behind `held` on, against this; whether that is done.

        Args:
            records: in their order.
            is_over: whether the time for now is over, asked after each record.

        Raises:
            MismatchError: it holds other records.
        """
        verifier = self._verifier
        for record in records:
            if record.offset > self.offset:
                break
            verifier.take(record)
            if is_over():
                return False
        if verifier.root != self.tree.root:
            first = verifier.confirmed.offset + 1 if verifier.confirmed else 0
            text = f"offsets {first} to {self.offset} hold other records than when they were read"
            raise MismatchError("record_edited", first, self.offset, text)
        return True
