"""Files that are never seen half written."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str, mode: int = 0o644, *, parents: bool = True) -> None:
    """Replace `path` by `text` in one step; a reader sees the old file or the new one.

    parents: whether folders that are not there are made; without, OSError is raised.
    """
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            # not by its name: who owns the folder may have put a link there
            os.fchmod(handle, mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
