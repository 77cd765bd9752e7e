"""What a client without a login makes Connect's REST API do."""

import base64
import contextlib
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil
import pytest
import requests

from local_platform import Endpoints, PlatformSettings
from tests.kafka_client import eventually
from tests.mesh_fixtures import connect_service, connect_worker, pid_of

pytestmark = pytest.mark.platform

CONNECTIONS = 230
"""More than the threads that Jetty has for requests, which are 200."""
BOUND = 1 << 20
MOST_CONNECTIONS = 500
ABOVE = 30
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


def head(request: str, length: int | None, kind: str = JSON, login: str | None = None) -> bytes:
    """The head of a request that announces a body; in chunks where it tells no length."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"{request} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {kind}", size]
    if login is not None:
        lines.append(f"Authorization: Basic {base64.b64encode(login.encode()).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()


class Worker(NamedTuple):
    """Where the REST API answers, and a login there."""

    url: str
    login: tuple[str, str]


@pytest.fixture
def worker(platform: Endpoints) -> Worker:
    """Asked for by each test: it stops once nobody has for `connect_idle_s`."""
    return Worker(*connect_worker(platform))


def opened(worker: Worker, sent: bytes) -> socket.socket:
    place = urlsplit(worker.url)
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
    worker: Worker, request_line: str, kind: str, begun: bytes
) -> None:
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(opened(worker, head(request_line, 1000, kind) + begun))
            for _ in range(CONNECTIONS)
        ]
        answer = requests.get(f"{worker.url}/connectors", auth=worker.login, timeout=10)
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
    worker: Worker, request_line: str, length: int | None
) -> None:
    assert status_and_end(opened(worker, head(request_line, length))) == 401


@pytest.mark.parametrize("path", ["//connectors/any/tasks", "/connectors//any/tasks"])
def test_a_path_that_can_be_read_in_two_ways_is_refused(worker: Worker, path: str) -> None:
    assert status_and_end(opened(worker, head(f"POST {path}", 1000))) == 400


@pytest.mark.parametrize("login", ["testers:", "testers:wrong", "nobody:any", "testers", ":", ""])
def test_a_login_that_connect_does_not_know_is_none(worker: Worker, login: str) -> None:
    sent = head("POST /connectors/any/tasks", 1000, login=login)
    assert status_and_end(opened(worker, sent)) == 401


@pytest.mark.parametrize("authorization", ["Basic !!!", "Basic", "Bearer abc", "Basic \xff"])
def test_a_login_that_cannot_be_read_is_none(worker: Worker, authorization: str) -> None:
    sent = head("POST /connectors/any/tasks", 1000)[:-2]
    sent += f"Authorization: {authorization}\r\n\r\n".encode("latin-1")
    assert status_and_end(opened(worker, sent)) == 401


@pytest.mark.parametrize(("length", "status"), [(BOUND + 1, 413), (400 << 20, 413), (None, 411)])
def test_a_body_above_the_bound_is_refused_also_with_a_login(
    worker: Worker, length: int | None, status: int
) -> None:
    sent = head("POST /connectors/any/tasks", length, login=":".join(worker.login))
    assert status_and_end(opened(worker, sent)) == status


def test_a_body_up_to_the_bound_is_read_with_a_login(worker: Worker) -> None:
    path = f"{worker.url}/connectors"
    body = b'{"name": "any", "config": {}}'.ljust(BOUND)
    answer = requests.post(
        path, body, auth=worker.login, headers={"Content-Type": JSON}, timeout=30
    )
    assert answer.status_code == 400, "read, and found to have no config"


def test_above_the_bound_who_came_first_without_a_login_is_closed(
    worker: Worker, platform: Endpoints, settings: PlatformSettings
) -> None:
    process = psutil.Process(pid_of(settings, connect_service()))
    port = urlsplit(worker.url).port

    def established() -> int:
        return sum(
            one.status == psutil.CONN_ESTABLISHED and one.laddr.port == port
            for one in process.net_connections(kind="tcp")
        )

    with contextlib.ExitStack() as stack, requests.Session() as kept:
        kept.auth = worker.login
        assert kept.get(f"{worker.url}/connectors", timeout=10).status_code == 200
        # before there are any: it takes its time, after which the last one would be closed as well
        connect_worker(platform)
        connections = [
            stack.enter_context(opened(worker, b"GET /connectors HTTP/1.1\r\nHost:"))
            for _ in range(MOST_CONNECTIONS + ABOVE)
        ]
        for one in connections:
            # a byte now and then is no reason to keep it
            with contextlib.suppress(OSError):
                one.sendall(b"a")
        eventually(
            lambda: all(is_over(one) for one in connections[:ABOVE]), "the first ones are closed"
        )
        assert established() <= MOST_CONNECTIONS + 10
        assert not is_over(connections[-1])
        assert kept.get(f"{worker.url}/connectors", timeout=10).status_code == 200
        answer = requests.get(f"{worker.url}/connectors", auth=worker.login, timeout=10)
    assert answer.status_code == 200


def is_over(connection: socket.socket) -> bool:
    """Whether the server has closed it."""
    connection.setblocking(False)
    try:
        return not connection.recv(4096)
    except BlockingIOError:
        return False
    except OSError:
        return True
