"""Folders with known permissions, and the ends of logs."""

import os
import shutil
from pathlib import Path


def private_folder(path: Path) -> Path:
    """Make `path` a folder that only its owner can enter, and return it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)
    return path


def public_folder(path: Path) -> Path:
    """Make a folder that every account can enter, whatever the umask, and return it."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        one.chmod(0o755)
    return path


def empty_folder(path: Path) -> Path:
    """Make `path` a private folder with nothing in it, and return it."""
    shutil.rmtree(path, ignore_errors=True)
    return private_folder(path)


def last_lines(path: Path, count: int = 15) -> str:
    """Return up to `count` last lines of a log, "" where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64 * 1024))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-count:])


def sync(folder: Path) -> None:
    """Have the disk know what was made and removed in `folder` before what comes next."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
