"""An OpenLineage receiver on this machine, which takes, refuses, fails or is slow as it is told."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Judge = Callable[[dict[str, Any]], int]
SLOW = 0
"""No status: the answer comes when the receiver closes."""
LETTER_BY_LETTER = -1
"""No status: an answer that comes, but never ends."""


@dataclass
class LocalReceiver:
    """`got` holds (path, headers, event) of each request; `judge` gives the status for one."""

    judge: Judge = lambda _: 201
    got: list[tuple[str, Message, dict[str, Any]]] = field(default_factory=list)
    port: int = 0
    closing: Event = field(default_factory=Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def runs(self) -> list[str]:
        """The run ids of what came in, in its order."""
        return [event["run"]["runId"] for _, _, event in self.got]


@contextmanager
def receiving(port: int = 0, judge: Judge = lambda _: 201) -> Iterator[LocalReceiver]:
    """A receiver that listens, at a port of its own unless one is named."""
    found = LocalReceiver(judge)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((self.path, self.headers, json.loads(body)))
            status = found.judge(json.loads(body))
            if status == SLOW:
                found.closing.wait(20)
                self.close_connection = True
                return
            if status == LETTER_BY_LETTER:
                self.close_connection = True
                with suppress(OSError):
                    self.wfile.write(b"HTTP/1.1 201 ")
                    while not found.closing.wait(0.05):
                        self.wfile.write(b"x")
                return
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    found.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield found
    finally:
        found.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
