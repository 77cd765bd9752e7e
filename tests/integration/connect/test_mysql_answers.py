"""A sink's task waits for MySQL and MariaDB for a bounded time, and takes a bounded answer."""

import itertools
import socket
import struct
import time
import zipfile
from contextlib import ExitStack

import pytest

from local_platform import Endpoints
from local_platform.jars import JarStore, read_lock
from local_platform.plugins import connect_plugins
from local_platform.settings import PlatformSettings
from projections.connector_settings import JDBC_SINK
from projections.connector_tables import NOT_OF_MYSQL, pinned
from tests.integration.connect.hanging import Serve, accepting, sink, traces

pytestmark = pytest.mark.slow
_PROTOCOL_41, _WITH_DATABASE, _SSL, _SECURE, _PLUGINS = 0x200, 0x8, 0x800, 0x8000, 0x80000
_PLUGIN = b"mysql_native_password\0"
_OK = b"\0\0\0\2\0\0\0"


def packet(place: int, body: bytes) -> bytes:
    return struct.pack("<I", len(body))[:3] + bytes([place % 256]) + body


def greeting(more: int = 0) -> bytes:
    knows = _PROTOCOL_41 | _WITH_DATABASE | _SECURE | _PLUGINS | more | 0x1 | 0x2000
    low, high = struct.pack("<H", knows & 0xFFFF), struct.pack("<H", knows >> 16)
    begin = b"\x0a8.0.30\0" + struct.pack("<I", 7) + b"saltsalt\0" + low
    return packet(0, begin + b"\x21\2\0" + high + b"\x15" + bytes(10) + b"saltsaltsalt\0" + _PLUGIN)


def taken(client: socket.socket) -> int:
    """Take a packet, and give its place."""
    head = client.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        raise ConnectionError
    client.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL)
    return head[3]


def let_in(client: socket.socket) -> None:
    """Lets whoever comes in, and takes the first question."""
    client.sendall(greeting())
    client.sendall(packet(taken(client) + 1, _OK))
    taken(client)


def drips(client: socket.socket) -> None:
    while True:
        client.sendall(b"x")
        time.sleep(0.5)


def says_nothing(client: socket.socket) -> None:
    client.recv(1)


def greets_a_byte_at_a_time(client: socket.socket) -> None:
    client.sendall(b"\xff\xff\0\0\x0a")
    drips(client)


def shakes_hands_a_byte_at_a_time(client: socket.socket) -> None:
    client.sendall(greeting(_SSL))
    taken(client)
    client.sendall(b"\x16\x03\x03\x40\x00")
    drips(client)


def asks_without_end_for_a_password(client: socket.socket) -> None:
    client.sendall(greeting())
    while True:
        switch = b"\xfe" + _PLUGIN + b"saltsaltsaltsaltsalt\0"
        client.sendall(packet(taken(client) + 1, switch))
        time.sleep(0.5)


def answers_a_byte_at_a_time(client: socket.socket) -> None:
    let_in(client)
    client.sendall(b"\xff\xff\0\1")
    drips(client)


def asks_without_end_for_a_file(client: socket.socket) -> None:
    let_in(client)
    place = 0
    while True:
        client.sendall(packet(place + 1, b"\xfb/etc/passwd"))
        place = taken(client)
        time.sleep(0.5)


def tells_of_columns_without_end(client: socket.socket) -> None:
    """One packet, for which the driver would make room before anything comes."""
    let_in(client)
    client.sendall(packet(1, b"\xfe" + struct.pack("<q", 0x7FFF_FF00)))
    client.recv(1)


def begins_a_row(client: socket.socket) -> None:
    """Of one column, a text."""
    let_in(client)
    text = b"\3def" + b"\0" * 3 + b"\1a\0" + b"\x0c" + struct.pack("<HIBHB", 33, 255, 253, 0, 0)
    client.sendall(packet(1, b"\1") + packet(2, text + b"\0\0") + packet(3, b"\xfe\0\0\2\0"))


def tells_of_a_text_without_end(client: socket.socket) -> None:
    begins_a_row(client)
    client.sendall(packet(4, b"\xfe" + struct.pack("<q", 0x7FFF_FF00)))
    client.recv(1)


