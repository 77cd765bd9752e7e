"""Files that somebody gives to a command: read up to a bound, before anything parses them."""

import io
import os
from pathlib import Path

from mesh_events.errors import InvalidValueError

MOST_BYTES = 1024 * 1024
"""An intent has an eighth of it at most, and YAML of this size takes seconds to parse."""


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a file of at most `most` bytes, with newlines as Python has them.

    Raises InvalidValueError for one that is too large, as a pipe or device without an end; OSError
    and UnicodeDecodeError as `Path.read_text`.
    """
    with path.open("rb") as opened:
        found = opened.read(most + 1)
        # a pipe or a device has no size
        size = os.fstat(opened.fileno()).st_size
    if len(found) > most:
        has = size if size > most else f"more than {most}"
        raise InvalidValueError(f"{path} has {has} bytes: the limit is {most}")
    return io.StringIO(found.decode("utf-8"), newline=None).read()
