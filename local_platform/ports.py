"""The fixed port of every listener, relative to a base, and who holds one."""

import socket
from collections.abc import Mapping
from contextlib import closing

import psutil

from local_platform.errors import PortInUseError

HOST = "127.0.0.1"

OFFSETS: Mapping[str, int] = {
    "spark": 2,
    "postgres": 32,
    "governor": 80,
    "registry": 81,
    "registry-west": 84,
    "kafka-east": 92,
    "kafka-east-controller": 93,
    "kafka-west": 192,
    "kafka-west-controller": 193,
}


def port(base: int, listener: str) -> int:
    """Return the port of a listener named in `OFFSETS`."""
    return base + OFFSETS[listener]


def answers(number: int) -> bool:
    """Tell whether something accepts connections on a local port."""
    with closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, number)) == 0


def is_free(number: int) -> bool:
    """Tell whether a server could listen on a local port now."""
    with closing(socket.socket()) as probe:
        # servers set it as well, so connections that only linger are no hindrance
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, number))
        except OSError:
            return False
        return True


def holder(number: int) -> str:
    """Say who listens on a port: "java (pid 12)", or that it cannot be seen."""
    try:
        found = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        found = []
    for connection in found:
        local = connection.laddr
        if connection.status == psutil.CONN_LISTEN and local and local.port == number:
            return _program(connection.pid)
    return "a program of another user"


def _program(pid: int | None) -> str:
    if pid is None:
        return "a program of another user"
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.NoSuchProcess:
        return f"pid {pid}"


def require_free(listeners: Mapping[str, int]) -> None:
    """Raise `PortInUseError` for the first listener whose port is taken.

    listeners: name -> port
    """
    for listener, number in listeners.items():
        if not is_free(number):
            raise PortInUseError(
                f"port {number} ({listener}) is in use by {holder(number)}: "
                "stop it or set SDM_PORT_BASE"
            )
