"""Producer ids are Kafka's, and no login's: who may write to the log can name another's."""

import asyncio

from aiokafka import AIOKafkaProducer

from mesh_events import topics
from mesh_events.emit import LogWriter, Receipt
from mesh_events.intents import ProductUpdated, intents_login
from mesh_events.kafka.connection import Connection
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import fresh

AHEAD = 20


async def take_ids(login: Connection) -> int:
    """Write a first record for each of the producer ids that Kafka gives out next; the first id."""
    settings = {
        "bootstrap_servers": login.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
    }
    first = 0
    for number in range(AHEAD + 1):
        producer = AIOKafkaProducer(**settings, enable_idempotence=True)
        if number:
            producer._txn_manager.set_pid_and_epoch(first + number, 0)
        await producer.start()
        try:
            await producer.send_and_wait(topics.GOVERNANCE, b"garbage", partition=0)
            first = first or producer._txn_manager.producer_id
        finally:
            await producer.stop()
    return first


def test_a_record_stands_where_it_was_acknowledged_whoever_took_the_producers_id(
    scene: Scene,
) -> None:
    kit, owner = scene.kit, scene.owner
    assert asyncio.run(take_ids(kit.login(intents_login(scene.stranger.name)))) > 0
    event = owner.make(ProductUpdated, product=scene.product, tags=[fresh("mine")])
    login = kit.login(intents_login(owner.name))
    with LogWriter(login, kit.registry, owner.key, kit.profile.root_key) as writer:
        written = writer.append_record(event)
    kit.decided(written.offset)
    assert kit.records[written.offset] == written
    kit.accepted(Receipt(event.meta.id, written.offset))
