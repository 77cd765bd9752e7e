"""What a database answers takes a bounded part of Connect's memory, which all domains share.

And a bounded time: a task that waits for a database outlives its connector.
"""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import Endpoints
from local_platform.services.connect import DEBEZIUM
from local_platform.settings import PlatformSettings
from tests.integration.connect.hanging import (
    TLS_ASKED,
    Serve,
    accepting,
    address_faults,
    deaf_to,
    deployed,
    message,
    sink,
    traces,
)
from tests.kafka_client import eventually, fresh
from tests.mesh_fixtures import connect_service, connect_worker, pid_of

pytestmark = pytest.mark.platform
_ERROR_BYTES = 64 << 20


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


def says_nothing(client: socket.socket) -> None:
    client.recv(1)


def asks_without_end_for_a_password(client: socket.socket) -> None:
    while True:
        client.sendall(message(b"R", struct.pack("!i", 5) + b"salt"))
        if not client.recv(65536):
            return


def tells_a_setting_at_a_time(client: socket.socket) -> None:
    client.sendall(message(b"R", struct.pack("!i", 0)))
    while True:
        client.sendall(message(b"S", b"server_version\x0018.0\0"))
        time.sleep(0.5)


def answers_a_byte_at_a_time(client: socket.socket) -> None:
    client.sendall(b"R" + struct.pack("!i", 1 << 20))
    while True:
        client.sendall(b"x")
        time.sleep(0.5)


def answers_a_question_a_byte_at_a_time(client: socket.socket) -> None:
    let_in(client)
    client.sendall(b"D" + struct.pack("!i", 1 << 20))
    while True:
        client.sendall(b"x")
        time.sleep(0.5)


@contextmanager
def listening(speak: Serve, tls: bytes = b"N") -> Iterator[int]:
    """Where a server listens that speaks so with each who comes."""

    def serve(client: socket.socket) -> None:
        (first,) = struct.unpack("!4xi", client.recv(65536)[:8])
        if first == TLS_ASKED:
            client.sendall(tls)
            client.recv(65536)
        speak(client)

    with accepting(serve) as found:
        yield found


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Where the server listens that the parameter makes of a connection."""
    with listening(request.param) as found:
        yield found


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
    [fault] = address_faults(mesh, config)
    assert "An I/O error occurred" in fault or "The connection attempt failed" in fault
    assert len(fault) < 1000


def shakes_hands_a_byte_at_a_time(client: socket.socket) -> None:
    """The first record of TLS, which is never whole."""
    client.sendall(b"\x16\x03\x03\x40\x00")
    while True:
        client.sendall(b"x")
        time.sleep(0.5)


def asks_without_end_for_a_copy(client: socket.socket) -> None:
    """The driver answers each time that there is none, and waits on."""
    let_in(client)
    while True:
        client.sendall(message(b"G", struct.pack("!bh", 0, 0)))
        time.sleep(0.5)


def written(mesh: Endpoints) -> str:
    """A topic of some texts of nearly 1 MB, which a connection does not keep."""
    topic, login = fresh("texts"), mesh.administration("east")
    admin = AdminClient(login.config())
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    writing = Producer(login.config() | {"compression.type": "zstd", "batch.num.messages": 1})
    for _ in range(24):
        writing.produce(topic, value=b"x" * 900_000)
        writing.poll(0)
    assert writing.flush(60) == 0
    return topic


@pytest.mark.slow
def test_a_task_waits_for_its_database_for_a_bounded_time(mesh: Endpoints) -> None:
    servers = (
        (says_nothing, b"N"),
        (asks_without_end_for_a_password, b"N"),
        (tells_a_setting_at_a_time, b"N"),
        (answers_a_byte_at_a_time, b"N"),
        (shakes_hands_a_byte_at_a_time, b"S"),
        (answers_a_question_a_byte_at_a_time, b"N"),
        (asks_without_end_for_a_copy, b"N"),
    )

    def url(port: int, database: str = "d") -> str:
        return f"jdbc:postgresql://127.0.0.1:{port}/{database}?socketTimeout=20"

    with ExitStack() as stack:
        configs = {
            speak.__name__: sink(url(stack.enter_context(listening(speak, tls))))
            for speak, tls in servers
        }
        over, login, topic = Event(), mesh.postgres_login(), written(mesh)
        place = str(login["host"]), int(login["port"])
        deaf = stack.enter_context(accepting(deaf_to(b"INSERT INTO", place, over)))
        stack.callback(over.set)
        kafka = mesh.administration("east").java().items()
        reads = {f"consumer.override.{one}": text for one, text in kafka if "ssl." not in one}
        hoist = "transforms.text.type", "org.apache.kafka.connect.transforms.HoistField$Value"
        configs["reads_nothing_more"] = sink(
            url(deaf, login["dbname"]),
            **{"topics": topic, "connection.username": login["user"]},
            **{"connection.password": login["password"], "schema.evolution": "basic"},
            **{"primary.key.mode": "none", "collection.name.format": topic.replace("-", "_")},
            **{"transforms": "text", hoist[0]: hoist[1], "transforms.text.field": "text"},
            **{"value.converter": "org.apache.kafka.connect.storage.StringConverter"},
            **{"key.converter": "org.apache.kafka.connect.storage.StringConverter"},
            **reads,
        )
        told = traces(mesh, configs, 150)
        assert not [speaks for speaks, trace in told.items() if not trace]
        assert "Failed to flush records" in str(told["reads_nothing_more"])


def test_a_kafka_client_that_is_answered_with_tls_ends_no_worker(
    mesh: Endpoints, settings: PlatformSettings
) -> None:
    """As after a cluster was put under TLS: it takes the alert for the length of an answer."""
    answered: list[bytes] = []

    def alerting(client: socket.socket) -> None:
        answered.append(client.recv(65536))
        client.sendall(b"\x15\x03\x03\x00\x02\x02\x28")
        client.recv(1)

    connect_worker(mesh)
    worker = pid_of(settings, connect_service())
    with accepting(alerting) as other:
        place = f"127.0.0.1:{other}"
        mirror = {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "a",
            "source.cluster.bootstrap.servers": place,
            "target.cluster.alias": "b",
            "target.cluster.bootstrap.servers": place,
        }
        with deployed(mesh, {"mirror": mirror}):
            eventually(lambda: len(answered) > 20, "its clients have asked again and again", 60)
            assert pid_of(settings, connect_service()) == worker
