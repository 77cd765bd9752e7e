"""What a client without a login makes the registry do."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import psutil
import pytest
import requests

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.supervision.state import ServiceStatus
from mesh_events.references import resolve
from tests.kafka_client import eventually, fresh

pytestmark = pytest.mark.platform

SCHEMA = json.dumps({"schema": '{"type": "string"}'})
JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
SYMBOLS = ",".join(f'\\"s{number}\\"' for number in range(170_000))
ENUM = f'{{"schema":"{{\\"type\\":\\"enum\\",\\"name\\":\\"e\\",\\"symbols\\":[{SYMBOLS}]}}"}}'
"""Nearly 2 MB."""
CLIENTS = 24
"""Three times as many as the registry serves together."""
LONGEST_S = 30
"""After so long a body is given up anyway."""
DEADLINE_S = 240
IDLE = 30
"""Percent of a processor that the registry takes while nobody asks for anything, and more."""
SLOW = 30
"""More than the threads of the registry."""
MANY = 200
"""So many times two megabytes are more than its heap, and as many small ones than there is room."""
GONE = 400
"""So many comparisons of two megabytes whose clients do not wait ended the registry."""
UPGRADE = (
    b"GET /apis/ccompat/v7/schemas/types HTTP/1.1\r\nHost: any\r\n"
    b"Connection: Upgrade, HTTP2-Settings\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n"
)
CLOSED = 0
"""The outcome of a request whose connection was closed."""
ASKED = 20
"""Requests of one connection, sent one behind the other."""
MOST_CONNECTIONS = 500


@pytest.fixture
def subject(platform: Endpoints) -> str:
    """A subject with one schema."""
    found = fresh("flooded")
    login = (platform.registry_user, resolve(platform.registry_password))
    path = f"{platform.registry_url}/subjects/{found}/versions"
    assert requests.post(path, SCHEMA, auth=login, headers=JSON, timeout=30).ok
    return found


def post(platform: Endpoints, path: str, body: str, timeout_s: float = 60) -> int:
    """The status of an anonymous request; below the Confluent API where `path` is relative."""
    base = urlsplit(platform.registry_url)
    url = f"http://{base.netloc}{path}" if path[0] == "/" else f"{platform.registry_url}/{path}"
    return requests.post(url, body, headers=JSON, timeout=timeout_s).status_code


def answers(url: str) -> bool:
    with suppress(requests.ConnectionError):
        return bool(requests.get(url, timeout=DEADLINE_S).json() == [1])
    return False


def registry(settings: PlatformSettings) -> ServiceStatus:
    [found] = [one for one in LocalPlatform(settings).status() if one.name == "registry"]
    return found


def test_ids_and_compatibility_are_answered_without_a_login(
    platform: Endpoints, subject: str
) -> None:
    assert post(platform, f"subjects/{subject}", SCHEMA) == 200
    assert post(platform, f"compatibility/subjects/{subject}/versions/latest", SCHEMA) == 200


@pytest.mark.parametrize(
    "path",
    [
        "subjects/foreign/versions",
        "/apis/ccompat/v6/subjects/foreign",
        "/apis/registry/v2/search/artifacts",
        "/apis/registry/v2/groups/default/artifacts",
        "/apis/registry/v3/search/versions",
        "/apis/registry/v3/admin/rules",
    ],
)
def test_nothing_else_is_posted_without_a_login(platform: Endpoints, path: str) -> None:
    assert post(platform, path, SCHEMA) == 401


def test_a_body_above_the_bound_is_refused(platform: Endpoints, subject: str) -> None:
    assert post(platform, f"subjects/{subject}", "a" * (9 << 20)) == 413


def test_many_large_comparisons_at_once_leave_the_registry_answering(
    platform: Endpoints, settings: PlatformSettings, subject: str
) -> None:
    before = registry(settings)
    path = f"compatibility/subjects/{subject}/versions/latest"
    versions = f"{platform.registry_url}/subjects/{subject}/versions"

    def compare() -> int:
        try:
            return post(platform, path, ENUM, DEADLINE_S)
        except requests.ConnectionError:
            # what waits for its turn for longer than the registry's idle timeout is closed
            return CLOSED

    with ThreadPoolExecutor(CLIENTS) as clients:
        asked = [clients.submit(compare) for _ in range(CLIENTS)]
        wait(asked, return_when=FIRST_COMPLETED)
        eventually(lambda: answers(versions), "the registry answers", DEADLINE_S)
        outcomes = {one.result() for one in asked}

    assert 200 in outcomes <= {200, CLOSED}
    assert registry(settings).pid == before.pid


def test_comparisons_whose_clients_are_gone_leave_the_registry_answering(
    platform: Endpoints, settings: PlatformSettings, subject: str
) -> None:
    before = registry(settings)
    place = urlsplit(platform.registry_url)
    head = f"POST {place.path}/compatibility/subjects/{subject}/versions/latest HTTP/1.1\r\n"
    head += f"Host: any\r\nContent-Type: application/json\r\nContent-Length: {len(ENUM)}\r\n\r\n"
    sent = (head + ENUM).encode()

    def go() -> None:
        # the registry closes those that it has no room for
        with (
            suppress(ConnectionError),
            socket.create_connection((place.hostname, place.port), timeout=30) as client,
        ):
            client.sendall(sent)

    with ThreadPoolExecutor(CLIENTS) as clients:
        for one in [clients.submit(go) for _ in range(GONE)]:
            one.result()
    path = f"compatibility/subjects/{subject}/versions/latest"

    def compared() -> bool:
        # while those are still arriving, it may be the one that has to go
        with suppress(requests.ConnectionError):
            return post(platform, path, ENUM, DEADLINE_S) == 200
        return False

    eventually(compared, "it is compared behind those that are worked on", DEADLINE_S)
    assert registry(settings).pid == before.pid


@pytest.mark.parametrize(
    "sent",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]),
        UPGRADE,
    ],
    ids=["begun", "upgraded"],
)
def test_nobody_is_answered_in_http_2(platform: Endpoints, sent: bytes) -> None:
    """Streams and resets in masses on a few connections kept all threads of the registry busy."""
    place = urlsplit(platform.registry_url)
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        connection.sendall(sent)
        first = connection.recv(65536).split(b"\r\n")[0]
    assert first in (b"HTTP/2.0 400 Bad Request", b"HTTP/1.1 200 OK")


def test_the_registry_listens_at_its_one_port(
    platform: Endpoints, settings: PlatformSettings
) -> None:
    [status] = [one for one in LocalPlatform(settings).status() if one.name == "registry"]
    process = psutil.Process(status.pid)
    listening = [one.laddr.port for one in process.net_connections() if one.status == "LISTEN"]
    assert listening == [urlsplit(platform.registry_url).port]


def announced(platform: Endpoints, subject: str, body: str) -> socket.socket:
    """A lookup without a login whose body is to come as this header says."""
    place = urlsplit(platform.registry_url)
    found = socket.create_connection((place.hostname, place.port), timeout=30)
    head = f"POST {place.path}/subjects/{subject} HTTP/1.1\r\nHost: any\r\n"
    head += f"Content-Type: application/json\r\n{body}\r\n\r\n"
    found.sendall(head.encode())
    found.setblocking(False)
    return found


def begun(platform: Endpoints, subject: str, length: int, part: int) -> socket.socket:
    """A lookup without a login whose body of so many bytes has come in part."""
    found = announced(platform, subject, f"Content-Length: {length}")
    # where the registry reads no more of it, the rest is not sent
    with suppress(BlockingIOError):
        found.send(b"x" * part)
    return found


@contextmanager
def fed(connections: list[socket.socket]) -> Iterator[None]:
    """Send a byte by each of them every second."""
    over = threading.Event()

    def feed() -> None:
        while not over.wait(1):
            for one in connections:
                with suppress(OSError):
                    one.send(b"x")

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        over.set()
        feeder.join()


def is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1024)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_bodies_that_come_slowly_hold_no_thread(platform: Endpoints, subject: str) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(begun(platform, subject, 100_000, 1)) for _ in range(SLOW)]
        stack.enter_context(fed(slow))
        assert post(platform, f"subjects/{subject}", SCHEMA) == 200
        eventually(lambda: is_closed(slow[0]), "a body that does not end is given up", DEADLINE_S)


@pytest.mark.parametrize(
    ("length", "part"), [(1_900_000, 1_800_000), (60_000, 1)], ids=["large", "small"]
)
def test_bodies_that_do_not_end_leave_room_for_others(
    platform: Endpoints, settings: PlatformSettings, subject: str, length: int, part: int
) -> None:
    before = registry(settings)
    with ExitStack() as stack:
        for _ in range(MANY):
            stack.enter_context(begun(platform, subject, length, part))
        for _ in range(3):
            assert post(platform, f"subjects/{subject}", SCHEMA, DEADLINE_S) == 200
    assert registry(settings).pid == before.pid


def test_bodies_in_very_many_parts_are_given_up(platform: Endpoints, subject: str) -> None:
    """Each part takes the thread that reads for all some time; bytes alone are few."""
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(announced(platform, subject, "Transfer-Encoding: chunked"))
            for _ in range(SLOW)
        ]

        def feed() -> bool:
            """Send some parts of a byte by each of them; whether one is closed."""
            for one in crowd:
                for _ in range(500):
                    try:
                        one.send(b"1\r\na\r\n")
                    except BlockingIOError:
                        break
                    except ConnectionError:
                        return True
            return any(is_closed(one) for one in crowd)

        eventually(feed, "a body in very many parts is given up", LONGEST_S / 2)
        assert post(platform, f"subjects/{subject}", SCHEMA) == 200


def test_bodies_with_a_login_have_room_of_their_own(platform: Endpoints, subject: str) -> None:
    """Those of the mesh, whatever others without a login send: these fill what room they have."""
    length, part = 1_900_000, 20_000
    sent = dict.fromkeys(range(SLOW), 0)
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(announced(platform, subject, f"Content-Length: {length}"))
            for _ in range(SLOW)
        ]
        over = threading.Event()

        def feed() -> None:
            """Fast enough to be given no room up: ten parts a second of each, but for the last."""
            while not over.wait(0.1):
                for number, one in enumerate(crowd):
                    if sent[number] + part < length:
                        with suppress(OSError):
                            sent[number] += one.send(b"x" * part)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            eventually(lambda: sum(sent.values()) > 2_000_000, "the room is taken", 30)
            login = (platform.registry_user, resolve(platform.registry_password))
            path = f"{platform.registry_url}/compatibility/subjects/{subject}/versions/latest"
            answer = requests.post(path, ENUM, auth=login, headers=JSON, timeout=60)
            assert answer.json() == {"is_compatible": False}
            assert not any(is_closed(one) for one in crowd)
        finally:
            over.set()
            feeder.join()


@pytest.mark.parametrize(
    "path",
    [
        "schemas",
        "schemas/",
        "schemas?limit=1",
        "/apis/ccompat/v6/schemas",
        "/apis/ccompat/v7/../v7/schemas",
        "/apis/ccompat/v7/schemas/ids/../",
        "/apis/ccompat/v7/%73chemas",
        "/apis/ccompat/v7/schemas;a=b",
        "/apis/ccompat/v7/subjects/../schemas",
        "/apis/ccompat/v7/subjects/%2e%2e/schemas",
        "/apis/ccompat/v7//schemas",
        "/apis/registry/v3/search/artifacts",
        "/apis/registry/v3/admin/export",
    ],
)
def test_no_list_with_texts_is_given_without_a_login(platform: Endpoints, path: str) -> None:
    base = urlsplit(platform.registry_url)
    if path[0] != "/":
        path = f"{base.path}/{path}"
    # as it is: clients make it shorter
    with socket.create_connection((base.hostname, base.port), timeout=30) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: any\r\n\r\n".encode())
        status = int(connection.recv(65536).split()[1])
    assert status in (400, 401, 404)


@pytest.mark.usefixtures("subject")
def test_who_has_a_login_lists_schemas(platform: Endpoints) -> None:
    login = (platform.registry_user, resolve(platform.registry_password))
    answer = requests.get(f"{platform.registry_url}/schemas?limit=1", auth=login, timeout=60)
    assert ["schema" in one for one in answer.json()] == [True]


def test_answers_that_are_not_read_hold_no_thread(
    platform: Endpoints, settings: PlatformSettings, subject: str
) -> None:
    """Of a schema of a megabyte, asked for again and again by clients that read nothing."""
    before = registry(settings)
    login = (platform.registry_user, resolve(platform.registry_password))
    path = f"{platform.registry_url}/subjects/{fresh('large')}/versions"
    # records of the registry's topic have a mebibyte at most
    large = ENUM.replace(SYMBOLS, SYMBOLS[: len(SYMBOLS) // 2].rpartition(",")[0])
    made = requests.post(path, large, auth=login, headers=JSON, timeout=60).json()["id"]
    place = urlsplit(platform.registry_url)
    sent = f"GET {place.path}/schemas/ids/{made} HTTP/1.1\r\nHost: any\r\n\r\n".encode() * ASKED
    lookup = f"{platform.registry_url}/subjects/{subject}/versions"
    with ExitStack() as stack:
        crowd = []
        for _ in range(SLOW):
            one = stack.enter_context(socket.socket())
            # so that the rest stays with the registry
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(30)
            one.connect((place.hostname, place.port))
            one.sendall(sent)
            one.setblocking(False)
            crowd.append(one)
        # each of the threads would wait for half a minute
        for _ in range(5):
            assert requests.get(lookup, timeout=LONGEST_S / 3).json() == [1]
            assert requests.get(lookup, auth=login, timeout=LONGEST_S / 3).json() == [1]
        # no client sees the end of what it does not read
        ports = {one.getsockname()[1] for one in crowd}
        process = psutil.Process(before.pid)
        eventually(
            lambda: ports.isdisjoint(
                one.raddr.port for one in process.net_connections("tcp4") if one.raddr
            ),
            "who asks on and reads nothing is closed",
            LONGEST_S / 2,
        )
    # a thread notices that a client is gone when it has made its answer, some tenths of a second
    # each, and others' lookups take turns with these
    eventually(lambda: process.cpu_percent(1) < IDLE, "what was asked for is done", DEADLINE_S)
    assert registry(settings).pid == before.pid


def test_very_many_lookups_that_wait_are_all_answered(platform: Endpoints, subject: str) -> None:
    """A thread goes from one to the next, and has a stack for some thousand calls."""
    lookup = f"{platform.registry_url}/subjects/{subject}/versions"
    each = 60

    def ask() -> int:
        with requests.Session() as kept:
            answers = [kept.get(lookup, timeout=LONGEST_S).json() for _ in range(each)]
        return answers.count([1])

    with ThreadPoolExecutor(SLOW) as clients:
        asked = [clients.submit(ask) for _ in range(SLOW)]
        assert sum(one.result() for one in asked) == each * SLOW


def test_lists_without_a_login_keep_no_lookup_waiting(platform: Endpoints, subject: str) -> None:
    """Of subjects, of which the registry gets many."""
    login = (platform.registry_user, resolve(platform.registry_password))
    place = urlsplit(platform.registry_url)
    sent = f"GET {place.path}/subjects HTTP/1.1\r\nHost: any\r\n\r\n".encode() * ASKED
    lookup = f"{platform.registry_url}/subjects/{subject}/versions"
    over = threading.Event()
    closed = []

    def flood() -> None:
        while not over.is_set():
            with (
                suppress(OSError),
                socket.create_connection((place.hostname, place.port), timeout=30) as one,
            ):
                one.sendall(sent)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
                closed.append(one)

    with ThreadPoolExecutor(SLOW) as clients:
        try:
            for _ in range(SLOW):
                clients.submit(flood)
            eventually(lambda: bool(closed), "some are answered", 30)
            for _ in range(5):
                assert requests.get(lookup, timeout=LONGEST_S / 3).json() == [1]
                assert requests.get(lookup, auth=login, timeout=LONGEST_S / 3).json() == [1]
        finally:
            over.set()


def test_the_connection_that_asked_nothing_for_longest_gives_way(
    platform: Endpoints, subject: str
) -> None:
    place = urlsplit(platform.registry_url)
    lookup = f"{platform.registry_url}/subjects/{subject}/versions"
    with ExitStack() as stack, requests.Session() as kept:
        idle: list[socket.socket] = []

        def come() -> None:
            one = socket.create_connection((place.hostname, place.port), timeout=30)
            stack.enter_context(one).setblocking(False)
            idle.append(one)
            if len(idle) % 100 == 0:
                # by one connection all the time, which is as old as the first
                assert kept.get(lookup, timeout=30).json() == [1]

        def gives_way() -> bool:
            come()
            return is_closed(idle[0])

        for _ in range(MOST_CONNECTIONS):
            come()
        # others that the registry does not know to be gone give way before
        eventually(gives_way, "the first is closed", LONGEST_S / 2)
        assert not is_closed(idle[-1])
        assert requests.get(lookup, timeout=30).json() == [1]
        assert kept.get(lookup, timeout=30).json() == [1]
