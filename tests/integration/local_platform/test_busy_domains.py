"""A broker that the clients of one domain keep busy, or leave answers with."""

import asyncio
import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform.jvm import JVM_BOUNDS
from local_platform.security.principals import Principal, Right
from mesh_events.kafka.connection import SCRAM, Connection
from tests.integration.local_platform.bounded import DENIED, UNKNOWN, broker, code, connected
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection

pytestmark = pytest.mark.platform

OWN = tuple(Right("ALL", kind, "busy.", prefixed=True) for kind in ("TOPIC", "GROUP"))
BUSY, APP = Principal("busy", "secret", OWN), Principal("busy.app", "secret", ())
READER = Principal("busy.reader", "secret", OWN)
OTHER = Principal("other", "secret", ())
MANY = [f"busy.{number}" for number in range(3_000)]
UNREAD = 1 << 20


def busy_broker(**bounds: int) -> AbstractContextManager[Connection]:
    """The super user's login at a broker with these bounds of a domain's work."""
    named = {f"mesh.work.{name.replace('_', '.')}": value for name, value in bounds.items()}
    return broker(named, [BUSY, APP, READER, OTHER])


def test_a_domain_keeps_a_broker_busy_for_so_long_by_all_its_logins_and_others_go_on() -> None:
    """Kafka's quotas delay a connection behind its request: a thousand had theirs handled."""
    # any machine is quick enough to be above these
    with busy_broker(ms=1, late_ms=1000) as admin, ThreadPoolExecutor(8) as pool:
        deadline = time.monotonic() + 120
        while None not in pool.map(lambda _: code(admin, BUSY, *MANY), range(8)):
            assert time.monotonic() < deadline, "the domain is never above its bound"
        assert code(admin, APP, "busy.x") is None, "another login of the domain"
        assert code(admin, OTHER, "other.x") == DENIED
        wait_until(lambda: code(admin, APP, "busy.x") == DENIED, "what was too much is over", 180)


def test_a_domain_leaves_so_many_bytes_of_answers_unread_and_others_go_on() -> None:
    """They lie in the broker's heap until they are read, or their connection ends."""
    with busy_broker(ms=1_000_000, unread=UNREAD) as admin, ExitStack() as clients:
        topic = "busy.described"
        client = AdminClient(admin.config())
        client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        whole = [topic] * JVM_BOUNDS["mesh.request.described"]

        def is_refused() -> bool:
            reader = connected(admin, READER)
            try:
                return reader.describe_settings(whole) != 0
            except (AssertionError, OSError):
                return True
            finally:
                reader.close()

        deadline = time.monotonic() + 120
        while not is_refused():
            assert time.monotonic() < deadline, "the domain is never above its bound"
            idle = lazy(admin, clients)
            idle.request_settings(whole)
        assert code(admin, APP, "busy.x") == DENIED, "there is room for little"
        assert code(admin, OTHER, "other.x") == DENIED
        clients.close()
        wait_until(lambda: not is_refused(), "nothing is unread any more", 60)


def lazy(admin: Connection, clients: ExitStack) -> RawConnection:
    """A connection whose answers nobody reads."""
    idle = connected(admin, BUSY)
    clients.callback(idle.close)
    idle.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # type: ignore[attr-defined]
    return idle


