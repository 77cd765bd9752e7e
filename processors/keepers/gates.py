"""Gates: rights that hang on grants are not given by one keeper while another one takes them."""

from contextlib import AbstractContextManager
from threading import Lock


class Gates:
    """A lock for each cluster, so that one that does not answer holds up no other.

    Who gives rights that hang on a grant holds it, and asks the latest state of the log within it.
    Who takes them passes through it before it reads what is there: whoever gave some by an older
    state has done so by then.
    """

    def __init__(self) -> None:
        self._known: dict[str, Lock] = {}

    def __call__(self, cluster: str) -> AbstractContextManager[object]:
        """The gate of a cluster, by its name."""
        return self._known.setdefault(cluster, Lock())
