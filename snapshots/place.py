"""Where the snapshots of a mesh lie, and what they depend on."""

import time
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import mesh_events
import projections
import schemas
import snapshots
from mesh_events.settings import snapshots_path
from snapshots.store import Store

STALE_S = 7 * 24 * 3600
"""A file that nobody has written for so long is of software that nobody runs any more."""


def open_store(home: Path, mesh: str, root_key: str) -> Store:
    """The snapshots of a mesh's log in a home folder. Raises SnapshotError."""
    path = store_path(home, mesh, root_key)
    if not path.exists():
        _remove_stale(path.parent)
    return Store(path)


def store_path(home: Path, mesh: str, root_key: str) -> Path:
    """`<home>/snapshots/<mesh>.<digest>.db`: another mesh or other software has another file."""
    digest = sha256(f"{mesh}\n{root_key}\n{software()}".encode()).hexdigest()[:16]
    return snapshots_path(home) / f"{quote(mesh, safe='')}.{digest}.db"


def put_aside(path: Path, inode: int) -> Path | None:
    """Keep a file of snapshots under another name, as evidence.

    Returns that name; None where it is not there any more, as another process was first.
    """
    try:
        if path.stat().st_ino != inode:
            return None
        # its log goes first: beside the next file it would be taken for that one's
        for more in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{path}{more}").replace(f"{path}.bad{more}")
        return path.replace(f"{path}.bad")
    except OSError:
        return None


def _remove_stale(folder: Path) -> None:
    """Remove what is not written any more; who still reads it keeps it open."""
    for path in folder.glob("*.db*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_S:
                path.unlink()


@cache
def software() -> str:
    """A digest of all that an image depends on beside the log: fold, vocabulary, schemas."""
    digest = sha256()
    for package in (mesh_events, projections, schemas, snapshots):
        folder = Path(package.__path__[0])
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.avsc")]):
            digest.update(f"{path.relative_to(folder)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
