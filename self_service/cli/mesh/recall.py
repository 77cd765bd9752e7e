"""A state of the mesh out of this home's snapshots, so that a long log is not replayed for it."""

from typing import TYPE_CHECKING

from self_service.cli.framework.finding import Finding
from self_service.cli.framework.output import note

if TYPE_CHECKING:
    from mesh_events.read import LogReader
    from projections.image import Image
    from self_service.cli.mesh.callers import Caller
    from self_service.cli.mesh.context import Mesh
    from snapshots.store import Store

SHORT_LOG = 5000
"""Offsets up to which a replay costs less than looking for snapshots."""
BEHIND = 2048
"""Records behind the newest snapshot from which on more are made."""
VERY_MANY = 100_000
"""Records of which it is told that they are read."""


def state(
    mesh: "Mesh",
    at_offset: int | None = None,
    as_of: int | None = None,
    *,
    who: "Caller | None" = None,
) -> "Image":
    """The state at an offset, as of a time (ms) or now, as `who` reads it.

    Where the snapshots are of no use, that is told on stderr and the log is replayed.
    """
    from mesh_events.read import LogReader

    with LogReader(mesh.governance(who or mesh.reader), None, brief=True) as reader:
        end = reader.partition.bounds()[1]
        if end <= SHORT_LOG:
            reader.partition.seek(0)
            return replayed(mesh, reader, at_offset, as_of)
        found = _recalled(mesh, reader, end, at_offset, as_of)
    if found is not None:
        return found
    with mesh.log(who) as reader:
        return replayed(mesh, reader, at_offset, as_of)


def replayed(
    mesh: "Mesh", reader: "LogReader", at_offset: int | None, as_of: int | None
) -> "Image":
    """The same from the log's first record on, whatever snapshots say."""
    from projections.replay import replay

    return mesh.fold(
        reader,
        lambda log, trusted: replay(log, at_offset=at_offset, as_of=as_of, trusted=trusted),
    )


def _recalled(
    mesh: "Mesh", reader: "LogReader", end: int, at_offset: int | None, as_of: int | None
) -> "Image | None":
    from projections.integrity.trusted_prefix import IntegrityError
    from snapshots.history import OtherLogError, image_at
    from snapshots.place import open_store, put_aside
    from snapshots.store import ORIGIN, DamagedError, SnapshotError

    profile = mesh.profile
    try:
        store = open_store(mesh.home, profile.mesh, profile.root_key)
        _bring_up(mesh, store, end)
        if store.newest() != ORIGIN:
            return image_at(store, reader.since, at_offset=at_offset, as_of=as_of)
    except OtherLogError as error:
        changed = Finding(error.first, "log_changed", str(error), error.last)
        mesh.differs(changed, f"{error}: replaying the whole log")
    except IntegrityError as error:
        changed = Finding(error.first, error.code, str(error), error.last)
        mesh.differs(changed, f"{error}: no snapshots are taken")
    except DamagedError as error:
        kept = put_aside(error.path, error.inode)
        note(f"{error}" if kept is None else f"{error}; this was done, the file is now {kept}")
    except SnapshotError as error:
        note(str(error))
    return None


def _bring_up(mesh: "Mesh", store: "Store", end: int) -> None:
    """Make the snapshots that are missing, if they are many and nobody else does."""
    from snapshots.history import EVERY, extend
    from snapshots.store import BusyError

    missing = end - 1 - store.newest().offset
    if missing < BEHIND:
        return
    if missing > VERY_MANY:
        note(f"reading {missing} records for the first time; later commands are faster")
    with mesh.log(start=None) as reader:
        try:
            extend(store, reader.since, mesh.trusted(reader), EVERY)
        except BusyError:
            # the worker or another command makes them now
            return
