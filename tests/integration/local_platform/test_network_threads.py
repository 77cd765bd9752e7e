"""What one connection may cost the network thread that it shares with others; no login is asked."""

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import pytest

from local_platform.security.principals import Principal, Right
from local_platform.security.transport import Transport
from local_platform.services import kafka
from mesh_events.kafka.connection import Connection
from tests.conftest import new_settings
from tests.integration.local_platform.bounded import broker, connected
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection
from tests.integration.local_platform.raw_tls import (
    ASKING,
    DATA,
    HANDSHAKE,
    AnyRecords,
    EmptyRecords,
    TlsStream,
    trusting,
)

pytestmark = pytest.mark.platform

RIGHTS = tuple(Right("ALL", kind, "crowd.", prefixed=True) for kind in ("TOPIC", "GROUP"))
CROWD = Principal("crowd", "secret", RIGHTS)
APP = Principal("other.app", "secret", ())
NONE, POLICY_VIOLATION = 0, 44
NO_KIND = 0
HELLO = bytes([1, 0, 0, 0])
"""A handshake that begins anew, and says nothing."""
VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A request that is answered before a login."""
LARGE = 16 << 20


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kafka.SMALL_NODE, "num.network.threads", "1")


@contextmanager
def tls_broker(bounds: dict[str, int]) -> Iterator[Connection]:
    settings = new_settings().model_copy(update={"tls": Transport.TLS})
    with broker(bounds, [CROWD, APP], settings) as admin:
        yield admin


def by_tls(admin: Connection, who: Principal) -> RawConnection:
    login = replace(admin, user=who.name, password=who.password)
    return RawConnection(
        admin.bootstrap_servers, login, around=lambda plain: TlsStream(plain, trusting())
    )


def test_small_records_of_tls_keep_nobody_else_waiting() -> None:
    with tls_broker({}) as admin:
        crowd, other = by_tls(admin, CROWD), by_tls(admin, APP)
        crowd.announce(LARGE)
        assert isinstance(crowd.socket, TlsStream)
        plain, records = crowd.socket.plain, crowd.socket.records(1_000_000)

        def flood() -> None:
            # it is closed in the end: they take more of a processor than a domain may
            with suppress(OSError):
                plain.sendall(records)

        flooding = threading.Thread(target=flood)
        flooding.start()
        for _ in range(20):
            assert other.ask_for_versions(0) == NONE
        assert flooding.is_alive(), "all that was sent has been read before"
        plain.close()
        flooding.join(30)
        other.close()


def test_records_of_tls_without_data_close_their_connection() -> None:
    with tls_broker({}) as admin:
        few, many = (RawConnection(admin.bootstrap_servers, around=EmptyRecords) for _ in range(2))
        assert isinstance(few.socket, EmptyRecords)
        assert isinstance(many.socket, EmptyRecords)
        few.socket.plain.sendall(few.socket.empty(100))
        many.socket.plain.sendall(many.socket.empty(101))
        assert many.is_closed(20)
        assert not few.is_closed(1)
        for client in (few, many):
            client.close()


def _behind_the_handshake(client: AnyRecords) -> bytes:
    return client.record(HANDSHAKE, HELLO) + client.record(DATA, b"x")


def _behind_a_request(client: AnyRecords) -> bytes:
    return client.record(DATA, VERSIONS) + client.record(HANDSHAKE, HELLO)


def _behind_a_change_of_keys(client: AnyRecords) -> bytes:
    """What answers it comes first, and hides that there is something to do."""
    update = client.key_updates(asks=True)
    return update + client.record(HANDSHAKE, HELLO) + client.record(DATA, VERSIONS)


def test_a_handshake_that_begins_anew_ends_its_own_connection_alone() -> None:
    """The thread asked again and again for what it never did, and served nobody any more."""
    with tls_broker({}) as admin:
        other = by_tls(admin, APP)
        for records in (_behind_the_handshake, _behind_a_request, _behind_a_change_of_keys):
            again = RawConnection(admin.bootstrap_servers, around=AnyRecords)
            assert isinstance(again.socket, AnyRecords)
            again.socket.plain.sendall(records(again.socket))
            assert again.is_closed(20), records
            again.close()
            assert other.ask_for_versions(0) == NONE
        other.close()


def test_keys_of_tls_change_a_few_times() -> None:
    with tls_broker({}) as admin:
        login = replace(admin, user=APP.name, password=APP.password)
        client = RawConnection(admin.bootstrap_servers, login, around=AnyRecords)
        assert isinstance(client.socket, AnyRecords)
        for asks in (True, False) * 5:
            client.socket.plain.sendall(client.socket.key_updates(asks=asks))
            assert client.ask_for_versions(0) == NONE
        client.close()
        # each answer is kept until something is sent
        for records, asks in (
            ([1] * 11, True),
            ([100], True),
            ([100] * 21, False),
            ([3000], False),
        ):
            client = RawConnection(admin.bootstrap_servers, around=AnyRecords)
            assert isinstance(client.socket, AnyRecords)
            updates = (client.socket.key_updates(count, asks=asks) for count in records)
            client.socket.plain.sendall(b"".join(updates))
            assert client.is_closed(20), (records, asks)
            client.close()


def test_a_handshake_does_not_end_with_many_changes_of_keys() -> None:
    """Each is answered by a record of its own, which is kept until it is sent."""
    with tls_broker({}) as admin:
        for count, closes in ((1, False), (3000, True)):
            around = partial(AnyRecords, behind=ASKING * count)
            client = RawConnection(admin.bootstrap_servers, around=around)
            assert client.is_closed(20 if closes else 1) == closes
            client.close()


def test_a_read_that_fails_counts_as_time_of_its_domain() -> None:
    with tls_broker({"mesh.work.ms": 1}) as admin:
        login = replace(admin, user=CROWD.name, password=CROWD.password)
        failing = [
            RawConnection(admin.bootstrap_servers, login, around=AnyRecords) for _ in range(30)
        ]
        last, other = by_tls(admin, CROWD), by_tls(admin, APP)
        for client in failing:
            assert isinstance(client.socket, AnyRecords)
            kinds = [(DATA, struct.pack(">i", LARGE)), *[(DATA, b"x")] * 500, (NO_KIND, b"")]
            client.socket.plain.sendall(b"".join(client.socket.record(*one) for one in kinds))
            assert client.is_closed(20)
            client.close()
        last.ask_for_groups(["crowd.group"])
        assert not last.is_answered()
        assert other.ask_for_versions(0) == NONE
        for client in (last, other):
            client.close()


def test_a_name_of_a_login_that_is_too_long_is_not_read() -> None:
    with broker({}, [CROWD]) as admin:
        client = RawConnection(admin.bootstrap_servers)
        client.log_in_as("u" * 1100)
        assert client.is_closed(20)
        client.close()


def test_a_name_too_deep_for_the_stack_costs_nobody_else_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error ended what the thread did, and what had come by others was lost."""
    monkeypatch.setitem(kafka.SMALL_NODE, "sasl.server.max.receive.size", "524288")
    with broker({}, [CROWD, APP]) as admin:
        others = [connected(admin, APP) for _ in range(4)]
        done = threading.Event()
        answered = [0] * len(others)

        def ask(number: int) -> None:
            while not done.is_set():
                assert others[number].ask_for_versions(0) == NONE
                answered[number] += 1

        asking = [threading.Thread(target=ask, args=(number,)) for number in range(len(others))]
        for thread in asking:
            thread.start()
        for _ in range(20):
            deep = RawConnection(admin.bootstrap_servers)
            deep.log_in_as("u" * 100_000)
            assert deep.is_closed(20)
            deep.close()
        before = list(answered)
        done.set()
        for thread in asking:
            thread.join(30)
        assert all(before)
        assert [one.ask_for_versions(0) for one in others] == [NONE] * len(others)


def test_a_topology_makes_no_more_partitions_than_a_domain_may_have() -> None:
    """The controller added them as integers that ran over, and gave its leadership up."""
    with broker({"mesh.partitions": 300}, [CROWD]) as admin:
        client = connected(admin, CROWD)
        assert client.create_topic("crowd.source", 8) == NONE
        for number, topics in enumerate(
            (
                {"crowd.a-repartition": 9_999, "crowd.b-repartition": 2**31 - 1},
                {"crowd.a-repartition": 257},
                {f"crowd.{one}-repartition": 200 for one in "ab"},
                {f"crowd.{one}-repartition": 0 for one in range(40)},
            )
        ):
            code = client.name_internal_topics(f"crowd.group{number}", "crowd.source", topics)
            assert code == POLICY_VIOLATION, topics
        wait_until(
            lambda: client.find_coordinator("crowd.group") == NONE, "the coordinator answers", 30
        )
        few = {"crowd.few-repartition": 2}
        assert client.name_internal_topics("crowd.group", "crowd.source", few) == NONE
        client.close()
