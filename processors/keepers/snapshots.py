"""The snapshots keeper: makes snapshots of the log for this home, while this worker reigns."""

from collections.abc import Callable

import structlog

from mesh_events.errors import MeshError, StateFaultError
from mesh_events.kafka import Connection
from mesh_events.read import LogReader
from processors.keepers.keeper import Reign
from processors.log_watch import LogWatch
from projections.image import Image
from projections.trust import Trusted
from snapshots.history import EVERY, OtherLogError, extend
from snapshots.place import put_aside
from snapshots.store import BusyError, DamagedError, Store

log = structlog.get_logger(__name__)
ROUND_S = 60.0
"""A round takes about so long at most; what is left is for the next."""
FAR = 20 * EVERY
"""Records from which on reading the checkpoints costs less than checking signatures."""


class SnapshotsKeeper:
    """Folds the log once more for its snapshots: what the worker's own fold holds is not for files.

    Args:
        connection: login that reads the log.
        open_store: opens the file; raises SnapshotError.
        watch: knows the checkpoints, and whether the log is what they say.
        every: a snapshot is made of so many records.
    """

    name = "snapshots"

    def __init__(
        self,
        connection: Connection,
        open_store: Callable[[], Store],
        watch: LogWatch,
        every: int = EVERY,
    ) -> None:
        self._connection, self._open, self._watch = connection, open_store, watch
        self._every = every
        self._newest: int | None = None
        self._failed_in: int | None = None
        self._damaged_in: int | None = None

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Make the snapshots that are missing; what fails is tried again in the next reign.

        Before the first: look at the log before the snapshot from which this worker began.
        """
        if self._watch.finding or not self._looked_back() or self._failed_in == reign.epoch:
            return
        if self._newest is not None and image.offset - self._newest < self._every:
            return
        try:
            self._extend(image)
        except BusyError:
            # somebody at the command line makes them now
            return
        except OtherLogError as error:
            self._watch.contradicted(error)
        except DamagedError as error:
            self._newest = None
            bad = put_aside(error.path, error.inode)
            log.warning("snapshots_put_aside", file=str(bad), error=str(error))
            if self._damaged_in == reign.epoch:
                # a disk that damages every file
                self._failed_in = reign.epoch
            self._damaged_in = reign.epoch
        except MeshError as error:
            self._failed_in = reign.epoch
            log.warning("snapshots_not_made", error=str(error), next="sdm audit verify")

    def _looked_back(self) -> bool:
        """Nothing is signed until the log before the snapshot was looked at: go on trying."""
        if self._watch.looks_back:
            try:
                with LogReader(self._connection) as reader:
                    self._watch.look_back(reader.to_end())
            except StateFaultError as error:
                self._watch.beginning_gone(str(error))
            except MeshError as error:
                log.warning("not_looked_back", error=str(error))
        return not self._watch.looks_back

    def _extend(self, image: Image) -> None:
        with self._open() as store:
            self._newest = store.newest().offset
            missing = image.offset - self._newest
            if missing < self._every:
                return
            trusted: Trusted | None = self._watch.trusted() if missing > FAR else None
            with LogReader(self._connection, None) as reader:
                made = extend(store, reader.since, trusted, self._every, ROUND_S)
            self._newest = store.newest().offset
        log.info("snapshots_made", count=made, offset=self._newest)
