"""The ports that Spark's drivers open for executors: they answer nobody who has no secret.

The messages are written here by hand, as Spark's network library frames them.
"""

import socket
import struct

import psutil
import pytest

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.ports import HOST

_OPEN_BLOCKS, _STREAM, _STREAM_FAILED, _CALL, _CALL_FAILED = b"\x00", 6, 8, 3, 5


@pytest.fixture(params=[None, "ports"], ids=["mesh", "domain"])
def driver_ports(
    request: pytest.FixtureRequest, platform: Endpoints, settings: PlatformSettings
) -> list[int]:
    """Of a server that had a session already: those beside the port of Spark Connect."""
    local = LocalPlatform(settings)
    domain = request.param
    remote = local.domain_server(domain)[0] if domain else platform.spark_remote
    name = f"spark-{domain}" if domain else "spark"
    [server] = [one for one in local.status() if one.name == name]
    found = psutil.Process(server.pid).net_connections("inet")
    ports = {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}
    own = sorted(port for port in ports if f":{port}" not in remote)
    assert own, (remote, ports)
    return own


def test_no_port_of_a_driver_serves_a_file(driver_ports: list[int]) -> None:
    for port in driver_ports:
        for folder in ("artifacts", "classes", "files", "jars"):
            asked = f"{folder}/{'../' * 12}etc/passwd"
            kind, answer = _answer(port, _STREAM, _text(asked))
            assert kind == _STREAM_FAILED, (port, folder, answer)


def test_no_port_of_a_driver_answers_calls_without_its_secret(driver_ports: list[int]) -> None:
    blocks = _OPEN_BLOCKS + _text("app") + _text("driver") + struct.pack(">i", 1)
    call = blocks + _text("broadcast_0_piece0")
    for port in driver_ports:
        kind, answer = _answer(port, _CALL, struct.pack(">qi", 7, len(call)) + call)
        assert kind == _CALL_FAILED, (port, answer)
        assert b"Expected SaslMessage" in answer, (port, answer)


def _text(words: str) -> bytes:
    return struct.pack(">i", len(words)) + words.encode()


def _answer(port: int, kind: int, body: bytes) -> tuple[int, bytes]:
    """Send one message; return the kind of the answer, and its bytes."""
    with socket.create_connection((HOST, port), timeout=10) as server:
        server.sendall(struct.pack(">qb", 9 + len(body), kind) + body)
        length, answered = struct.unpack(">qb", _exactly(server, 9))
        return answered, _exactly(server, length - 9)


def _exactly(server: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = server.recv(size - len(found))
        assert part, f"the connection ended after {found!r}"
        found += part
    return found