class Wordy(RoundRobinPartitionAssignor):
    """A member of a group that says a lot of itself."""

    name = "wordy"

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(0, [*topics], bytes(UNREAD // 3))


async def described(admin: Connection, topic: str, clients: ExitStack) -> int:
    """How many of 40 connections that have a wordy group described at once stay open."""
    member = AIOKafkaConsumer(
        topic,
        bootstrap_servers=admin.bootstrap_servers,
        group_id="busy.wordy",
        partition_assignment_strategy=[Wordy],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=SCRAM,
        sasl_plain_username=BUSY.name,
        sasl_plain_password=BUSY.password,
    )
    await member.start()
    try:
        while not member.assignment():
            await member.getmany(timeout_ms=100)
        idle = [lazy(admin, clients) for _ in range(40)]
        for one in idle:
            one.ask_for_groups(["busy.wordy"])
        wait_until(lambda: all(one.is_settled() for one in idle), "each is answered or closed", 60)
        # what is open has more than fits into the buffers of both sides
        return sum(not one.is_closed(0.1) for one in idle)
    finally:
        await member.stop()


def test_answers_that_are_made_at_once_leave_no_more_unread_than_one_after_the_other() -> None:
    """Threads that care for groups make them: a thousand were made before the first was counted."""
    with busy_broker(ms=1_000_000, unread=UNREAD) as admin, ExitStack() as clients:
        topic = "busy.described"
        client = AdminClient(admin.config())
        client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        assert 0 < asyncio.run(described(admin, topic, clients)) <= 3


def test_what_stands_beside_the_records_of_a_fetch_is_an_answer_too() -> None:
    """Names of topics that are not there are no records in a file, and more than buffers hold."""
    names = [f"busy.{number:05}".ljust(249, "x") for number in range(1_400)]
    with busy_broker(ms=1_000_000, unread=UNREAD) as admin, ExitStack() as clients:
        idle = [lazy(admin, clients) for _ in range(40)]
        for one in idle:
            one.ask_to_fetch(names, 0)
        wait_until(lambda: all(one.is_settled() for one in idle), "each is answered or closed", 60)
        left = sum(not one.is_closed(5) for one in idle)
        assert 0 < left < 20


def test_what_a_domain_leaves_unread_holds_no_answer_up_that_the_controller_gives_a_broker() -> (
    None
):
    """All logins' requests go there by one connection, which a domain could have closed."""
    with busy_broker(ms=1_000_000, unread=UNREAD) as admin, ExitStack() as clients:
        topic, most = "busy.described", JVM_BOUNDS["mesh.request.described"]
        client = AdminClient(admin.config())
        client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        # until there is no more room than for the smallest answer that stays unread
        for _ in range(20):
            lazy(admin, clients).request_settings([topic] * (most // 4))
        for _ in range(10):
            # nobody may make them, and the answer says so of each
            foreign = [f"other.{number:05}".ljust(249, "x") for number in range(1_200)]
            lazy(admin, clients).ask_for_topics(foreign)
        for number in range(5):
            name = f"other.{number}"
            client.create_topics([NewTopic(name, 1, 1)], request_timeout=10)[name].result(12)


def test_an_answer_that_is_too_large_closes_its_connection_and_no_other() -> None:
    """Kafka makes room for it twice; what is larger than its buffers is never sent."""
    with busy_broker(answer=20_000) as admin:
        idle = connected(admin, APP)
        assert code(admin, BUSY, *MANY[:20]) == UNKNOWN
        assert code(admin, BUSY, *MANY) is None
        assert code(admin, BUSY, *MANY[:20]) == UNKNOWN
        assert idle.describe_topics(["busy.x"]) == DENIED
        idle.close()
        assert len(AdminClient(admin.config()).list_topics(timeout=20).brokers) == 1


def test_topics_that_a_login_may_not_see_cost_its_domain_nothing_before_they_are_looked_at() -> (
    None
):
    """Any application could lock its domain out of the cluster by naming some."""
    with busy_broker(late_ms=500) as admin:
        client = AdminClient(admin.config())
        client.create_topics([NewTopic("busy.seen", 1, 1)])["busy.seen"].result(20)
        stranger = connected(admin, APP)
        for topic, partitions in (("busy.unknown", range(2_000)), ("busy.seen", [0] * 2_000)):
            assert set(stranger.list_offsets(topic, partitions, 1)) <= {DENIED, UNKNOWN}
            assert code(admin, BUSY, "busy.x") is not None, topic
        stranger.close()
