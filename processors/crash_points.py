"""Named places at which a test can let this process die as `kill -9` would.

`SDM_CRASH_AT=<name>` or `<name>:<n>` (the n-th time). Unset, as always outside tests, nothing
happens. The names stand in docs/operating/crash-points.md.
"""

import os
import signal
from collections import Counter

_passed: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Die here if the environment says so."""
    wanted = os.environ.get("SDM_CRASH_AT")
    if wanted is None:
        return
    place, _, times = wanted.partition(":")
    if place != name:
        return
    _passed[name] += 1
    if _passed[name] >= int(times or "1"):
        os.kill(os.getpid(), signal.SIGKILL)
