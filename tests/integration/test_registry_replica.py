"""A cluster's own schema registry answers its readers as the mesh's does, id for id.

The oracle is Confluent's own deserializer, which is told of west's registry only.
"""

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

from mesh_events.errors import InfrastructureError
from mesh_events.intents import ClusterRegistered, LinkPaused, LinkResumed
from mesh_events.references import resolve
from mesh_events.schema.definition import Definition, Version
from mesh_events.schema.registry import Registry
from processors.registries.replica import RegistryReplica
from projections.image import Image
from projections.links import Link, State
from spark_streams.errors import CopyError
from tests.kafka_client import eventually, registrar
from tests.mesh_fixtures import mesh_of_its_own
from tests.mesh_kit import Application, Domain, Mesh, fresh

pytestmark = pytest.mark.platform

SERVICES = ("kafka-east", "kafka-west", "registry", "registry-west", "bootstrap", "governor")
FAR = 1_000_000
MONEY = {"type": "record", "name": "Money", "namespace": "common", "fields": []}
MONEY["fields"] = [
    {"name": "units", "type": "long"},
    {"name": "currency", "type": "string", "default": "EUR"},
]


@pytest.fixture(scope="module")
def two() -> Iterator[Mesh]:
    """A mesh of this module's own, whose cluster west has a registry."""
    with mesh_of_its_own(SERVICES, west_registry=True) as kit:
        # what west's registry numbers by itself begins far behind what the mesh's will reach
        far = Version("far-value", 1, FAR, Definition("AVRO", '"long"'))
        RegistryReplica(*west_login(kit)).bring(far)
        yield kit


def west_login(two: Mesh) -> tuple[str, str, str]:
    west = two.endpoints.clusters["west"]
    assert west.registry_url is not None
    assert west.registry_user is not None
    assert west.registry_password is not None
    return west.registry_url, west.registry_user, resolve(west.registry_password)


def client(two: Mesh, where: str) -> SchemaRegistryClient:
    """A client of a registry, with the right to register."""
    if where == "east":
        return registrar(two.endpoints)
    url, user, password = west_login(two)
    return SchemaRegistryClient({"url": url, "basic.auth.user.info": f"{user}:{password}"})


def register(two: Mesh, subject: str, schema: Any, *references: SchemaReference) -> int:
    """Register at the mesh's registry; the id."""
    text = json.dumps(schema)
    known = client(two, "east").register_schema(subject, Schema(text, "AVRO", list(references)))
    return int(known)


def given(two: Mesh) -> int:
    """The id that the mesh's registry gives to a schema that nobody knows."""
    schema = {"type": "fixed", "name": fresh("Any").replace("-", ""), "size": 7}
    text = Schema(json.dumps(schema), "AVRO")
    return int(client(two, "east").register_schema(f"{fresh('any')}-value", text))


def own(two: Mesh, subject: str, text: str) -> int:
    """The id that west's registry itself gives to a stranger's schema."""
    known = int(client(two, "west").register_schema(subject, Schema(text, "AVRO")))
    assert known > FAR
    return known


def order(name: str, *more: str) -> dict[str, Any]:
    """A schema that refers to a shared one; `more` are fields that may be missing."""
    fields: list[dict[str, Any]] = [{"name": "price", "type": "common.Money"}]
    fields += [{"name": one, "type": ["null", "string"], "default": None} for one in more]
    return {"type": "record", "name": name, "namespace": "shop", "fields": fields}


