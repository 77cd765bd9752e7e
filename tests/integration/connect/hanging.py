"""Databases that take a connection and keep their sink waiting, and how long its task does."""

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from threading import Event, Thread
from typing import Any

import requests

from local_platform import Endpoints
from projections.connectors.settings import JDBC_SINK
from tests.kafka_client import eventually, fresh
from tests.mesh_fixtures import connect_worker

Serve = Callable[[socket.socket], None]
TLS_ASKED = 80877103
"""What a client of PostgreSQL begins with that asks for TLS."""


def message(kind: bytes, body: bytes) -> bytes:
    """A message of PostgreSQL's."""
    return kind + struct.pack("!i", len(body) + 4) + body


@contextmanager
def accepting(serve: Serve) -> Iterator[int]:
    """Where a server listens that does so with each who comes."""

    def one(client: socket.socket) -> None:
        with closing(client), suppress(OSError):
            serve(client)

    def accept() -> None:
        with suppress(OSError):
            while True:
                Thread(target=one, args=server.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def connected(place: tuple[str, int]) -> Iterator[socket.socket]:
    """A connection that ends with the block, also while another thread waits for what it brings.

    To close it is not enough: that thread's call keeps it open, and the server its transaction.
    """
    with socket.create_connection(place) as found:
        try:
            yield found
        finally:
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)


def deaf_to(question: bytes, place: tuple[str, int], over: Event) -> Serve:
    """A database as the one at `place`, but that it reads nothing more once it is asked that."""

    def answer(database: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while told := database.recv(65536):
                client.sendall(told)

    def serve(client: socket.socket) -> None:
        with connected(place) as database:
            Thread(target=answer, args=(database, client), daemon=True).start()
            while asked := client.recv(65536):
                if question in asked:
                    over.wait()
                database.sendall(asked)

    return serve


def asked(mesh: Endpoints, method: str, name: str, **more: Any) -> Any:
    """Ask Connect of a connector."""
    url, login = connect_worker(mesh)
    return requests.request(method, f"{url}/connectors/{name}", auth=login, timeout=60, **more)


def address_faults(mesh: Endpoints, config: Mapping[str, str]) -> list[str]:
    """What Connect says against the address of a capture, which it has the driver call."""
    url, login = connect_worker(mesh)
    path = f"{url}/connector-plugins/{config['connector.class']}/config/validate"
    found = requests.put(path, json=config, auth=login, timeout=60).json()["configs"]
    told = {one["value"]["name"]: list(one["value"]["errors"]) for one in found}
    return told["database.hostname"]


def failure(mesh: Endpoints, name: str) -> str | None:
    """The trace of a connector's task that has failed."""
    found = asked(mesh, "GET", f"{name}/status")
    tasks = found.json()["tasks"] if found.ok else []
    return tasks[0].get("trace") if tasks and tasks[0]["state"] == "FAILED" else None


def sink(url: str, **more: str) -> dict[str, str]:
    """The config of a sink, with an address that bounds a silence to seconds."""
    return {
        "connector.class": JDBC_SINK,
        "connection.url": url,
        "connection.username": "u",
        "connection.password": "p",
        "connection.pool.min_size": "1",
        "flush.max.retries": "0",
        **more,
    }


@contextmanager
def deployed(mesh: Endpoints, configs: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """Has Connect run these sinks; what they are called by -> their name there."""
    names: dict[str, str] = {}
    try:
        for what, config in configs.items():
            name = fresh("probe")
            names[what] = name
            put = asked(mesh, "PUT", f"{name}/config", json={"topics": name, **config})
            assert put.ok, put.text
        yield names
    finally:
        for name in names.values():
            asked(mesh, "DELETE", name)


def traces(
    mesh: Endpoints, configs: Mapping[str, Mapping[str, str]], seconds: float
) -> dict[str, str | None]:
    """Each sink's failure, None of one that still waits after so long.

    Seen by the state of the task: one that has failed is gone, with its threads.
    """
    told: dict[str, str | None] = dict.fromkeys(configs)
    with deployed(mesh, configs) as names:

        def all_failed() -> bool:
            told.update({what: failure(mesh, names[what]) for what in configs if not told[what]})
            return all(told.values())

        with suppress(AssertionError):
            eventually(all_failed, "every task fails", seconds)
    return told
