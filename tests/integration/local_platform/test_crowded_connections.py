"""A broker that has as many connections as it takes: who logged in, and who comes, is served."""

import contextlib
import select
import socket
import struct
from collections.abc import Iterator

import pytest

from local_platform.errors import NotReadyError
from local_platform.security.principals import Asking
from local_platform.security.transport import Transport
from mesh_events.kafka.connection import Connection
from tests.conftest import new_settings
from tests.integration.local_platform.bounded import broker, code, connected, owner
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection

pytestmark = pytest.mark.platform

NEW, OF_DOMAINS = 20, 30
CROWD, OTHER = owner("crowd"), owner("other")
UNKNOWN_TOPIC = 3


@contextlib.contextmanager
def strangers(admin: Connection, count: int) -> Iterator[list[RawConnection]]:
    """Connections that say nothing."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            made = RawConnection(admin.bootstrap_servers)
            stack.callback(made.close)
            found.append(made)
        yield found


@pytest.mark.parametrize("transport", [Transport.OFF, Transport.TLS])
def test_the_first_that_has_not_logged_in_gives_way(transport: Transport) -> None:
    settings = new_settings().model_copy(update={"tls": transport})
    bounds = {"mesh.connections.new": NEW}
    with (
        broker(bounds, [OTHER], settings) as admin,
        strangers(admin, NEW) as first,
    ):
        asking = Asking(lambda: admin)
        asking.require_answer(10)
        with strangers(admin, NEW) as later:
            wait_until(lambda: all(one.is_closed(1) for one in first), "the first are closed", 30)
            assert not later[-1].is_closed(0.1)
            # by the connections that it has, and by new ones
            asking.require_answer(10)
            Asking(lambda: admin).require_answer(10)


def test_one_that_asks_on_and_reads_nothing_gives_way_as_well() -> None:
    """Nothing is read from it any more, and so not its end."""
    few = 4
    with (
        broker({"mesh.connections.new": few}, [OTHER]) as admin,
        contextlib.ExitStack() as stack,
    ):
        silent = [stack.enter_context(asking_on(admin)) for _ in range(few)]
        stack.enter_context(strangers(admin, few))
        wait_until(lambda: all(map(is_reset, silent)), "the first are closed", 30)
        Asking(lambda: admin).require_answer(10)


def asking_on(admin: Connection) -> socket.socket:
    """Sends requests until the broker reads no more, and reads none of its answers."""
    host, port = admin.bootstrap_servers.split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(1)
    made.connect((host, int(port)))
    # of another version than there is, which is answered and changes nothing
    asking = struct.pack(">ihhihb", 11, 18, 99, 1, -1, 0)
    with contextlib.suppress(TimeoutError):
        while True:
            made.sendall(asking * 1000)
    return made


def is_reset(one: socket.socket) -> bool:
    """Whether the broker has closed it, seen without reading what it sent."""
    found = select.poll()
    found.register(one.fileno(), select.POLLHUP | select.POLLERR)
    return bool(found.poll(0))


def test_connections_without_a_login_take_no_room_from_those_with_one() -> None:
    with broker({"mesh.connections.new": NEW}, [OTHER]) as admin, contextlib.ExitStack() as stack:
        held = [connected(admin, OTHER) for _ in range(NEW)]
        for one in held:
            stack.callback(one.close)
        stack.enter_context(strangers(admin, 3 * NEW))
        assert not any(one.is_closed(0.1) for one in held)
        assert code(admin, OTHER, "other.none") == UNKNOWN_TOPIC


def test_the_domain_with_most_connections_gives_way() -> None:
    bounds = {"mesh.connections.domains": OF_DOMAINS}
    with broker(bounds, [CROWD, OTHER]) as admin, contextlib.ExitStack() as stack:
        crowd = [connected(admin, CROWD) for _ in range(OF_DOMAINS)]
        other = [connected(admin, OTHER) for _ in range(OF_DOMAINS // 3)]
        for one in (*crowd, *other):
            stack.callback(one.close)
        for one in other:
            assert one.describe_topics(["other.none"]) == UNKNOWN_TOPIC
        closed = [one.is_closed(0.2) for one in crowd]
        assert closed == [False] * (2 * OF_DOMAINS // 3) + [True] * (OF_DOMAINS // 3)
        assert not any(one.is_closed(0.1) for one in other)


def test_a_broker_that_refuses_connections_is_asked_by_those_it_has() -> None:
    with broker({}, [], more={"max.connections.per.ip": "10"}) as admin:
        asking = Asking(lambda: admin)
        asking.require_answer(10)
        with strangers(admin, 10) as held:
            wait_until(lambda: held[-1].is_closed(1), "the broker refuses one", 30)
            with pytest.raises(NotReadyError):
                Asking(lambda: admin).require_answer(3)
            asking.require_answer(10)