def rows_without_end(client: socket.socket) -> None:
    """Each takes some bytes on the way, and many times as much in memory."""
    begins_a_row(client)
    for place in itertools.count(4, 1000):
        client.sendall(b"".join(packet(place + one, b"\0") for one in range(1000)))


def asks_for_work_without_end(client: socket.socket) -> None:
    """By SCRAM, whose server says how often the password is hashed."""
    client.sendall(greeting())
    switch = b"\xfeauthentication_ldap_sasl_client\0SCRAM-SHA-256"
    client.sendall(packet(taken(client) + 1, switch))
    first = client.recv(65536)
    if not first:
        raise ConnectionError
    nonce = first[4:].partition(b"r=")[2].rstrip(b"\0")
    work = b",s=c2FsdHNhbHRzYWx0c2FsdA==,i=2147483647"
    client.sendall(packet(first[3] + 1, b"\x01r=" + nonce + b"more" + work))
    client.recv(1)


def asks_for_a_password_as_it_is(client: socket.socket) -> None:
    client.sendall(greeting())
    client.sendall(packet(taken(client) + 1, b"\xfedialog\0\x04Password: "))
    client.recv(1)


def _configs(stack: ExitStack, servers: dict[str, tuple[str, Serve]]) -> dict[str, dict[str, str]]:
    return {
        what: sink(
            f"jdbc:{kind}://127.0.0.1:{stack.enter_context(accepting(serve))}/d"
            "?connectTimeout=10000&socketTimeout=20000&permitRedirect=false"
        )
        for what, (kind, serve) in servers.items()
    }


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_task_waits_for_mysql_for_a_bounded_time(mesh: Endpoints, kind: str) -> None:
    every: tuple[Serve, ...] = (
        says_nothing,
        greets_a_byte_at_a_time,
        asks_without_end_for_a_password,
        answers_a_byte_at_a_time,
        asks_without_end_for_a_file,
    )
    servers = {one.__name__: (kind, one) for one in every}
    if kind == "mysql":
        servers["shakes"] = (kind, shakes_hands_a_byte_at_a_time)
    with ExitStack() as stack:
        told = traces(mesh, _configs(stack, servers), 200)
    assert not [what for what, trace in told.items() if not trace]


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_an_answer_of_mysql_that_is_too_large_ends_the_connection(
    mesh: Endpoints, kind: str
) -> None:
    """And not Connect, whose heap all domains share."""
    every = (tells_of_columns_without_end, tells_of_a_text_without_end, rows_without_end)
    with ExitStack() as stack:
        told = traces(mesh, _configs(stack, {one.__name__: (kind, one) for one in every}), 150)
    assert not [what for what, trace in told.items() if not trace]


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_sink_refuses_a_login_by_a_method_that_is_not_of_a_list(
    mesh: Endpoints, kind: str
) -> None:
    """Before its first step, whose work the server may choose."""
    every = (asks_for_work_without_end, asks_for_a_password_as_it_is)
    configs = {}
    with ExitStack() as stack:
        for one in every:
            address = f"jdbc:{kind}://127.0.0.1:{stack.enter_context(accepting(one))}/d"
            # as the mesh has Connect run it
            url = pinned("east.out", {"connector.class": JDBC_SINK, "connection.url": address})
            configs[one.__name__] = sink(url["connection.url"])
        told = traces(mesh, configs, 60)
    assert not [what for what, trace in told.items() if not trace]


def test_every_login_method_of_mysqls_driver_is_allowed_or_disabled(
    settings: PlatformSettings,
) -> None:
    """The driver is told of those that it may not take: a version with more needs a decision."""
    allowed = {"caching_sha2_password", "mysql_native_password", "sha256_password"}
    store = JarStore(settings.cache / "jars", read_lock())
    plugins = connect_plugins(store, settings.cache)
    [jar] = plugins.glob("debezium-connector-jdbc/mysql-connector-j-*.jar")
    folder = "com/mysql/cj/protocol/a/authentication/"
    with zipfile.ZipFile(jar) as opened:
        classes = {
            one: opened.read(one)
            for one in opened.namelist()
            if one.startswith(folder) and one.endswith(".class") and "$" not in one
        }
    names = {*allowed, *NOT_OF_MYSQL}
    found = [[name for name in names if name.encode() in text] for text in classes.values()]
    assert len(classes) == len(names)
    assert {name for one in found for name in one} == names
    assert all(found)
