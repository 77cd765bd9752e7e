"""Where a worker's fold begins: at the newest snapshot of this home that stands on the log."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from mesh_events.errors import MeshError
from mesh_events.kafka.connection import Connection
from mesh_events.read import LogReader
from mesh_events.record import Record
from projections.image import Image
from projections.integrity.tree import CompactRange
from snapshots.history import OtherLogError, behind
from snapshots.place import put_aside
from snapshots.store import ORIGIN, DamagedError, Snapshot, Store

log = structlog.get_logger(__name__)
_NEAR = 1000
"""Records between two that are wanted: so many are read and left out rather than asked for anew."""


@dataclass(frozen=True, slots=True)
class Start:
    """What was folded before this worker began.

    Args:
        image: at the offset of the snapshot.
        undecided: the bytes of what waits for its decision in this image, by offset.
        tree: over the log up to there.
        unverified: offsets of records whose signature does not verify.
    """

    image: Image
    undecided: dict[int, Record]
    tree: CompactRange
    unverified: list[int]


class Beginning(Protocol):
    """Tells where to begin."""

    def find(self, root_key: str) -> Start | None:
        """The latest start of a mesh with this root; None to begin at the log's first record.

        Raises OtherLogError: the log is not what it was.
        """

    def discard(self) -> None:
        """What was found did not fit the log: never tell it again."""


class SnapshotStart:
    """The snapshots of this home as a beginning.

    Args:
        connection: login that reads the log.
        open_store: opens the file; raises SnapshotError.
    """

    def __init__(self, connection: Connection, open_store: Callable[[], Store]) -> None:
        self._connection, self._open = connection, open_store
        # the file that was told last, and its inode
        self._told: tuple[Path, int] | None = None

    def find(self, root_key: str) -> Start | None:
        """As of `Beginning`. Whatever is wrong with the snapshots, the log itself is there."""
        try:
            with self._open() as store:
                newest = store.newest()
                if newest == ORIGIN or newest.rest.root != root_key:
                    return None
                found = self._load(store, newest)
                self._told = store.path, store.inode
        except OtherLogError:
            raise
        except DamagedError as error:
            bad = put_aside(error.path, error.inode)
            log.warning("snapshots_put_aside", file=str(bad), error=str(error))
            return None
        except MeshError as error:
            log.warning("snapshots_not_used", error=str(error), next="sdm audit verify")
            return None
        log.info("snapshot_loaded", offset=found.image.offset)
        return found

    def discard(self) -> None:
        """Put the file aside: whoever begins next begins at the log's first record."""
        if self._told is not None:
            bad = put_aside(*self._told)
            log.error("snapshots_put_aside", file=str(bad), next="sdm audit verify")

    def _load(self, store: Store, newest: Snapshot) -> Start:
        with LogReader(self._connection, None, brief=True) as reader:
            behind(newest, reader.since)
            image = store.whole_image(newest)
            undecided = _records(reader, image.intents.undecided)
        return Start(image, undecided, newest.tree, store.unverified(newest))


def _records(reader: LogReader, offsets: Iterable[int]) -> dict[int, Record]:
    """The records at these offsets; those that stand near each other are read in one pass.

    Raises OtherLogError for one that is not there.
    """
    groups: list[list[int]] = []
    for offset in sorted(offsets):
        if groups and offset - groups[-1][-1] <= _NEAR:
            groups[-1].append(offset)
        else:
            groups.append([offset])
    found: dict[int, Record] = {}
    for group in groups:
        wanted = frozenset(group)
        read = reader.between(group[0], group[-1])
        found |= {record.offset: record for record in read if record.offset in wanted}
        for offset in group:
            if offset not in found:
                raise OtherLogError(offset, offset)
    return found


class FirstRecord:
    """The log's beginning, always."""

    def find(self, root_key: str) -> Start | None:
        """None."""
        del root_key
        return None

    def discard(self) -> None:
        """Nothing to discard."""
