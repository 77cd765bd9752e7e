"""A login of intents is slowed down at its share of the budget, and its domain's topics are not."""

import os
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Message, Producer, ThrottleEvent

from mesh_events.intents import intents_login
from mesh_events.kafka.client_quotas import PRODUCED, REQUESTS
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import KafkaAdmin
from processors.controllers.rights.quotas import Budget
from tests.mesh_kit import Domain, Mesh

SHARE = Budget(bytes_s=8 * 16 * 1024, request_percent=0).share(1)


@pytest.fixture
def slowed(kit: Mesh, buyer: Domain) -> Iterator[Domain]:
    """A domain whose login of intents has a share of 16 KiB/s."""
    admin, login = KafkaAdmin("east", kit.admin_login()), intents_login(buyer.name)
    admin.set_quotas({login: SHARE})
    yield buyer
    admin.set_quotas({login: {PRODUCED: 0.0, REQUESTS: 0.0}})


def throttled_s(login: Connection, topic: str) -> float:
    """Seconds for which Kafka delayed a client that appended 640 KiB."""
    delays: list[float] = []
    refused: list[str] = []

    def on_throttle(event: ThrottleEvent) -> None:
        delays.append(event.throttle_time)

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(str(error))

    producer = Producer(
        {
            **login.config(acks="all", batch_size=16_384, linger_ms=0),
            "throttle_cb": on_throttle,
        }
    )
    for _ in range(80):
        producer.produce(topic, os.urandom(8192), partition=0, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(120) == 0
    assert refused == [], "who waits as Kafka tells it is delayed only"
    return sum(delays)


def test_a_login_of_intents_is_slowed_down_at_its_share(kit: Mesh, slowed: Domain) -> None:
    assert throttled_s(kit.login(intents_login(slowed.name)), "mesh.governance") > 1


def test_the_topics_of_the_domain_have_no_part_in_that(kit: Mesh, slowed: Domain) -> None:
    assert throttled_s(kit.login(slowed.name), slowed.topic()) == 0
