"""Where the snapshots of a mesh lie, and what they depend on."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import mesh_events
import projections
import schemas
import snapshots
from snapshots.store import Store


def open_store(home: Path, mesh: str, root_key: str) -> Store:
    """The snapshots of a mesh's log in a home folder. Raises SnapshotError."""
    about = {"mesh": mesh, "root": root_key, "software": software()}
    return Store(store_path(home, mesh), about)


def store_path(home: Path, mesh: str) -> Path:
    """`<home>/snapshots/<mesh>.db`."""
    return home / "snapshots" / f"{quote(mesh, safe='')}.db"


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
