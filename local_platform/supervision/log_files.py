"""The log files of services: each has one older one, and neither grows without end.

Who has a login, or can open a connection, can make a server tell of an error for each request.
"""

import os
from pathlib import Path

MOST_BYTES = 64 * 2**20
"""A log that has grown beyond this begins anew; the older one has its last bytes, as many."""
LOOK_S = 5.0
"""So often the supervisor looks."""
_PIECE = 2**20


def older(log: Path) -> Path:
    """Where a log goes when it begins anew."""
    return log.with_suffix(".log.1")


def begin(log: Path) -> None:
    """Let a log begin anew, so that it tells of one life; its server does not run."""
    if log.exists():
        log.replace(older(log))


def bound(log: Path, most: int) -> None:
    """Let a log begin anew while its server writes, if it has grown beyond `most` bytes.

    The server has it open for appending, and goes on at its new end. What it writes in the moment
    of the change is lost; so is the older log where the disk has no room for it.
    """
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size <= most:
        return
    try:
        _copy_end(log, size - most, most)
    except OSError:
        older(log).unlink(missing_ok=True)
    os.truncate(log, 0)


def _copy_end(log: Path, start: int, length: int) -> None:
    with log.open("rb") as source, older(log).open("wb") as target:
        source.seek(start)
        while length > 0 and (piece := source.read(min(length, _PIECE))):
            target.write(piece)
            length -= len(piece)
