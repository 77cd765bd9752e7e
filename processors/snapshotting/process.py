"""Running `python -m processors.snapshotting` and reading its answer."""

import subprocess
import sys

from pydantic import ValidationError

from processors.snapshotting.growth import ROUND_S, Growth

MODULE = "processors.snapshotting"
_LAST_S = 2 * ROUND_S
"""A process that takes longer hangs and is killed."""


def run(end: int) -> Growth:
    """Make the snapshots up to offset `end` in another process, with this one's settings.

    That process ends when this one does: it watches its standard input, which nobody writes to.
    What it logs goes where this one's log goes.
    """
    command = [sys.executable, "-m", MODULE, str(end)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            return Growth(fault=f"{MODULE} did not end within {_LAST_S:.0f} s")
        finally:
            process.kill()
        answer = process.stdout.read() if process.stdout is not None else b""
    try:
        return Growth.model_validate_json(answer)
    except ValidationError:
        return Growth(fault=f"{MODULE} ended with exit code {process.returncode}")
