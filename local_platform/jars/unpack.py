"""Turn fetched archives into folders that servers can run from.

Each folder appears in one step under its final name, so an interrupted unpacking is
simply done again.
"""

import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_platform.files import public_folder


def build_once(target: Path, build: Callable[[Path], object]) -> Path:
    """Let `build` fill a new folder and give it the name `target`, unless that exists."""
    if target.is_dir():
        return target
    public_folder(target.parent)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        build(work)
        work.chmod(0o755)
        work.rename(target)
    except OSError:
        # another process may have built it meanwhile; then theirs is as good
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def extract(archive: Path, folder: Path) -> None:
    """Unpack a tar archive that has the checksum of the lock file; nothing leaves the folder."""
    # Python before 3.11.4, as in Debian 12, has no filters
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as opened:
        opened.extractall(folder, **options)  # noqa: S202 - the archive is one that is pinned
