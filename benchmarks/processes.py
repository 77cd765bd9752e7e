"""What processes of the local platform have used."""

import os
from pathlib import Path

from local_platform.layout import Layout
from local_platform.supervision.state import PlatformState


def service_pid(home: Path, name: str) -> int:
    """The process of a service that runs."""
    state = PlatformState.load(Layout(home).state)
    services = state.services if state else ()
    return next(one.pid for one in services if one.name == name and one.pid)


def cpu_s(pid: int) -> float:
    """Seconds of CPU time, the system's for it too, that a process has taken."""
    # the name of the program, which may have any letters, stands in brackets
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
