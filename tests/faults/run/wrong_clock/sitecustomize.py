"""Loaded first by every Python that has this folder on its path: its clock is `CLOCK_OFF_S` off.

Both ways in which the mesh's code asks for the date are put off. Not by libfaketime: under its
0.9.10 Python 3.11 cannot sleep, and librdkafka waits for an hour where it should for a second.
"""

import os
import time
from datetime import datetime, timedelta

from mesh_events import meta

_OFF_S = float(os.environ["CLOCK_OFF_S"])
_right_time, _right_now = time.time, meta.now


def _time() -> float:
    return _right_time() + _OFF_S


def _now() -> datetime:
    return _right_now() + timedelta(seconds=_OFF_S)


time.time, meta.now = _time, _now
