"""Snapshots of one log: made as it grows, and asked what was at any offset or time.

A snapshot holds the tree over the log up to its record. What stands between two of them is folded
without checking signatures again, if the records give the tree of the later one: they are those
that were checked when it was made. Behind the newest one every signature is checked.
"""

import math
import time
from collections.abc import Callable, Iterator

from mesh_events.codec import holds_signature
from mesh_events.errors import MeshError
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.record import Record
from projections.image import Image
from projections.integrity.log_verifier import LogVerifier
from projections.integrity.trusted_prefix import TrustedCheckpoints, TrustedPrefix
from projections.replay import replay, step
from snapshots.store import Snapshot, Store

Read = Callable[[int], Iterator[Record]]
"""The log's records from an offset on, to its end of now."""
EVERY = 512
"""A snapshot is made of so many records."""
SLICE = 50_000
"""So many offsets, at least, are folded before what came of them is written for good."""
SLICE_S = 30.0
"""So are fewer, that need so many seconds."""


class OtherLogError(MeshError):
    """The log is not, or no longer, the one of which the snapshots were made.

    `first` and `last` are the offsets between which they differ.
    """

    def __init__(self, first: int, last: int) -> None:
        super().__init__(f"offsets {first} to {last} hold other records than when they were read")
        self.first, self.last = first, last


def extend(
    store: Store,
    read: Read,
    trusted: TrustedCheckpoints | None = None,
    every: int = EVERY,
    seconds: float = math.inf,
) -> int:
    """Make the snapshots that are missing; returns how many.

    They are written in slices, so that what was made is there when something ends this.

    Args:
        store: where they go.
        read: the log.
        trusted: checkpoints that make checking signatures unnecessary for what they cover.
        every: a snapshot is made of so many records.
        seconds: begin no slice when so much time is over.

    Raises:
        BusyError: another process does so now.
        OtherLogError: the log is another than that of the snapshots.
        IntegrityError: it is not what the checkpoints say.
    """
    made, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if trusted is not None and trusted.offset <= store.newest().offset:
            trusted = None
        more = _slice(store, read, trusted, every)
        made += more
        if more:
            continue
        if trusted is None:
            break
        # what the checkpoints cover is too little for another snapshot
        trusted = None
    return made


def _slice(store: Store, read: Read, trusted: TrustedCheckpoints | None, every: int) -> int:
    with store.writing():
        newest = store.newest()
        believed = _reach(newest, trusted) if trusted is not None else None
        growth, until = _Growth(store, newest, believed, every), time.monotonic() + SLICE_S
        for record in behind(newest, read):
            growth.take(record)
            if growth.made and time.monotonic() >= until and growth.stops():
                break
            enough = growth.made * every >= SLICE
            if record.offset >= believed.offset if believed else enough:
                break
        return growth.close()


def _reach(newest: Snapshot, trusted: TrustedCheckpoints) -> TrustedCheckpoints:
    """The checkpoints up to the first one that covers a slice, or to the last."""
    far = [one.body.offset for one in trusted.path if one.body.offset >= newest.offset + SLICE]
    return trusted.until(far[0]) if far else trusted


class _Growth:
    """Snapshots being made, one record after the other."""

    def __init__(
        self, store: Store, newest: Snapshot, trusted: TrustedCheckpoints | None, every: int
    ) -> None:
        self._store, self._every = store, every
        self._image, self._tree = store.image(newest), newest.tree
        self._prefix = _believing(newest, trusted) if trusted is not None else None
        self._leaves: list[bytes] = []
        self._unverified: list[int] = []
        self.made = 0

    def take(self, record: Record) -> None:
        entry, self._image = step(record, self._image, self._prefix)
        self._leaves.append(leaf_hash(record))
        if not holds_signature(record, entry, self._image.identity.root):
            self._unverified.append(record.offset)
        if len(self._leaves) == self._every:
            self._tree = self._tree.extend(self._leaves)
            self._image = self._store.append(
                self._image, self._tree, self._leaves[-1], tuple(self._unverified)
            )
            self._leaves, self._unverified = [], []
            self.made += 1

    def stops(self) -> bool:
        """Believe nothing more; whether all is proven by now, and no record would be read again.

        What stands between a snapshot and the checkpoint that proves it is.
        """
        if self._prefix is None:
            return not self._leaves
        self._prefix.stop(self._image.identity)
        return not self._prefix.is_open

    def close(self) -> int:
        if self._prefix is not None:
            self._prefix.close()
        return self.made


def image_at(
    store: Store, read: Read, *, at_offset: int | None = None, as_of: int | None = None
) -> Image:
    """The image at the end of the log, at an offset or as of a time, as `replay` gives it.

    Its rows are fetched from the store when they are asked for.

    Raises OtherLogError where the log is another than that of the snapshots.
    """
    if at_offset is not None:
        below = store.until(at_offset)
        above = store.after(below)
    elif as_of is not None:
        below, above = store.as_of(as_of), store.decided_after(as_of)
    else:
        below, above = store.newest(), None
    image, records = store.image(below), behind(below, read)
    if above is None:
        return replay(records, image, at_offset=at_offset, as_of=as_of)
    doubted = frozenset(store.unverified(above, below))
    return replay(
        between(below, above, records),
        image,
        at_offset=at_offset,
        as_of=as_of,
        verify=lambda record: record.offset in doubted,
    )


def behind(snapshot: Snapshot, read: Read) -> Iterator[Record]:
    """The records behind a snapshot. Raises OtherLogError unless it stands on this log."""
    records = read(max(snapshot.offset, 0))
    if snapshot.offset < 0:
        return records
    its_own = next(records, None)
    if its_own is None or leaf_hash(its_own) != snapshot.leaf:
        raise OtherLogError(snapshot.offset, snapshot.offset)
    return records


def between(below: Snapshot, above: Snapshot, records: Iterator[Record]) -> list[Record]:
    """The records behind `below` up to `above`. Raises OtherLogError if they are not its own."""
    found: list[Record] = []
    for record in records:
        if record.offset <= above.offset:
            found.append(record)
        if record.offset >= above.offset:
            break
    if below.tree.extend(map(leaf_hash, found)) != above.tree:
        raise OtherLogError(below.offset + 1, above.offset)
    return found


def _believing(newest: Snapshot, trusted: TrustedCheckpoints) -> TrustedPrefix:
    verifier = LogVerifier(newest.tree, newest.offset)
    verifier.expect(one.body for one in trusted.path if one.body.offset > newest.offset)
    return TrustedPrefix(trusted, verifier)
