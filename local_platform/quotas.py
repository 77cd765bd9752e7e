"""Client quotas of a cluster: no login of a domain may starve the brokers.

The quota of all users holds for each of them by itself; the platform's and the mesh's own logins
are taken out of it.
"""

from collections.abc import Mapping

from local_platform.errors import NotReadyError
from mesh_events.errors import InfrastructureError
from mesh_events.kafka.client_quotas import CONSUMED, PRODUCED, REQUESTS, set_quotas
from mesh_events.kafka.connection import Connection

MUTATIONS, PARTITIONS_S = "controller_mutation_rate", 20
"""Partitions that a login may create or delete per second, KIP-599; as many as 11 s bring at once.

Kafka accepts the request that exceeds it, and then none until the rate is kept again.
"""
_UNBOUND = float(2**60)
OWN = ("admin", "registry", "connect", "mesh.governor", "mesh.operator")
"""Logins that serve every domain: slowing one of them would slow all."""


def ensure_quotas(login: Connection, bytes_s: int, request_percent: int) -> None:
    """Set the quota of all users, and take our own out of it; repeatable.

    Args:
        login: the super user's.
        bytes_s: what a login may write, and as much read, bytes per second and broker; 0 for no
            quota.
        request_percent: what a login may take of the brokers' threads' time, 100 for one thread;
            0 for no quota.

    Raises:
        NotReadyError: the cluster does not answer yet, or refuses.
    """
    wanted: dict[str | None, Mapping[str, float]] = {
        None: _quotas(float(bytes_s), float(request_percent), float(PARTITIONS_S)),
        **{user: _quotas(_UNBOUND, _UNBOUND, _UNBOUND) for user in OWN},
    }
    try:
        set_quotas(login, wanted)
    except InfrastructureError as fault:
        raise NotReadyError(str(fault)) from fault


def _quotas(bytes_s: float, request_percent: float, partitions_s: float) -> dict[str, float]:
    return {
        PRODUCED: bytes_s,
        CONSUMED: bytes_s,
        REQUESTS: request_percent,
        MUTATIONS: partitions_s,
    }
