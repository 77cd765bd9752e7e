"""Every fault of the run, in the order in which they are injected."""

from tests.faults.run import processes
from tests.faults.run.fault import Fault
from tests.faults.run.stage import Stage

SHARED: tuple[Fault[Stage], ...] = (*processes.FAULTS,)
"""Injected one after the other into one mesh under load."""
ALONE: tuple[Fault[None], ...] = ()
"""They destroy what they are given, or need other servers: each starts its own."""
