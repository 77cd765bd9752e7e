"""Nobody gets anything from a cluster without a right."""

import time
from dataclasses import replace

import pytest
import requests
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from local_platform import Endpoints
from local_platform.security.principals import Principal, Right, ensure_principals, of_principal
from mesh_events.references import resolve
from tests.mesh_fixtures import connect_worker

CLUSTERS = ("east", "west")


def client(endpoints: Endpoints, cluster: str, user: str, password: str) -> dict[str, str]:
    login = replace(endpoints.administration(cluster), user=user, password=password)
    return {**login.librdkafka(), "log_level": "0"}


def admin_of(endpoints: Endpoints, cluster: str) -> AdminClient:
    return AdminClient(endpoints.administration(cluster).config())


@pytest.fixture(params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def topic(platform: Endpoints, cluster: str) -> str:
    name = f"rights-{time.time_ns()}"
    admin = admin_of(platform, cluster)  # held, since a collected client fails its futures
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)
    return name


@pytest.fixture
def stranger(platform: Endpoints, cluster: str) -> dict[str, str]:
    """A client whose password the cluster knows, without any right."""
    user = f"stranger-{time.time_ns()}"
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, info, b"known")
    admin = admin_of(platform, cluster)
    admin.alter_user_scram_credentials([change])[user].result(10)
    return client(platform, cluster, user, "known")


def test_a_stranger_without_an_acl_sees_no_topic(stranger: dict[str, str], topic: str) -> None:
    assert topic not in AdminClient(stranger).list_topics(timeout=10).topics


def test_a_stranger_without_an_acl_cannot_write(stranger: dict[str, str], topic: str) -> None:
    outcomes: list[KafkaError] = []
    producer = Producer(stranger | {"message.timeout.ms": "10000"})
    producer.produce(topic, b"x", on_delivery=lambda fault, _: outcomes.append(fault))
    producer.flush(15)

    assert [fault.code() for fault in outcomes] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def test_a_stranger_without_an_acl_cannot_create_a_topic(stranger: dict[str, str]) -> None:
    name = f"mine-{time.time_ns()}"
    admin = AdminClient(stranger)
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)

    assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_wrong_password_does_not_get_in(platform: Endpoints, cluster: str) -> None:
    faults: list[KafkaError] = []
    settings = client(platform, cluster, "admin", "wrong") | {"error_cb": faults.append}
    admin = AdminClient(settings)
    deadline = time.monotonic() + 60
    while not faults and time.monotonic() < deadline:
        admin.poll(0.2)

    assert KafkaError._AUTHENTICATION in {fault.code() for fault in faults}


def test_a_write_to_an_unknown_topic_does_not_make_it(platform: Endpoints, cluster: str) -> None:
    name = f"never-{time.time_ns()}"
    found = platform.clusters[cluster]
    settings = client(platform, cluster, found.admin_user, resolve(found.admin_password))
    producer = Producer(settings | {"message.timeout.ms": "3000"})
    producer.produce(name, b"x")
    producer.flush(10)

    assert name not in admin_of(platform, cluster).list_topics(timeout=10).topics


def test_the_registry_is_read_by_anyone_and_written_by_its_writer(platform: Endpoints) -> None:
    subject = f"rights-{time.time_ns()}-value"
    schema = Schema('{"type": "string"}', "AVRO")
    anonymous = SchemaRegistryClient({"url": platform.registry_url, "timeout": 10})
    with pytest.raises(SchemaRegistryError) as caught:
        anonymous.register_schema(subject, schema)
    assert caught.value.http_status_code == 401

    user = f"{platform.registry_user}:{resolve(platform.registry_password)}"
    writer = SchemaRegistryClient(
        {"url": platform.registry_url, "basic.auth.user.info": user, "timeout": 10}
    )
    schema_id = writer.register_schema(subject, schema)

    assert anonymous.get_latest_version(subject).schema_id == schema_id


def test_connect_asks_for_its_password(platform: Endpoints) -> None:
    place, user = connect_worker(platform)
    url = f"{place}/connectors"

    assert requests.get(url, timeout=10).status_code == 401
    assert requests.get(url, auth=(user[0], "wrong"), timeout=10).status_code == 401
    assert requests.get(url, auth=user, timeout=10).status_code == 200


def test_a_principal_of_the_platform_has_its_rights_and_keeps_no_older_ones(
    platform: Endpoints, cluster: str
) -> None:
    name = f"platform-{time.time_ns()}"
    for topic in ("older", "newer"):
        rights = (Right("READ", "TOPIC", topic), Right("ALL", "GROUP", "kept-", prefixed=True))
        ensure_principals(platform.administration(cluster), [Principal(name, "known", rights)])

    admin = admin_of(platform, cluster)  # held, since a collected client fails its futures
    held = admin.describe_acls(of_principal(name)).result(10)
    assert {acl.name for acl in held} == {"newer", "kept-"}
    assert AdminClient(client(platform, cluster, name, "known")).list_topics(timeout=10).brokers
