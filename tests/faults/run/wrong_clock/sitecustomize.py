"""Loaded first by every Python that has this folder on its path: what a wrong clock needs.

libfaketime 0.9.10 gives `clock_nanosleep`, with which Python 3.11 sleeps, a wrong point in time:
sleeping is done by another system call here. Ahead of time it lets librdkafka wait for an hour, so
`CLOCK_AHEAD_S` puts only `time.time` ahead, without libfaketime.
"""

import os
import threading
import time


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


_right, _ahead_s = time.time, float(os.environ.get("CLOCK_AHEAD_S", "0"))


def _time() -> float:
    return _right() + _ahead_s


time.sleep = _sleep
if _ahead_s:
    time.time = _time