def encoded(schema_id: int, schema: Any, datum: Any) -> bytes:
    """A value in Confluent's wire format."""
    whole = json.loads(json.dumps(schema).replace('"common.Money"', json.dumps(MONEY), 1))
    out = io.BytesIO()
    out.write(b"\0" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(out, fastavro.parse_schema(whole), datum)
    return out.getvalue()


def read_in_west(two: Mesh, reader: Application, topic: str, count: int) -> list[tuple[Any, Any]]:
    """(key, value) of the records, by somebody who knows nothing but west."""
    url, _, _ = west_login(two)
    decode = AvroDeserializer(
        SchemaRegistryClient({"url": url}),
        conf={"subject.name.strategy": topic_subject_name_strategy},
    )
    consumer = Consumer({**reader.config, "group.id": f"{reader.name}.{fresh('group')}"})
    found: list[tuple[Any, Any]] = []

    def enough() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            key, value = (
                decode(raw, SerializationContext(topic, side))
                for raw, side in (
                    (message.key(), MessageField.KEY),
                    (message.value(), MessageField.VALUE),
                )
            )
            found.append((key, value))
        return len(found) >= count

    try:
        consumer.subscribe([topic])
        eventually(enough, f"{count} records of {topic}")
    finally:
        consumer.close()
    return found


def link_of(image: Image, topic: str) -> Link | None:
    return next((one for one in image.links.values() if one.source_topic == topic), None)


def linked(east: Domain, west: Domain, topic: str) -> Application:
    """Publish, ask, grant: an application in west that may read the copy."""
    product = f"{east.name}.{fresh('orders')}"
    east.mesh.accepted(east.publish(product, topic))
    reader = west.application()
    east.grant(product, west.request(product, reader.name))
    return reader


def in_west(two: Mesh, subject: str) -> list[int]:
    """The ids of a subject's versions at west's registry."""
    west = client(two, "west")
    try:
        return [int(west.get_version(subject, one).schema_id) for one in west.get_versions(subject)]
    except SchemaRegistryError:
        return []


def test_a_copy_is_read_with_nothing_but_the_registry_of_its_cluster(two: Mesh) -> None:
    east, west = two.register_domain("shop"), two.register_domain("lab", cluster="west")
    topic, money = east.topic("orders", schema=None), f"{fresh('common')}.money"
    # the second version of what is referred to, and texts that differ in white space alone
    first = {**MONEY, "fields": MONEY["fields"][:1]}
    register(two, money, first)
    # ids that west's registry would not give by itself
    for n in range(5):
        register(two, f"{east.name}.other{n}-value", {"type": "fixed", "name": f"F{n}", "size": 9})
    register(two, money, MONEY)
    refers = SchemaReference("common.Money", money, 2)
    register(two, f"{topic}-key", "long")
    name = fresh("order").replace("-", "")
    ids = [register(two, f"{topic}-value", order(name), refers)]
    ids.append(register(two, f"{topic}-value", order(name, "note"), refers))

    price = {"units": 3, "currency": "EUR"}
    producer = Producer(two.login(east.name, "east").config(acks="all"))

    def write(key: int, schema_id: int, schema: Any, datum: Any) -> None:
        key_id = int(client(two, "east").get_latest_version(f"{topic}-key").schema_id)
        producer.produce(topic, encoded(schema_id, schema, datum), encoded(key_id, "long", key))
        assert producer.flush(10) == 0

    write(1, ids[0], order(name), {"price": price})
    write(2, ids[1], order(name, "note"), {"price": price, "note": "x"})
    reader = linked(east, west, topic)
    assert read_in_west(two, reader, topic, 2) == [
        (1, {"price": price}),
        (2, {"price": price, "note": "x"}),
    ]

    # while the link runs
    ids.append(register(two, f"{topic}-value", order(name, "note", "sign"), refers))
    eventually(lambda: in_west(two, f"{topic}-value") == ids, "the new version is in west")
    write(3, ids[2], order(name, "note", "sign"), {"price": price, "note": None, "sign": "me"})
    assert read_in_west(two, reader, topic, 3)[2] == (
        3,
        {"price": price, "note": None, "sign": "me"},
    )
    assert client(two, "west").get_latest_version(f"{topic}-value").schema_id == ids[-1]


def test_what_west_offers_itself_is_in_its_registry_too(two: Mesh) -> None:
    west = two.register_domain("lab", cluster="west")
    _, topic = west.product()
    [known] = [client(two, "east").get_latest_version(f"{topic}-value").schema_id]
    eventually(lambda: in_west(two, f"{topic}-value") == [known], "it is in west")


def test_an_id_that_is_another_schema_there_stops_that_link_alone(two: Mesh) -> None:
    east, west = two.register_domain("shop"), two.register_domain("lab", cluster="west")
    good, bad = east.topic("good"), east.topic("bad", schema=None)
    reader = linked(east, west, good)
    # somebody has schemas there under the ids that the mesh's registry gives next
    following = given(two) + 1
    strange = range(following, following + 10)
    for schema_id in strange:
        text = json.dumps({"type": "fixed", "name": f"Strange{schema_id}", "size": 5})
        wanted = Version(f"{fresh('strange')}-value", 1, schema_id, Definition("AVRO", text))
        RegistryReplica(*west_login(two)).bring(wanted)
    try:
        name = fresh("Taken").replace("-", "")
        schema = {"type": "record", "name": name, "fields": []}
        taken = register(two, f"{bad}-value", schema)
        assert taken in strange
        product = f"{east.name}.{fresh('bad')}"
        two.accepted(east.publish(product, bad))
        other = west.application()
        east.grant(product, west.request(product, other.name), active=False)

        def failed(image: Image) -> Link | None:
            link = link_of(image, bad)
            return link if link is not None and link.state is State.FAILED else None

        link = failed(two.wait_for(failed, "the link fails"))
        assert link is not None
        assert link.failure_code == "registry_differs"
        assert f"the id {taken}" in (link.failure or "")
        assert f"{bad}-value" in (link.failure or "")
        # it is not a thing of time
        two.accepted(east.say(LinkPaused, product=product, cluster="west"))
        two.accepted(east.say(LinkResumed, product=product, cluster="west"))
        two.wait_for(
            lambda image: (found := failed(image)) and found.generation > link.generation,
            "it fails again",
        )
        east.fill(good, b"still")
        eventually(lambda: b"still" in reader.read(good), "the other link goes on")
    finally:
        # the others of this module are to get ids that are free in west
        while given(two) <= strange[-1]:
            pass


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", '{"type": "record", "name": "%s", "fields": []}'),
        ("JSON", '{"title": "%s", "type": "object", "properties": {"n": {"type": "integer"}}}'),
        ("PROTOBUF", 'syntax = "proto3";\nmessage %s { int32 n = 1; }\n'),
    ],
)
def test_a_schema_of_any_kind_keeps_its_id(two: Mesh, kind: str, text: str) -> None:
    subject, name = f"{fresh('kinds')}-value", fresh("Any").replace("-", "")
    schema_id = client(two, "east").register_schema(subject, Schema(text % name, kind))
    version = Registry(two.endpoints.registry_url).version(subject, 1)
    registry = RegistryReplica(*west_login(two))
    for there in (subject, f"copy.{subject}"):
        wanted = Version(there, 1, version.schema_id, version.schema)
        registry.bring(wanted)
        registry.bring(wanted)
        assert in_west(two, there) == [schema_id]
    found = client(two, "west").get_schema(schema_id)
    assert found.schema_type == kind
    assert found.schema_str == client(two, "east").get_schema(schema_id).schema_str


