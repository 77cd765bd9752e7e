"""Which Connect cluster the connectors of a domain run on: its own, or one that several share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from processors.connect.cluster import ConnectCluster


def _none(_: str) -> ConnectCluster | None:
    return None


@dataclass
class Connects:
    """Domain -> Connect cluster.

    Args:
        shared: the cluster of all domains that have none of their own; None where there is none.
        own: makes the cluster that is a domain's own, None for a domain without.
    """

    shared: ConnectCluster | None = None
    own: Callable[[str], ConnectCluster | None] = _none
    _own: dict[str, ConnectCluster] = field(default_factory=dict)

    def of(self, domain: str) -> ConnectCluster | None:
        """The cluster of a domain, the same one at every call; None where it has none."""
        known = self._own.get(domain)
        if known is not None:
            return known
        made = self.own(domain)
        # controllers ask in threads of their own
        return self.shared if made is None else self._own.setdefault(domain, made)
