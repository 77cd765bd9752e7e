"""Composition root of the worker: `python -m processors`.

Real adapters are made here and in `worker.enforcers`, and nowhere else.
"""

import sys

import faust

from mesh_events.emit import LogWriter
from mesh_events.errors import MeshError
from mesh_events.integrity.checkpoint import origin_of
from mesh_events.references import resolve
from mesh_events.settings import Profile, key_path, notes_path
from mesh_events.signing import SigningKey
from processors import logs
from processors.controllers.checkpoints import CheckpointsController
from processors.controllers.rows import RowsController
from processors.crash_points import crash_point
from processors.governor.governor import Governor
from processors.governor.quarantine import Quarantine
from processors.governor.row_writer import RowWriter
from processors.log.checkpoint_store import CheckpointStore
from processors.log.fold_start import SnapshotStart
from processors.log.registry import LogRegistry
from processors.log.watch import LogWatch
from processors.settings import GOVERNOR, WorkerSettings
from processors.snapshotting import process as snapshotting
from processors.snapshotting.controller import SnapshotsController
from processors.worker import app as faust_app
from processors.worker import full_collections
from processors.worker.enforcers import enforcers
from processors.worker.preflight import preflight
from processors.worker.worker import Worker
from projections.image import Bounds
from projections.quotas.kinds import Quotas
from snapshots.place import open_store
from snapshots.store import Store

SWITCH_S = 0.0005
"""Seconds after which a thread that computes hands the interpreter to one that waits for it.

Signing, checking and sending release it, several times for each decision, and by Python's default
wait up to 5 ms to have it back while the event loop is busy.
"""


def build(settings: WorkerSettings) -> faust.App:
    """The app with everything it needs, nothing started yet."""
    connection = settings.governance(GOVERNOR)
    registry = LogRegistry(
        settings.registry_url,
        settings.registry_user,
        resolve(settings.registry_password),
        lambda: governor.image.schemas,
    )
    governor_key = SigningKey.load(key_path(settings.home, "governor"))
    controller_key = SigningKey.load(key_path(settings.home, "controller"))
    preflight(connection, settings.session_timeout_s, settings.durability)
    rows, quarantine = RowWriter(connection, registry), Quarantine(connection)
    # the mesh's root as this home knows it: its own word, not the log's
    root = Profile.load(settings.home).root_key
    decisions = LogWriter(
        connection, registry, governor_key, root, acknowledged=lambda: crash_point("before-ack")
    )
    facts = LogWriter(connection, registry, controller_key, root)

    store = CheckpointStore(
        connection, notes_path(settings.home, settings.mesh), origin_of(settings.mesh)
    )
    watch = LogWatch(store, root)

    def snapshots() -> Store:
        return open_store(settings.home, settings.mesh, root)

    beginning = SnapshotStart(connection, snapshots)
    quotas = Quotas.read(settings)
    bounds = Bounds(settings.undecided_per_domain, settings.ids_per_domain, quotas)
    governor = Governor(decisions, rows, quarantine.copy, watch, beginning, bounds)
    controllers = [
        RowsController(connection, registry, rows, lambda: governor.image),
        *enforcers(settings, connection, registry, lambda: governor.image, governor.waiting),
        CheckpointsController(
            watch, store, controller_key, settings.checkpoint_records, settings.checkpoint_s
        ),
        SnapshotsController(
            connection, snapshots, snapshotting.run, watch, settings.snapshot_records
        ),
    ]
    worker: list[Worker] = []

    def life() -> Worker:
        # asyncio's own objects must be made inside the running loop
        if not worker:
            worker.append(Worker(governor, connection, facts, controller_key, controllers))
        return worker[0]

    return faust_app.build(
        connection,
        life,
        settings.governor_url,
        str(settings.home / "data" / "governor"),
        session_timeout_s=settings.session_timeout_s,
        reauth_s=settings.reauth_s,
    )


def main() -> int:
    """Run until stopped."""
    try:
        settings = WorkerSettings.load()
        logs.configure(settings.log_level)
        app = build(settings)
    except MeshError as error:
        sys.stderr.write(f"the worker cannot start: {error}\n")
        return 1
    full_collections.keep_short()
    sys.setswitchinterval(SWITCH_S)
    faust_app.worker(app).execute_from_commandline()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
