"""The ports of Spark's servers: a driver in local mode needs none but that of Spark Connect."""

import contextlib
import socket
import uuid

import psutil
import pytest
from pyspark.sql.connect.functions import lit, repeat

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from spark_streams.session import ConnectSession
from tests.kafka_client import eventually
from tests.mesh_fixtures import domain_server, spark_service

pytestmark = pytest.mark.platform
DOMAIN = "ports"
WITHOUT_TOKEN = 400
"""Connections of a server, see `BoundedCallers.scala`."""
CALL = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    # settings, and the head of a POST of /, which is refused and not ended by its client
    + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    + bytes([0, 0, 3, 1, 4, 0, 0, 0, 1, 0x83, 0x84, 0x86])
)
"""A call without a token that does not end."""


def test_a_server_listens_at_no_port_but_its_own(
    platform: Endpoints, settings: PlatformSettings
) -> None:
    remote, _ = domain_server(platform, DOMAIN)
    every = LocalPlatform(settings).status()
    [server] = [one for one in every if one.name == spark_service(DOMAIN)]
    found = psutil.Process(server.pid).net_connections("inet")
    ports = {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}
    assert [port for port in ports if f":{port}" not in remote] == []
    assert len(ports) == 1


def test_a_result_of_many_megabytes_comes_without_the_port_for_blocks(platform: Endpoints) -> None:
    connected = ConnectSession(*domain_server(platform, DOMAIN), uuid.uuid4().hex)
    spark = connected.call("opening a session", lambda found: found)
    try:
        lengths = spark.range(8, numPartitions=1).select("id", repeat(lit("x"), 4_000_000))
        rows = [(row[0], len(row[1])) for row in lengths.collect()]
    finally:
        connected.close()
    assert rows == [(at, 4_000_000) for at in range(8)]


def test_connections_without_a_token_give_way_to_those_that_come(platform: Endpoints) -> None:
    remote, token = domain_server(platform, DOMAIN)
    host, port = remote.removeprefix("sc://").split("/")[0].split(":")
    known = ConnectSession(remote, token, uuid.uuid4().hex)
    with contextlib.ExitStack() as stack, contextlib.closing(known):
        spark = known.call("opening a session", lambda found: found)
        assert spark.range(3).count() == 3
        idle = [
            stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            for _ in range(WITHOUT_TOKEN // 2)
        ]
        for one in idle[::2]:
            one.sendall(CALL)
        idle += [
            stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            for _ in range(2 * WITHOUT_TOKEN)
        ]
        eventually(
            lambda: all(map(is_closed, idle[: WITHOUT_TOKEN // 2])), "the first are closed", 30
        )
        assert not is_closed(idle[-1])
        assert spark.range(3).count() == 3
        other = ConnectSession(remote, token, uuid.uuid4().hex)
        stack.callback(other.close)
        assert other.call("opening a session", lambda found: found).range(3).count() == 3


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; what it sent before, its settings, is read."""
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
