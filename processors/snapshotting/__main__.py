"""Composition root of the process that makes snapshots: `python -m processors.snapshotting END`.

Prints a `Growth` as JSON. Ends at once when its standard input does: then the worker is gone.
"""

import os
import sys
import threading

import structlog

from mesh_events.errors import MeshError
from mesh_events.integrity.checkpoint import origin_of
from mesh_events.settings import Profile, notes_path
from processors import logs
from processors.log.checkpoint_store import CheckpointStore
from processors.settings import GOVERNOR, WorkerSettings
from processors.snapshotting.growth import Growth, grow
from projections.integrity.trusted_prefix import TrustedCheckpoints
from snapshots.place import open_store

log = structlog.get_logger(__name__)
NICE = 10
"""The governor, and the brokers of this machine, come first."""


def main() -> int:
    """Make what is missing up to the offset that is named."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(NICE)
    try:
        settings = WorkerSettings.load()
        logs.configure(settings.log_level)
        grown = _grow(settings, int(sys.argv[1]))
    except MeshError as error:
        grown = Growth(fault=str(error))
    sys.stdout.write(grown.model_dump_json())
    return 0


def _grow(settings: WorkerSettings, end: int) -> Growth:
    connection = settings.governance(GOVERNOR)
    # the mesh's root as this home knows it: its own word, not the log's
    root = Profile.load(settings.home).root_key
    checkpoints = CheckpointStore(
        connection, notes_path(settings.home, settings.mesh), origin_of(settings.mesh)
    )

    def trusted() -> TrustedCheckpoints | None:
        try:
            path = checkpoints.look().path()
        except MeshError as error:
            log.warning("checkpoints_not_read", error=str(error))
            return None
        return TrustedCheckpoints(path, root) if path else None

    return grow(
        connection,
        lambda: open_store(settings.home, settings.mesh, root),
        trusted,
        end=end,
        every=settings.snapshot_records,
    )


def _end_with_parent() -> None:
    # not `sys.stdin`: its lock is asked for at the interpreter's end
    while os.read(0, 1):
        pass
    os._exit(os.EX_TEMPFAIL)


if __name__ == "__main__":
    raise SystemExit(main())
