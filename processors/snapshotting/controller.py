"""The snapshots controller: as the log grows, another snapshot every so many records.

Each home has snapshots of its own, so that commands and the next worker find a state quickly.
"""

import time
from collections.abc import Callable
from contextlib import suppress

import structlog

from mesh_events.errors import MeshError, StateFaultError
from mesh_events.kafka.connection import Connection
from mesh_events.read import LogReader
from processors.controllers.controller import Leadership
from processors.log.watch import LogWatch
from processors.snapshotting.growth import Damage, Growth
from projections.image import Image
from snapshots.history import EVERY, OtherLogError
from snapshots.place import put_aside
from snapshots.store import Store

log = structlog.get_logger(__name__)
REST_S = 5.0
"""Wait after a growth: what many records need is then made at once."""


class SnapshotsController:
    """Has the snapshots made that are missing: the worker's own fold is not for files.

    Args:
        connection: login that reads the log.
        open_store: opens the file; raises SnapshotError.
        grow: makes what is missing up to an offset.
        watch: knows the checkpoints, and whether the log is what they say.
        every: a snapshot is made of so many records.
    """

    name = "snapshots"

    def __init__(
        self,
        connection: Connection,
        open_store: Callable[[], Store],
        grow: Callable[[int], Growth],
        watch: LogWatch,
        every: int = EVERY,
    ) -> None:
        self._connection, self._open, self._grow = connection, open_store, grow
        self._watch, self._every = watch, every
        self._newest: int | None = None
        self._not_before = 0.0
        self._failed_in: int | None = None
        self._damaged_in: int | None = None

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Make the snapshots that are missing; what fails is tried again in the next leadership.

        Before the first: look at the log before the snapshot from which this worker began.
        """
        if self._watch.finding or not self._looked_back() or self._failed_in == leadership.epoch:
            return
        if self._newest is None:
            self._newest = self._found()
        if self._newest is not None and image.offset - self._newest < self._every:
            return
        if time.monotonic() >= self._not_before:
            self._take(self._grow(image.offset), leadership)
            self._not_before = time.monotonic() + REST_S

    def _found(self) -> int | None:
        """Offset of the newest snapshot; None where the file tells none, whatever the reason."""
        with suppress(MeshError), self._open() as store:
            return store.newest().offset
        return None

    def _take(self, grown: Growth, leadership: Leadership) -> None:
        """Go by what became of it; somebody at the command line may make them now, too."""
        if grown.newest is not None:
            self._newest = grown.newest
        if grown.made:
            log.info("snapshots_made", count=grown.made, offset=grown.newest)
        if grown.differs is not None:
            self._watch.contradicted(OtherLogError(*grown.differs))
        if grown.damage is not None:
            self._put_aside(grown.damage, leadership)
        if grown.fault is not None:
            self._failed_in = leadership.epoch
            log.warning("snapshots_not_made", error=grown.fault, next="sdm audit verify")

    def _put_aside(self, damage: Damage, leadership: Leadership) -> None:
        self._newest = None
        bad = put_aside(damage.path, damage.inode)
        log.warning("snapshots_put_aside", file=str(bad), error=damage.text)
        if self._damaged_in == leadership.epoch:
            # a disk that damages every file
            self._failed_in = leadership.epoch
        self._damaged_in = leadership.epoch

    def _looked_back(self) -> bool:
        """Nothing is signed until the log before the snapshot was looked at: go on trying."""
        if self._watch.looks_back:
            try:
                with LogReader(self._connection) as reader:
                    self._watch.look_back(reader.since(self._watch.looked_back_to + 1))
            except StateFaultError as error:
                self._watch.beginning_gone(str(error))
            except MeshError as error:
                log.warning("history_not_read", error=str(error))
        return not self._watch.looks_back
