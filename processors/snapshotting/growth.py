"""Making the snapshots that are missing, and what became of it."""

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mesh_events.errors import MeshError
from mesh_events.kafka.connection import Connection
from mesh_events.read import LogReader
from projections.integrity.trusted_prefix import TrustedCheckpoints
from snapshots.history import OtherLogError, extend
from snapshots.store import BusyError, DamagedError, Store

ROUND_S = 60.0
"""A growth takes about so long at most; what is left is for the next."""
FAR_SNAPSHOTS = 20
"""So many missing snapshots from which on reading the checkpoints costs less than checking
signatures."""


class Damage(BaseModel):
    """A file of snapshots that cannot be read; see `DamagedError`."""

    model_config = ConfigDict(frozen=True)

    text: str
    path: Path
    inode: int


class Growth(BaseModel):
    """What one run did.

    made: how many snapshots were written
    newest: offset of the newest one now, None where that is not known
    busy: another process writes snapshots now
    differs: first and last offset between which the log is another than that of the snapshots
    damage: the file cannot be read
    fault: why none could be made, else
    """

    model_config = ConfigDict(frozen=True)

    made: int = 0
    newest: int | None = None
    busy: bool = False
    differs: tuple[int, int] | None = None
    damage: Damage | None = None
    fault: str | None = None


def grow(
    connection: Connection,
    open_store: Callable[[], Store],
    trusted: Callable[[], TrustedCheckpoints | None],
    *,
    end: int,
    every: int,
) -> Growth:
    """Make the snapshots that are missing up to the log's end. Raises nothing expected.

    Args:
        connection: login that reads the log.
        open_store: opens the file; raises SnapshotError.
        trusted: the checkpoints, asked for when very much is missing.
        end: offset of the last record as the caller knows it.
        every: a snapshot is made of so many records.
    """
    try:
        with open_store() as store:
            missing = end - store.newest().offset
            made = 0
            if missing >= every:
                believed = trusted() if missing > FAR_SNAPSHOTS * every else None
                with LogReader(connection, None) as reader:
                    made = extend(store, reader.since, believed, every, ROUND_S)
            return Growth(made=made, newest=store.newest().offset)
    except BusyError:
        return Growth(busy=True)
    except OtherLogError as error:
        return Growth(differs=(error.first, error.last))
    except DamagedError as error:
        return Growth(damage=Damage(text=str(error), path=error.path, inode=error.inode))
    except MeshError as error:
        return Growth(fault=str(error))
