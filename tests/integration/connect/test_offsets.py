"""Where Connect keeps the positions of a domain's sources: their own logins alone write there."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from psycopg import sql

from local_platform import Endpoints
from processors.connect.principals import offsets_of
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.integration.test_cli_connect import OUTBOX, admin, drop_slots, table
from tests.kafka_client import eventually, fresh, read, reading, write
from tests.mesh_fixtures import kit
from tests.mesh_kit import Mesh

__all__ = ["kit", "owner", "sdm", "table"]
pytestmark = pytest.mark.slow
DENIED = "TOPIC_AUTHORIZATION_FAILED"
NOUN = ("connect", "connector")


@pytest.fixture
def capture(sdm: Sdm, owner: Party, table: tuple[str, Any]) -> Iterator[str]:
    """A running connector that captures the table."""
    name = table[0]
    adding = ("--type", "debezium-postgres", "--table", name, "-d", owner.name)
    assert sdm(*NOUN, "add", name, *adding).document["state"] == "ACTIVE"
    yield f"{owner.name}.{name}"
    sdm(*NOUN, "delete", name, "-d", owner.name)


def positions(mesh: Endpoints, owner: Party) -> list[bytes]:
    """What Connect keeps for the domain's sources."""
    login = reading(mesh.administration(owner.cluster), fresh("positions"))
    found = read(login, offsets_of(owner.name))
    assert not isinstance(found, str), found
    return [value for value in found if value is not None]


def test_a_domain_neither_writes_nor_changes_where_connect_keeps_its_positions(
    owner: Party, capture: str, kit: Mesh, mesh: Endpoints
) -> None:
    topic, login = offsets_of(owner.name), kit.login(owner.name, owner.cluster)
    eventually(lambda: positions(mesh, owner), "the connector has committed its position")
    assert admin(mesh, owner.cluster).topic(f"{owner.name}.connect-offsets") is None

    assert write(login, topic, b"x" * 900_000) == DENIED
    assert read(reading(login, f"{owner.name}.own"), topic) == DENIED
    client = AdminClient(login.config())
    with pytest.raises(KafkaException, match=DENIED):
        client.delete_topics([topic])[topic].result(20)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    with pytest.raises(KafkaException, match=DENIED):
        client.describe_configs([resource])[resource].result(20)


def test_a_position_has_64_kib_at_most(owner: Party, capture: str, mesh: Endpoints) -> None:
    topic, login = offsets_of(owner.name), mesh.administration(owner.cluster)
    assert write(login, topic, b"x" * 70_000) == "MSG_SIZE_TOO_LARGE"


def test_the_rows_of_an_outbox_lead_to_no_topic_but_the_domain_s(
    sdm: Sdm, owner: Party, table: tuple[str, Any], capture: str, mesh: Endpoints
) -> None:
    name, database = f"{table[0]}_outbox", table[1]
    database.execute(sql.SQL(OUTBOX).format(sql.Identifier(name)))
    topic, connector = offsets_of(owner.name), f"{owner.name}.{name}"
    row = sql.SQL("INSERT INTO {} VALUES (gen_random_uuid(), %s, 'hostile', 'x', '{{}}')")
    database.execute(row.format(sql.Identifier(name)), (topic,))
    route = "transforms.outbox.route.topic.replacement=${routedByValue}"

    def failed() -> bool:
        found = sdm(*NOUN, "describe", connector).document
        return found["state"] == "FAILED" and "topic_not_own" in found["failure"]

    try:
        adding = ("--type", "debezium-outbox", "--table", name, "--set", route, "-d", owner.name)
        sdm(*NOUN, "add", name, *adding, "--until", "decided")
        eventually(failed, "the connector has failed")
        eventually(lambda: positions(mesh, owner), "the other connector's position is there")
        assert not any(b"hostile" in value for value in positions(mesh, owner))
    finally:
        sdm(*NOUN, "delete", name, "-d", owner.name)
        drop_slots(database, name)
        database.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
