"""A broker that the clients of one domain keep busy, or leave answers with."""

import shutil
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import LocalPlatform
from local_platform.jvm import JVM_BOUNDS
from local_platform.principals import Principal, Right, ensure_principals
from local_platform.services.kafka import KafkaBroker
from local_platform.site import Site
from mesh_events.kafka import Connection
from tests.conftest import LIFETIME_S, new_settings
from tests.integration.clock.brokers import BrokerProcess
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection

pytestmark = pytest.mark.platform

BROKER = "kafka-west"
OWN = (Right("ALL", "TOPIC", "busy.", prefixed=True),)
BUSY, APP = Principal("busy", "secret", OWN), Principal("busy.app", "secret", ())
OTHER = Principal("other", "secret", ())
DENIED, UNKNOWN = 29, 3
MANY = [f"busy.{number}" for number in range(3_000)]
UNREAD = 1 << 20


@contextmanager
def broker(**bounds: int) -> Iterator[Connection]:
    """The super user's login at a broker with these bounds of a domain's work."""

    class BusyBroker(KafkaBroker):
        def _options(self) -> list[str]:
            named = ((name.replace("_", "."), value) for name, value in bounds.items())
            return [*super()._options(), *(f"-Dmesh.work.{name}={value}" for name, value in named)]

    settings = new_settings()
    LocalPlatform(settings, [BROKER]).fetch()
    site = Site.of(settings)
    site.make_folders()
    made = BusyBroker(site, "west")
    server = BrokerProcess(made, LIFETIME_S)
    try:
        made.prepare()
        server.start()
        server.wait()
        admin = site.login("west", "admin")
        ensure_principals(admin, [BUSY, APP, OTHER])
        yield admin
    finally:
        server.kill()
        shutil.rmtree(settings.home, ignore_errors=True)


def connected(admin: Connection, who: Principal) -> RawConnection:
    login = replace(admin, user=who.name, password=who.password)
    return RawConnection(admin.bootstrap_servers, login)


def code(admin: Connection, who: Principal, *names: str) -> int | None:
    """What is said of the first of these topics; None where the connection was closed."""
    try:
        client = connected(admin, who)
        try:
            return client.describe_topics(names)
        finally:
            client.close()
    except (AssertionError, OSError):
        return None


def test_a_domain_keeps_a_broker_busy_for_so_long_by_all_its_logins_and_others_go_on() -> None:
    """Kafka's quotas delay a connection behind its request: a thousand had theirs handled."""
    # any machine is quick enough to be above these
    with broker(ms=1, late_ms=1000) as admin, ThreadPoolExecutor(8) as pool:
        deadline = time.monotonic() + 120
        while None not in pool.map(lambda _: code(admin, BUSY, *MANY), range(8)):
            assert time.monotonic() < deadline, "the domain is never above its bound"
        assert code(admin, APP, "busy.x") is None, "another login of the domain"
        assert code(admin, OTHER, "other.x") == DENIED
        wait_until(lambda: code(admin, APP, "busy.x") == DENIED, "what was too much is over", 180)


def test_a_domain_leaves_so_many_bytes_of_answers_unread_and_others_go_on() -> None:
    """They lie in the broker's heap until they are read, or their connection ends."""
    with broker(ms=1_000_000, unread=UNREAD) as admin, ExitStack() as clients:
        topic = "busy.described"
        client = AdminClient(admin.config())
        client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        deadline = time.monotonic() + 120
        while code(admin, APP, "busy.x") is not None:
            assert time.monotonic() < deadline, "the domain is never above its bound"
            idle = connected(admin, BUSY)
            clients.callback(idle.close)
            idle.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            idle.request_settings([topic] * JVM_BOUNDS["mesh.request.described"])
        assert code(admin, BUSY, "busy.x") is None, "another login of the domain"
        assert code(admin, OTHER, "other.x") == DENIED
        clients.close()
        wait_until(lambda: code(admin, APP, "busy.x") == DENIED, "nothing is unread any more", 60)


def test_an_answer_that_is_too_large_closes_its_connection_and_no_other() -> None:
    """Kafka makes room for it twice; what is larger than its buffers is never sent."""
    with broker(answer=20_000) as admin:
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
    with broker(late_ms=500) as admin:
        client = AdminClient(admin.config())
        client.create_topics([NewTopic("busy.seen", 1, 1)])["busy.seen"].result(20)
        stranger = connected(admin, APP)
        for topic, partitions in (("busy.unknown", range(2_000)), ("busy.seen", [0] * 2_000)):
            assert set(stranger.list_offsets(topic, partitions, 1)) <= {DENIED, UNKNOWN}
            assert code(admin, BUSY, "busy.x") is not None, topic
        stranger.close()
