"""Whether anything answers at a cluster's address: asked first, since Kafka's clients keep trying.

Without it a command on a stopped mesh waits for many seconds before it says so.
"""

import socket

from mesh_events.errors import ConfigurationError, InfrastructureError

_TIMEOUT_S = 3.0


def require_answer(servers: str, cluster: str = "") -> None:
    """Raise InfrastructureError unless one of `host:port,host:port` accepts a connection."""
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not port.isdecimal():
            raise ConfigurationError(f"{server!r} is not a broker's address: write it as host:port")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT_S):
                return
        except OSError:
            continue
    name = f"cluster {cluster}" if cluster else "Kafka"
    raise InfrastructureError(
        f"no broker of {name} answers at {servers}: a failed server is restarted within "
        "seconds, a stopped mesh with `sdm up`",
        retriable=True,
    )
