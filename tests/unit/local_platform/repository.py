"""A small Maven repository on a free local port, for the fetcher's tests."""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from local_platform.jars.lock import Jar


class Repository:
    """Serves bytes by path and counts what was asked for.

    slow: paths whose second half is sent only after `release` is set
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()
        self.slow: set[str] = set()
        self.release = threading.Event()
        self.url = ""

    def add(self, name: str, body: bytes) -> Jar:
        """Publish a file and return its lock entry."""
        digest = hashlib.sha256(body).hexdigest()
        jar = Jar(f"org.example:{name}:1.0:jar:", "kafka", digest, len(body))
        self.files[jar.path] = body
        return jar


@contextmanager
def serving() -> Iterator[Repository]:
    repository = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            repository.asked[path] += 1
            body = repository.files.get(path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            half = len(body) // 2
            self.wfile.write(body[:half])
            if path in repository.slow:
                self._dribble(body[half:])
            else:
                self.wfile.write(body[half:])

        def _dribble(self, rest: bytes) -> None:
            step = 64 * 1024
            for start in range(0, len(rest), step):
                repository.release.wait(0.2)
                self.wfile.write(rest[start : start + step])

        def log_message(self, *_: object) -> None:
            return

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                return  # an interrupted fetcher hangs up

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    repository.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield repository
    finally:
        repository.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
