"""When the platform takes the mesh's worker for ready."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from local_platform.errors import NotReadyError
from local_platform.services.mesh import Governor, readiness
from local_platform.settings import PlatformSettings
from local_platform.site import Site


class Page(HTTPServer):
    """Answers each request alike."""

    status, told = 200, b""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page: Any = self.server
        self.send_response(page.status)
        self.end_headers()
        self.wfile.write(page.told)

    def log_message(self, *_: object) -> None:
        """Nothing of it is wanted."""


@pytest.fixture
def page() -> Iterator[Page]:
    with Page(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def governor(tmp_path: Path, page: Page, monkeypatch: pytest.MonkeyPatch) -> Governor:
    site = Site.of(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))
    address = f"127.0.0.1:{page.server_port}"
    monkeypatch.setattr(Site, "address", lambda *_: address)
    return Governor(site)


def answers(page: Page, status: int, **told: Any) -> None:
    page.status, page.told = status, json.dumps(told).encode()


def test_a_worker_that_governs_is_ready(governor: Governor, page: Page) -> None:
    answers(page, 200, ready=True, standby=False)
    governor.probe()


def test_a_worker_that_stands_by_is_ready(governor: Governor, page: Page) -> None:
    answers(page, 503, ready=False, standby=True)
    governor.probe()


def test_a_worker_that_is_neither_is_not_ready(governor: Governor, page: Page) -> None:
    answers(page, 503, ready=False, standby=False)
    with pytest.raises(NotReadyError, match="not ready"):
        governor.probe()


@pytest.mark.parametrize("told", [b"", b"<html>", b"[]"])
def test_what_is_no_workers_answer_is_not_ready(
    governor: Governor, page: Page, told: bytes
) -> None:
    page.told = told
    with pytest.raises(NotReadyError):
        governor.probe()
    with pytest.raises(NotReadyError):
        readiness(f"127.0.0.1:{page.server_port}")
