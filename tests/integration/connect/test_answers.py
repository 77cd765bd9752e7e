"""What a database answers takes a bounded part of Connect's memory, which all domains share."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from threading import Thread

import pytest
import requests

from local_platform import Endpoints
from local_platform.services.connect import DEBEZIUM
from mesh_events.references import resolve

pytestmark = pytest.mark.platform
_SSL_ASKED = 80877103
_ERROR_BYTES = 64 << 20


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def let_in(client: socket.socket) -> None:
    """Lets whoever comes in, and takes the first question."""
    known = b"server_version\x0018.0\0", b"client_encoding\0UTF8\0"
    settings = b"".join(message(b"S", one) for one in known)
    client.sendall(message(b"R", struct.pack("!i", 0)) + settings + message(b"Z", b"I"))
    client.recv(65536)
    column = b"a\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0)
    client.sendall(message(b"T", struct.pack("!h", 1) + column))


def rows_without_end(client: socket.socket) -> None:
    let_in(client)
    row = message(b"D", struct.pack("!hi", 1, 60_000) + b"y" * 60_000)
    while True:
        client.sendall(row)


def empty_rows_without_end(client: socket.socket) -> None:
    """Each takes some bytes on the way, and many times as much in memory."""
    let_in(client)
    row = message(b"D", struct.pack("!h", 0))
    while True:
        client.sendall(row * 1000)


def an_error_of_many_bytes(client: socket.socket) -> None:
    client.sendall(b"E" + struct.pack("!i", _ERROR_BYTES) + b"SFATAL\0C28P01\0M")
    for _ in range(_ERROR_BYTES >> 16):
        client.sendall(b"x" * 65536)


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Where the server listens that the parameter makes of a connection."""
    speak: Callable[[socket.socket], None] = request.param

    def serve(client: socket.socket) -> None:
        with closing(client), suppress(OSError):
            (asked,) = struct.unpack("!4xi", client.recv(65536)[:8])
            if asked == _SSL_ASKED:
                client.sendall(b"N")
                client.recv(65536)
            speak(client)

    def accept() -> None:
        with suppress(OSError):
            while True:
                Thread(target=serve, args=server.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "port", [rows_without_end, an_error_of_many_bytes, empty_rows_without_end], indirect=True
)
def test_an_answer_that_is_too_large_ends_the_connection(mesh: Endpoints, port: int) -> None:
    config = {
        "connector.class": DEBEZIUM,
        "name": "probe",
        "topic.prefix": "probe",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": "u",
        "database.password": "p",
        "database.dbname": "d",
    }
    url = f"{mesh.connect_url}/connector-plugins/{DEBEZIUM}/config/validate"
    login = (mesh.connect_user, resolve(mesh.connect_password))
    found = requests.put(url, json=config, auth=login, timeout=60)
    told = {one["value"]["name"]: one["value"]["errors"] for one in found.json()["configs"]}
    [fault] = told["database.hostname"]
    assert "An I/O error occurred" in fault or "The connection attempt failed" in fault
    assert len(fault) < 1000
