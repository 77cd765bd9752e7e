"""Every fault of the run, in the order in which they are injected."""

from tests.faults.run import (
    clock,
    disk,
    drift,
    emergency,
    jobs,
    links,
    poison,
    processes,
    quorum,
    slow_registry,
    takeover,
    tamper,
)
from tests.faults.run.fault import Fault
from tests.faults.run.stage import Stage

SHARED: tuple[Fault[Stage], ...] = (
    *processes.FAULTS,
    *takeover.FAULTS,
    *takeover.STANDBY,
    *links.FAULTS,
    *jobs.FAULTS,
    *drift.FAULTS,
    *emergency.FAULTS,
    *poison.FAULTS,
    *slow_registry.FAULTS,
    *clock.FAULTS,
)
"""Injected one after the other into one mesh under load."""
ALONE: tuple[Fault[None], ...] = (*quorum.FAULTS, *disk.FAULTS, *tamper.FAULTS)
"""They destroy what they are given, or need other servers: each starts its own."""
