"""Brokers that demand a certificate and, every few seconds, the login anew, and bound writing."""

import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    ThrottleEvent,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from local_platform.layout import Layout
from local_platform.security import certificates
from local_platform.security.transport import Transport
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from self_service.cli.domain.credentials import (
    Form,
    client_settings,
    login_of,
    properties,
    read_properties,
)
from tests.kafka_client import eventually
from tests.mesh_fixtures import mesh_of_its_own
from tests.mesh_kit import Mesh, fresh

pytestmark = pytest.mark.platform

REAUTH_S = 3
QUOTA_MIB_S = 1
LIVES_S = 3 * REAUTH_S + 1
"""In so long every client has to log in anew three times."""
WITHOUT_CONNECT = ("kafka-east", "kafka-west", "registry", "bootstrap", "governor")


@pytest.fixture(scope="module")
def strict() -> Iterator[Mesh]:
    """A mesh of this module's own, founded and governed."""
    strictness = {"tls": Transport.MTLS, "reauth_s": REAUTH_S, "quota_mib_s": QUOTA_MIB_S}
    with pytest.MonkeyPatch.context() as patch:
        # two meshes share the machine: a worker that waits for its turn is no dead one
        patch.setenv("SDM_SESSION_TIMEOUT_S", "20")
        with mesh_of_its_own(WITHOUT_CONNECT, **strictness) as kit:
            yield kit


def lists_topics(login: Connection) -> bool:
    """Whether Kafka lets a login in at all."""
    client = AdminClient(login.config())
    try:
        return bool(client.list_topics(timeout=1.5).brokers)
    except KafkaException:
        return False


def test_only_tls_with_a_certificate_of_this_home_gets_in(strict: Mesh, tmp_path: Path) -> None:
    admin, other = strict.admin_login(), Layout(tmp_path)
    certificates.ensure(other)
    assert admin.tls is not None
    assert lists_topics(admin)
    assert not lists_topics(replace(admin, tls=None)), "in the open"
    assert not lists_topics(replace(admin, tls=Tls(admin.tls.ca))), "without a certificate"
    foreign = Tls(admin.tls.ca, other.tls / "client.pem")
    assert not lists_topics(replace(admin, tls=foreign)), "with another home's certificate"
    distrustful = Tls(other.tls / "ca.pem", admin.tls.certificate)
    assert not lists_topics(replace(admin, tls=distrustful)), "trusting another home"


@pytest.mark.parametrize("listener", ["kafka-east", "kafka-east-controller", "kafka-west"])
def test_every_listener_of_a_broker_ends_a_handshake_without_certificate(
    strict: Mesh, listener: str
) -> None:
    tls = strict.admin_login().tls
    assert tls is not None
    host, port = strict.endpoints.clusters["east"].bootstrap_servers.split(":")
    number = int(port) + {"kafka-east": 0, "kafka-east-controller": 1, "kafka-west": 100}[listener]
    with (
        socket.create_connection((host, number), 5) as plain,
        Tls(tls.ca).context().wrap_socket(plain, server_hostname=host) as secured,
        pytest.raises(ssl.SSLError, match="ALERT"),
    ):
        # in TLS 1.3 a client learns of the refusal with what it reads first
        secured.recv(1)


@pytest.mark.long
def test_a_product_is_granted_and_read_over_a_link_through_many_logins(
    strict: Mesh, tmp_path: Path
) -> None:
    epoch = strict.image().epoch
    east, west = strict.register_domain("shop"), strict.register_domain("lab", cluster="west")
    product, topic = east.product()
    reader = west.application()
    east.fill(topic, b"one")
    east.grant(product, west.request(product, reader.name))
    copy = strict.wait_for(lambda image: image.links, "a link").access
    path = tmp_path / "client.properties"
    login = strict.login(reader.name, "west")
    path.write_text(properties(client_settings(login, Form.LIBRDKAFKA)))
    [local] = {one.topic for one in copy.requests.values()}

    settings = {**login_of(read_properties(path)).config(), "group.id": reader.group}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    producer = Producer(strict.login(east.name).config(acks="all"))
    failed: list[str] = []
    consumer.subscribe([local])
    began, wanted, found = time.monotonic(), [b"one"], []
    while time.monotonic() < began + LIVES_S or found != wanted:
        assert time.monotonic() < began + LIVES_S + 30, (len(found), len(wanted))
        if time.monotonic() < began + LIVES_S:
            wanted.append(b"%d" % len(wanted))
            producer.produce(
                topic, wanted[-1], on_delivery=lambda e, _: e and failed.append(str(e))
            )
        producer.poll(0)
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message.value())
    consumer.close()
    assert producer.flush(10) == 0
    assert not failed
    assert strict.image().epoch == epoch, "the governor kept the log all the while"


def test_an_open_session_ends_soon_after_its_login_got_a_new_password(strict: Mesh) -> None:
    shop = strict.register_domain("shop")
    _, topic = shop.product()
    refused: list[int] = []
    before = strict.login(shop.name)

    def heard(error: KafkaError) -> None:
        refused.append(error.code())

    old = Producer({**before.config(acks="all", message_timeout_ms=3000), "error_cb": heard})

    def taken() -> bool:
        told: list[KafkaError | None] = []
        old.produce(topic, b"x", on_delivery=lambda error, _: told.append(error))
        old.flush(5)
        # an error of Kafka's cannot be compared with None
        return [error is None for error in told] == [True]

    assert taken()
    shop.rotate(shop.name)
    assert strict.login(shop.name).password != before.password
    eventually(lambda: not taken(), "the old session ends", 2 * REAUTH_S + 5)
    assert KafkaError._AUTHENTICATION in refused
    shop.fill(topic, b"with the new password")


@pytest.mark.long
def test_a_login_that_moves_too_much_is_slowed_down_and_the_meshs_own_are_not(
    strict: Mesh,
) -> None:
    shop = strict.register_domain("shop")
    _, topic = shop.product()

    def slowed(login: Connection) -> float:
        """For how long Kafka made a login wait that wrote 16 times its quota of a second."""
        waits: list[float] = []

        def told(event: ThrottleEvent) -> None:
            waits.append(event.throttle_time)

        producer = Producer({**login.config(acks="all"), "throttle_cb": told})
        for _ in range(16 * QUOTA_MIB_S):
            producer.produce(topic, bytes(900_000))
            producer.poll(0)
        assert producer.flush(60) == 0
        return sum(waits)

    def slowed_reading(login: Connection) -> float:
        """The same for who reads that, as long as it takes to see it."""
        waits: list[float] = []

        def told(event: ThrottleEvent) -> None:
            waits.append(event.throttle_time)

        group = {"group.id": f"{shop.name}.{fresh('group')}", "enable.auto.commit": False}
        consumer = Consumer({**login.config(), **group, "throttle_cb": told})
        place = TopicPartition(topic, 0, 0)
        consumer.assign([place])
        _, end = consumer.get_watermark_offsets(place, timeout=10)
        deadline, last = time.monotonic() + 60, -1
        while last < end - 1 and sum(waits) <= 1:
            assert time.monotonic() < deadline, f"read up to {last} of {end}"
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                last = message.offset()
        consumer.close()
        return sum(waits)

    assert slowed(strict.login(shop.name)) > 1
    assert slowed(strict.admin_login()) == 0
    assert slowed_reading(strict.login(shop.name)) > 1
    assert slowed_reading(strict.admin_login()) == 0
