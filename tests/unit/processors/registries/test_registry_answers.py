"""What answers in the place of a cluster's own registry ends no worker."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mesh_events.errors import InfrastructureError, MeshError
from mesh_events.schema.definition import Definition, Version
from processors.registries import rest as module
from processors.registries.replica import RegistryReplica

WANTED = Version("east.a-value", 1, 7, Definition("AVRO", '"string"'))
DEEP = b"[" * 200_000


class Stranger(BaseHTTPRequestHandler):
    """Answers every question with the same bytes; without an end where there are none."""

    body: bytes | None
    drips = False
    # of the status line and of headers
    drips_before = b""
    ends: threading.Event

    def do_GET(self) -> None:
        if self.drips_before:
            with suppress(OSError):
                self.wfile.write(self.drips_before)
                while not self.ends.wait(0.05):
                    self.wfile.write(b"x")
            return
        self.send_response(200)
        if self.drips:
            self.send_header("Content-Length", "60000")
        self.end_headers()
        if self.drips:
            while not self.ends.wait(0.05):
                self.wfile.write(b" ")
            return
        if self.body is not None:
            self.wfile.write(self.body)
            return
        try:
            while True:
                self.wfile.write(b" " * 65_536)
        except OSError:
            pass

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


ENDED = r"for longer than 1\.5 s|does not answer \(ReadTimeout\)"
"""On a busy machine half a second passes between two drops."""
Served = tuple[type[Stranger], RegistryReplica, str]
"""What answers, a registry there, and its address."""


@pytest.fixture
def stranger() -> Iterator[Served]:
    handler = type("Handler", (Stranger,), {"ends": threading.Event()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        yield handler, RegistryReplica(f"{address}/api", "admin", "x"), address
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "body",
    [
        b'"ok"',
        b"[]",
        b"7",
        b"\xff",
        DEEP,
        b'{"schema": "x", "references": [{"name": "a", "subject": "b", "version": "x"}]}',
        b'{"schema": "x", "references": [7]}',
        b'{"schema": "%s"}' % DEEP,
        b'{"schema": "\\"string\\""}',
    ],
)
def test_an_answer_that_is_none_is_an_error_of_the_mesh(stranger: Served, body: bytes) -> None:
    handler, registry, _ = stranger
    handler.body = body
    with pytest.raises(MeshError):
        registry.bring(WANTED)


@pytest.mark.parametrize(
    "how",
    [
        {"drips": True},
        {"drips_before": b"HTTP/1.1 200 "},
        {"drips_before": b"HTTP/1.1 200 OK\r\nA: "},
    ],
    ids=["body", "status line", "header"],
)
def test_an_answer_that_comes_by_drops_ends_when_its_time_is_over(
    stranger: Served,
    monkeypatch: pytest.MonkeyPatch,
    how: dict[str, Any],
) -> None:
    """A worker that waited for it was taken for one that hangs, and ended."""
    handler, registry, _ = stranger
    for name, value in how.items():
        setattr(handler, name, value)
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.5)
    try:
        with pytest.raises(InfrastructureError, match=ENDED):
            registry.bring(WANTED)
    finally:
        handler.ends.set()


def test_an_answer_by_drops_ends_behind_a_proxy_as_well(
    stranger: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, _, address = stranger
    handler.drips_before = b"HTTP/1.1 200 "
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.5)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", address)
    behind = RegistryReplica("http://registry.invalid/api", "admin", "x")
    try:
        with pytest.raises(InfrastructureError, match=ENDED):
            behind.bring(WANTED)
    finally:
        handler.ends.set()


def test_an_answer_without_an_end_is_read_no_further(
    stranger: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, registry, _ = stranger
    handler.body = None
    monkeypatch.setattr(module, "LONGEST_ANSWER", 1_000_000)
    with pytest.raises(InfrastructureError, match="answers more than 1000000 bytes"):
        registry.bring(WANTED)
