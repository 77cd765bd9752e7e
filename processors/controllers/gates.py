"""Gates: rights that hang on grants are not given by one controller while another takes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from mesh_events.errors import InfrastructureError

PATIENCE_S = 60.0
"""A gate is waited for so long: who holds it waits for its cluster."""


class Gates:
    """A lock for each cluster, so that one that does not answer holds up no other.

    Who gives rights that hang on a grant holds it, and asks the latest state of the log within it.
    Who takes them passes through it before it reads what is there: whoever gave some by an older
    state has done so by then.
    """

    def __init__(self) -> None:
        self._known: dict[str, Lock] = {}

    @contextmanager
    def __call__(self, cluster: str) -> Iterator[None]:
        """Hold the gate of a cluster; raises InfrastructureError after `PATIENCE_S`."""
        gate = self._known.setdefault(cluster, Lock())
        if not gate.acquire(timeout=PATIENCE_S):
            raise InfrastructureError(
                f"other rights are being given on cluster {cluster} for {PATIENCE_S:.0f} s: it "
                "answers slowly",
                retriable=True,
            )
        try:
            yield
        finally:
            gate.release()