def test_the_same_text_can_have_a_second_id(two: Mesh) -> None:
    subject = f"{fresh('twin')}-value"
    schema = {"type": "fixed", "name": fresh("Twin").replace("-", ""), "size": 3}
    # the Confluent API leaves out what lies between, the registry keeps it
    text = json.dumps(schema, separators=(",", ":"))
    there = own(two, subject, text)
    definition = Registry(west_login(two)[0]).version(subject, 1).schema
    for n in (1, 2):
        wanted = Version(f"c{n}{subject}", 1, there + 5000 + n, definition)
        RegistryReplica(*west_login(two)).bring(wanted)
        assert in_west(two, wanted.subject) == [wanted.schema_id]
        assert client(two, "west").get_schema(wanted.schema_id).schema_str == text


def test_a_schema_that_somebody_exported_there_is_taken_as_it_is(two: Mesh) -> None:
    """Its text may be laid out in another way than the Confluent API tells."""
    subject = f"{fresh('spaced')}-value"
    text = json.dumps({"type": "fixed", "name": fresh("Spaced").replace("-", ""), "size": 3})
    there = own(two, subject, text)
    definition = Registry(west_login(two)[0]).version(subject, 1).schema
    assert definition.text != text
    for wanted in (subject, f"c{subject}"):
        RegistryReplica(*west_login(two)).bring(Version(wanted, 1, there, definition))
        assert in_west(two, wanted) == [there]


def test_who_died_between_text_and_version_is_followed_by_one_who_ends_it(two: Mesh) -> None:
    subject = f"{fresh('half')}-value"
    schema_id = register(
        two, subject, {"type": "fixed", "name": fresh("Half").replace("-", ""), "size": 4}
    )
    version = Registry(two.endpoints.registry_url).version(subject, 1)
    RegistryReplica(*west_login(two))._imported(version)
    assert in_west(two, subject) == []
    RegistryReplica(*west_login(two)).bring(version)
    assert in_west(two, subject) == [schema_id]


def test_a_version_that_is_another_there_is_left_and_told(two: Mesh) -> None:
    subject = f"{fresh('held')}-value"
    text = json.dumps({"type": "fixed", "name": fresh("Held").replace("-", ""), "size": 3})
    there = own(two, subject, text)
    other = Registry(west_login(two)[0]).version(subject, 1)
    schema = type(other.schema)("AVRO", text.replace("Held", "Other"))
    with pytest.raises(CopyError, match=f"another schema as version 1 of {subject}"):
        RegistryReplica(*west_login(two)).bring(Version(subject, 1, there + 6000, schema))
    assert in_west(two, subject) == [there]


def test_a_login_that_may_not_import_is_told_before_anything_else(two: Mesh) -> None:
    url, user, _ = west_login(two)
    with pytest.raises(InfrastructureError, match=f"refuses the login {user}"):
        RegistryReplica(url, user, "wrong").require_writable()
    other = RegistryReplica(url.replace("v7", "v0"), *west_login(two)[1:])

    def is_told() -> bool:
        """One that has just started may take too long for an answer."""
        with pytest.raises(InfrastructureError) as caught:
            other.require_writable()
        return "is no schema registry" in str(caught.value)

    eventually(is_told, "that nothing of a registry is there")
    west = two.image().identity.clusters["west"]
    fields = {
        "cluster": "west",
        "bootstrap_servers": west.bootstrap_servers,
        "admin_user": west.admin_user,
        "admin_password": west.admin_password,
        "registry_url": url,
        "registry_user": user,
        "registry_password": west.admin_password,
    }
    event = ClusterRegistered.model_validate({"meta": two.operator.meta(), **fields})
    assert two.code(two.operator.emit(event)) == "registry_login_failed"
