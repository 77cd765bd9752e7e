"""What a client without a login makes Connect's REST API do."""

import base64
import contextlib
import socket
from urllib.parse import urlsplit

import pytest
import requests

from local_platform import Endpoints
from tests.mesh_fixtures import connect_worker

pytestmark = pytest.mark.platform

CONNECTIONS = 230
"""More than the threads that Jetty has for requests, which are 200."""
BOUND = 1 << 20
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


def head(request: str, length: int | None, kind: str = JSON, login: str | None = None) -> bytes:
    """The head of a request that announces a body; in chunks where it tells no length."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"{request} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {kind}", size]
    if login is not None:
        lines.append(f"Authorization: Basic {base64.b64encode(login.encode()).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()


def admin(platform: Endpoints) -> str:
    return ":".join(connect_worker(platform)[1])


def opened(platform: Endpoints, sent: bytes) -> socket.socket:
    place = urlsplit(connect_worker(platform)[0])
    found = socket.create_connection((place.hostname, place.port), timeout=10)
    found.sendall(sent)
    return found


def status_and_end(connection: socket.socket) -> int:
    """The status of the answer, after which the server closes the connection."""
    with connection, connection.makefile("rb") as answer:
        first = answer.readline()
        answer.read()
    return int(first.split()[1])


@pytest.mark.parametrize("begun", [b"", b"["])
@pytest.mark.parametrize("kind", [JSON, FORM])
@pytest.mark.parametrize(
    "request_line", ["POST /connectors/any/tasks", "PUT /connectors/any/fence"]
)
def test_slow_bodies_without_a_login_hold_no_thread(
    platform: Endpoints, request_line: str, kind: str, begun: bytes
) -> None:
    url, login = connect_worker(platform)
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(opened(platform, head(request_line, 1000, kind) + begun))
            for _ in range(CONNECTIONS)
        ]
        answer = requests.get(f"{url}/connectors", auth=login, timeout=10)
        assert answer.status_code == 200
        assert [status_and_end(one) for one in connections] == [401] * CONNECTIONS


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /",
        "POST /connectors",
        "POST /connectors/any/tasks",
        "POST /connectors/any/tasks/",
        "POST /connectors/any/%74asks",
        "POST /connectors/a%20b/tasks",
        "POST /connectors/any;a=b/tasks",
        "POST /connectors/any/tasks?forward=false",
        "PUT /connectors/any/fence",
        "PUT /connectors/any/fence/",
        "PATCH /connectors/any/tasks",
        "OPTIONS /connectors/any/tasks",
        "ANY /connectors/any/tasks",
    ],
)
@pytest.mark.parametrize("length", [1000, 400 << 20, None])
def test_nothing_is_read_of_a_body_without_a_login(
    platform: Endpoints, request_line: str, length: int | None
) -> None:
    assert status_and_end(opened(platform, head(request_line, length))) == 401


@pytest.mark.parametrize("path", ["//connectors/any/tasks", "/connectors//any/tasks"])
def test_a_path_that_can_be_read_in_two_ways_is_refused(platform: Endpoints, path: str) -> None:
    assert status_and_end(opened(platform, head(f"POST {path}", 1000))) == 400


@pytest.mark.parametrize("login", ["testers:", "testers:wrong", "nobody:any", "testers", ":", ""])
def test_a_login_that_connect_does_not_know_is_none(platform: Endpoints, login: str) -> None:
    sent = head("POST /connectors/any/tasks", 1000, login=login)
    assert status_and_end(opened(platform, sent)) == 401


@pytest.mark.parametrize("authorization", ["Basic !!!", "Basic", "Bearer abc", "Basic \xff"])
def test_a_login_that_cannot_be_read_is_none(platform: Endpoints, authorization: str) -> None:
    sent = head("POST /connectors/any/tasks", 1000)[:-2]
    sent += f"Authorization: {authorization}\r\n\r\n".encode("latin-1")
    assert status_and_end(opened(platform, sent)) == 401


@pytest.mark.parametrize(("length", "status"), [(BOUND + 1, 413), (400 << 20, 413), (None, 411)])
def test_a_body_above_the_bound_is_refused_also_with_a_login(
    platform: Endpoints, length: int | None, status: int
) -> None:
    sent = head("POST /connectors/any/tasks", length, login=admin(platform))
    assert status_and_end(opened(platform, sent)) == status


def test_a_body_up_to_the_bound_is_read_with_a_login(platform: Endpoints) -> None:
    url, login = connect_worker(platform)
    path = f"{url}/connectors"
    body = b'{"name": "any", "config": {}}'.ljust(BOUND)
    answer = requests.post(path, body, auth=login, headers={"Content-Type": JSON}, timeout=30)
    assert answer.status_code == 400, "read, and found to have no config"
