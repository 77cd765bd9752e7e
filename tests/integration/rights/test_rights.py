"""One client, one configuration: only what was granted decides what Kafka lets it do."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from mesh_events.intents import AccessGranted, LinkCreated, LinkDeleted, intents_login
from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import KafkaAdmin
from processors.controllers.flows.partition_limit import MOST_PARTITIONS
from projections.access import State
from projections.links import State as LinkState
from tests.mesh_kit import Application, Domain, Mesh, eventually, fresh, read, reading, write

DENIED = "TOPIC_AUTHORIZATION_FAILED"
GROUP_DENIED = "GROUP_AUTHORIZATION_FAILED"
MESH_TOPICS = ("mesh.governance", "mesh.catalog", "mesh.access", "mesh.links", "mesh.quarantine")


def controller_of(kit: Mesh, cluster: str) -> KafkaAdmin:
    """A cluster as the controllers see it."""
    return KafkaAdmin(cluster, kit.admin_login(cluster))


def filled(owner: Domain) -> tuple[str, str]:
    """(product, topic) with two values."""
    product, topic = owner.product()
    owner.fill(topic, b"one", b"two")
    return product, topic


def test_a_client_reads_from_grant_to_revocation_and_never_else(
    owner: Domain, buyer: Domain, application: Application
) -> None:
    product, topic = filled(owner)
    assert application.read(topic) == DENIED

    request = buyer.request(product, application.name)
    assert application.read(topic) == DENIED

    owner.grant(product, request)
    assert application.read(topic) == [b"one", b"two"]

    owner.revoke(product, request)
    assert application.read(topic) == DENIED


def test_an_application_reads_what_its_own_domain_owns_and_cannot_write_it(owner: Domain) -> None:
    _, topic = filled(owner)
    own = owner.application()
    assert own.read(topic) == [b"one", b"two"]
    assert write(login(own), topic) == DENIED


def test_readers_lose_a_copy_with_its_link_and_read_it_again_when_it_is_back(
    owner: Domain, kit: Mesh
) -> None:
    product, topic = filled(owner)
    far = kit.register_domain("far", "west")
    reader_far = far.application()
    request = far.request(product, reader_far.name)
    owner.grant(product, request)
    eventually(lambda: reader_far.read(topic) == [b"one", b"two"], "the copy's two values")

    kit.accepted(owner.say(LinkDeleted, product=product, cluster="west", reason="copied anew"))
    kit.wait_for(
        lambda image: image.links[f"{product}@west"].state is LinkState.DELETED,
        f"the removal of the link of {product}",
    )
    away = kit.image().access.requests[request]
    assert (away.state, away.removed_at is not None) == (State.GRANTED, True)
    assert reader_far.read(topic) != [b"one", b"two"]

    kit.accepted(owner.say(LinkCreated, product=product, cluster="west"))
    kit.wait_for(
        lambda image: image.access.requests[request].state is State.ACTIVE,
        f"the grant {request} to be enforced again",
    )
    eventually(lambda: reader_far.read(topic) == [b"one", b"two"], "the copy's two values")


def test_a_grant_is_refused_whose_link_would_have_too_many_partitions(
    owner: Domain, kit: Mesh
) -> None:
    product, topic = filled(owner)
    east = controller_of(kit, "east")
    east.add_partitions(topic, MOST_PARTITIONS + 1)
    eventually(
        lambda: (found := east.topic(topic)) and found.partitions > MOST_PARTITIONS,
        f"{topic} has its partitions",
    )
    far = kit.register_domain("far", "west")
    request = far.request(product, far.application().name)
    grant = owner.say(AccessGranted, product=product, request=request)
    assert kit.code(grant) == "too_many_partitions"
    assert f"{product}@west" not in kit.image().links
    assert controller_of(kit, "west").topic(topic) is None


def test_a_second_grant_while_the_copy_is_being_made_is_accepted(owner: Domain, kit: Mesh) -> None:
    product, topic = filled(owner)
    far = kit.register_domain("far", "west")
    first, second = far.application("first"), far.application("second")
    requests = [far.request(product, one.name) for one in (first, second)]
    west = controller_of(kit, "west")

    kit.accepted(owner.say(AccessGranted, product=product, request=requests[0]))
    eventually(lambda: west.topic(topic) is not None, f"the copy's topic {topic}")
    kit.accepted(owner.say(AccessGranted, product=product, request=requests[1]))

    kit.wait_for(
        lambda image: image.access.requests[requests[1]].state is State.ACTIVE,
        f"the second grant {requests[1]} to be enforced",
    )
    eventually(lambda: second.read(topic) == [b"one", b"two"], "the copy's two values")


def test_a_running_consumer_is_refused_at_its_next_fetch(
    owner: Domain, buyer: Domain, application: Application
) -> None:
    """Kafka asks for the right when a fetch arrives: one that waits already is still answered."""
    product, topic = filled(owner)
    request = buyer.request(product, application.name)
    owner.grant(product, request)
    consumer = Consumer(dict(application.config))
    consumer.subscribe([topic])
    try:
        got = [until_value(consumer), until_value(consumer)]
        owner.revoke(product, request)
        owner.fill(topic, b"to the fetch that waits")
        with pytest.raises(KafkaException) as refused:
            got.extend(until_value(consumer) for _ in range(2))
    finally:
        consumer.close()

    assert got[:2] == [b"one", b"two"]
    assert len(got) <= 3
    assert refused.value.args[0].name() == DENIED


def until_value(consumer: Consumer) -> bytes:
    """The next value; raises what Kafka refuses."""
    for _ in range(150):
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is None:
            return bytes(message.value())
        if message.error().name() != "_PARTITION_EOF":
            raise KafkaException(message.error())
    raise AssertionError("neither a value nor a refusal within 30 s")


def test_a_reader_cannot_write(owner: Domain, buyer: Domain, application: Application) -> None:
    product, topic = filled(owner)
    owner.grant(product, buyer.request(product, application.name))

    assert write(login(application), topic) == DENIED
    assert application.read(topic) == [b"one", b"two"]


def test_a_reader_cannot_use_groups_of_others(
    owner: Domain, buyer: Domain, application: Application
) -> None:
    product, topic = filled(owner)
    owner.grant(product, buyer.request(product, application.name))
    foreign = (f"{owner.name}.group", f"{application.name}x.group", buyer.name, fresh("any"))

    found = [read(reading(login(application), group), topic) for group in foreign]

    assert found == [GROUP_DENIED] * len(foreign)


def test_another_application_of_the_same_domain_is_refused(
    owner: Domain, buyer: Domain, application: Application
) -> None:
    product, topic = filled(owner)
    other = buyer.application("other")
    owner.grant(product, buyer.request(product, application.name))

    assert other.read(topic) == DENIED
    assert application.read(topic) == [b"one", b"two"]


def test_a_domain_whose_name_begins_alike_is_another_domain(kit: Mesh) -> None:
    stem = fresh("acme")
    acme = kit.register_domain(name=stem)
    acme2 = kit.register_domain(name=f"{stem}2")
    topic = acme2.topic("userprops")
    acme2.fill(topic, b"x")
    as_acme = kit.login(acme.name)

    assert read(reading(as_acme, f"{acme.name}.own"), topic) == DENIED
    assert write(as_acme, topic) == DENIED
    assert read(reading(as_acme, f"{acme2.name}.own"), topic) == GROUP_DENIED
    with pytest.raises(KafkaException, match=DENIED):
        make_topic(acme, f"{acme2.name}.mine")


def make_topic(domain: Domain, name: str) -> None:
    admin = AdminClient(domain.mesh.login(domain.name).config())
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(15)


def test_a_domain_reads_the_log_and_the_rows_and_writes_none_of_them(
    kit: Mesh, buyer: Domain
) -> None:
    connection = kit.login(buyer.name)

    assert read(reading(connection, f"{buyer.name}.own"), "mesh.catalog") != DENIED
    assert read(reading(connection, f"{buyer.name}.own"), "mesh.governance") != DENIED
    assert {write(connection, topic) for topic in MESH_TOPICS} == {DENIED}


def test_a_domain_deletes_its_groups_and_gives_them_no_settings(buyer: Domain, kit: Mesh) -> None:
    topic, group = buyer.topic(), f"{buyer.name}.{'x' * 200}"
    buyer.fill(topic, b"one")
    connection = kit.login(buyer.name, buyer.cluster)
    admin = AdminClient(connection.config())
    assert read(reading(connection, group), topic) == [b"one"]
    setting = ConfigEntry(
        "consumer.session.timeout.ms", "50000", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[setting])
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        admin.incremental_alter_configs([resource])[resource].result(20)
    eventually(lambda: deleted(admin, group), "the group is deleted once its member has left")


def deleted(admin: AdminClient, group: str) -> bool:
    try:
        admin.delete_consumer_groups([group])[group].result(20)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NON_EMPTY_GROUP:
            raise
        return False
    return True


def test_the_login_of_a_domains_intents_writes_the_log_and_nothing_else(
    kit: Mesh, buyer: Domain
) -> None:
    connection = kit.login(intents_login(buyer.name))
    others = [topic for topic in MESH_TOPICS if topic != "mesh.governance"]

    assert write(connection, "mesh.governance") != DENIED
    assert {write(connection, topic) for topic in (*others, buyer.topic())} == {DENIED}
    transaction = Producer(connection.config(transactional_id=f"{connection.user}.begun"))
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        transaction.init_transactions(20)


def test_an_application_sees_nothing_of_the_mesh(application: Application) -> None:
    assert application.read("mesh.governance") == DENIED
    assert write(login(application), "mesh.governance") == DENIED


def test_after_a_rotation_only_the_new_password_logs_in(
    owner: Domain, buyer: Domain, application: Application
) -> None:
    product, topic = filled(owner)
    owner.grant(product, buyer.request(product, application.name))
    old = login(application)

    buyer.rotate(application.name)
    new = login(application)

    assert old.password != new.password
    assert read(reading(old, application.group), topic) == "_AUTHENTICATION"
    assert read(reading(new, application.group), topic) == [b"one", b"two"]


def login(application: Application) -> Connection:
    """The application's login as it is now."""
    return application.domain.mesh.login(application.name, application.domain.cluster)
