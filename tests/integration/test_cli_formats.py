"""Topics of JSON Schema and Protobuf on a running mesh, filled by clients that are not ours."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as Registered
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP

from local_platform import Endpoints
from mesh_events.decisions import IntentRejected
from mesh_events.statements import StatementAdded
from self_service.cli.framework.exits import ExitCode
from tests.integration.test_cli import Sdm, sdm
from tests.kafka_client import eventually, fresh, registrar
from tests.mesh_fixtures import kit
from tests.mesh_kit import Domain, Mesh

__all__ = ["kit", "sdm"]
pytestmark = pytest.mark.platform

MONEY = 'syntax = "proto3"; package f; message Money { int64 units = 1; }'
ORDER = """syntax = "proto3";
package f;
import "f/money.proto";
// What was ordered
message Order {
  int64 id = 1; // what it is known by
  repeated f.Money prices = 2;
}
"""
ORDERED = b"\x00\x08\x96\x01\x12\x02\x08\x05\x12\x00"
"""The way to the first message; id 150; a price of 5 units, and one of none."""
CLICK: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Click",
    "type": "object",
    "properties": {"user": {"type": "integer", "description": "who"}, "page": {"type": "string"}},
    "required": ["user"],
}


@pytest.fixture(scope="module")
def owner(kit: Mesh) -> Domain:
    return kit.register_domain("formats")


@pytest.fixture(scope="module")
def client(mesh: Endpoints) -> SchemaRegistryClient:
    return registrar(mesh)


def order_topic(owner: Domain, client: SchemaRegistryClient) -> str:
    """A topic of Order, whose schema refers to another subject."""
    topic, money = owner.topic("orders", schema=None), f"{fresh('money')}"
    client.register_schema(money, Registered(MONEY, "PROTOBUF"))
    order = Registered(ORDER, "PROTOBUF", [SchemaReference("f/money.proto", money, 1)])
    schema_id = client.register_schema(f"{topic}-value", order)
    owner.fill(topic, b"\0" + schema_id.to_bytes(4, "big") + ORDERED)
    return topic


def click_topic(owner: Domain, client: SchemaRegistryClient, *clicks: dict[str, Any]) -> str:
    """A topic of clicks, written by another library's serializer."""
    topic = owner.topic("clicks", schema=None)
    serialize = JSONSerializer(json.dumps(CLICK), client)
    context = SerializationContext(topic, MessageField.VALUE)
    owner.fill(topic, *(serialize(one, context) for one in clicks))
    return topic


def values(sdm: Sdm, owner: Domain, topic: str) -> list[Any]:
    return [one["value"] for one in sdm("topic", "consume", topic, "-d", owner.name).lines]


def test_json_of_another_library_is_read_and_what_does_not_fit_is_told(
    sdm: Sdm, owner: Domain, client: SchemaRegistryClient
) -> None:
    topic = click_topic(owner, client, {"user": 1}, {"user": 2, "page": "é"})
    schema_id = client.get_latest_version(f"{topic}-value").schema_id
    head = b"\0" + schema_id.to_bytes(4, "big")
    owner.fill(topic, head + b'{"user": "x"}', head + b"\xff", head + b'{"user": 3}')
    found = sdm("topic", "consume", topic, "-d", owner.name).lines
    assert [one["value"] for one in found] == [
        {"user": 1},
        {"user": 2, "page": "é"},
        {"user": "x"},
        f"0x{head.hex()}ff",
        {"user": 3},
    ]
    assert [one["value_schema"] for one in found] == [schema_id, schema_id, None, None, schema_id]
    why = f"it does not fit schema {schema_id}: "
    assert found[2]["misfits"] == {"value": f"{why}user: 'x' is not of type 'integer'"}
    assert found[3]["misfits"]["value"].startswith(why)
    assert "misfits" not in found[4]


def test_protobuf_with_a_reference_is_read(
    sdm: Sdm, owner: Domain, client: SchemaRegistryClient
) -> None:
    topic = order_topic(owner, client)
    assert values(sdm, owner, topic) == [{"id": 150, "prices": [{"units": 5}, {"units": 0}]}]


def test_protobuf_of_another_library_is_read(
    sdm: Sdm, owner: Domain, client: SchemaRegistryClient
) -> None:
    """It registers descriptors in base64, and what they import as references."""
    pool = DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP.serialized_pb)
    stem = fresh("money")
    money = FileDescriptorProto(name=f"{stem}.proto", package="g", syntax="proto3")
    money.message_type.add(name="Money").field.add(name="units", number=1, type=3, label=1)
    order = FileDescriptorProto(name="order.proto", package="g", syntax="proto3")
    order.dependency.extend([f"{stem}.proto", "google/protobuf/timestamp.proto"])
    order.message_type.add(name="Other")
    fields = order.message_type.add(name="Order").field
    fields.add(name="money", number=1, type=11, label=1, type_name=".g.Money")
    fields.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    fields.add(name="raw", number=3, type=12, label=3)
    for one in (money, order):
        pool.Add(one)
    kind = GetMessageClass(pool.FindMessageTypeByName("g.Order"))
    message = kind(raw=[b"\xff"])
    message.money.units, message.at.seconds = 2**53 + 1, 1
    topic = owner.topic("foreign", schema=None)
    serialize = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
    owner.fill(topic, serialize(message, SerializationContext(topic, MessageField.VALUE)))
    assert values(sdm, owner, topic) == [
        {"money": {"units": 2**53 + 1}, "at": "1970-01-01T00:00:01Z", "raw": ["0xff"]}
    ]
    described = sdm("schema", "describe", topic).document
    assert {"field": "Order.money.units", "type": "int64 = 1", "doc": None} in described["fields"]


def test_both_are_written_by_a_file_and_by_the_topics_own_schema(
    sdm: Sdm, owner: Domain, tmp_path: Path
) -> None:
    click, proto = tmp_path / "click.json", tmp_path / "a.proto"
    click.write_text(json.dumps(CLICK))
    proto.write_text('syntax = "proto3"; message A { int64 n = 1; bytes b = 2; }')
    for file, good, bad, field in (
        (click, '{"user": 1}', '{"user": "x"}', "user: 'x' is not of type 'integer'"),
        (proto, '{"n": 1, "b": "base64:/w=="}', '{"n": "x"}', "n"),
    ):
        topic, as_owner = f"{owner.name}.{fresh('made')}", ("-d", owner.name)
        created = sdm("topic", "create", topic, "--schema", str(file), *as_owner).document
        assert created["schema_id"]
        sdm("topic", "produce", topic, "--value", good, *as_owner)
        sdm("topic", "produce", topic, "--value", good, "--schema", str(file), *as_owner)
        assert len(values(sdm, owner, topic)) == 2
        told = sdm("topic", "produce", topic, "--value", bad, *as_owner, code=ExitCode.USAGE)
        assert "line 1: the value does not fit the schema" in told.err
        assert field in told.err
        shown = sdm("topic", "consume", topic, *as_owner).lines[0]
        assert shown["value"] == json.loads(good.replace("base64:/w==", "0xff"))
        assert shown["value_schema"] == created["schema_id"]


def test_schemas_are_listed_described_and_compared(
    sdm: Sdm, owner: Domain, client: SchemaRegistryClient, tmp_path: Path
) -> None:
    topic = order_topic(owner, client)
    [listed] = sdm("schema", "list", topic).document
    assert (listed["type"], listed["version"]) == ("PROTOBUF", 1)
    told = sdm("schema", "describe", topic).document
    assert told["fields"][:2] == [
        {"field": "id", "type": "int64 = 1", "doc": "what it is known by"},
        {"field": "prices", "type": "repeated message f.Money = 2", "doc": None},
    ]
    assert told["schema"] == ORDER
    assert sdm("topic", "describe", topic, "-d", owner.name).document["value_schema"]["type"] == (
        "PROTOBUF"
    )
    path = tmp_path / f"{topic}.proto"
    path.write_text(ORDER.replace("int64 id = 1;", "string id = 1;"))
    changed = {"field": "id", "change": "changed", "before": "int64 = 1", "after": "string = 1"}
    assert sdm("schema", "diff", topic, str(path)).document == [changed]
    # Apicurio forgets there what the schema refers to
    told = sdm("schema", "check", str(path), code=ExitCode.USAGE)
    assert "does not check a schema that refers to others (f/money.proto)" in told.err


def test_a_protobuf_schema_that_readers_could_not_follow_is_refused(
    sdm: Sdm, owner: Domain, client: SchemaRegistryClient, tmp_path: Path
) -> None:
    topic, plain = owner.topic("plain", schema=None), MONEY.replace("Money", "Order")
    client.register_schema(f"{topic}-value", Registered(plain, "PROTOBUF"))
    path = tmp_path / f"{topic}.proto"
    path.write_text(plain.replace("int64 units", "string units"))
    junit = tmp_path / "junit.xml"
    refused = sdm("schema", "check", str(path), "--junit", str(junit), code=ExitCode.REFUSED)
    [outcome] = refused.document
    assert (outcome["outcome"], outcome["compatibility"]) == ("breaks", "BACKWARD")
    assert "units from int64 = 1 to string = 1" in refused.err
    assert 'failures="1"' in junit.read_text()
    path.write_text(plain.replace("message Order {", "message Order { bool gift = 3;"))
    assert sdm("schema", "check", str(path)).document[0]["outcome"] == "may follow"
    path.write_text("message {")
    assert (
        "is not a valid Protobuf schema: line 1"
        in sdm("schema", "check", str(path), code=ExitCode.USAGE).err
    )


def test_a_json_schema_that_readers_could_not_follow_is_refused(
    sdm: Sdm, owner: Domain, client: SchemaRegistryClient, tmp_path: Path
) -> None:
    topic = click_topic(owner, client, {"user": 1})
    assert sdm("schema", "describe", topic).document["fields"][1] == {
        "field": "user", "type": "integer, required", "doc": "who"
    }  # fmt: skip
    path = tmp_path / f"{topic}.json"
    path.write_text(json.dumps({**CLICK, "properties": {"user": {"type": "string"}}}))
    told = sdm("schema", "check", str(path), code=ExitCode.REFUSED)
    assert "user from integer, required to string, required" in told.err
    refused = sdm(
        *("topic", "produce", topic, "--schema", str(path), "--value", '{"user": "a"}'),
        *("-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "incompatible_schema" in refused.err
    path.write_text(json.dumps({**CLICK, "description": "clicks"}))
    assert sdm("schema", "check", str(path)).document[0]["outcome"] == "may follow"
    odd = tmp_path / "odd.avsc"
    odd.write_text('"string"')
    told = sdm("schema", "check", str(odd), "--subject", topic, code=ExitCode.USAGE)
    assert "holds JSON, and the file is AVRO" in told.err


def test_a_product_of_protobuf_is_copied_and_read_and_streaming_sql_refuses_it(
    kit: Mesh, sdm: Sdm, owner: Domain, client: SchemaRegistryClient
) -> None:
    topic, product = order_topic(owner, client), f"{owner.name}.{fresh('orders')}"
    kit.accepted(owner.publish(product, topic))
    described = sdm("product", "describe", product, "--schema").document
    assert described["schema"] == ORDER
    reader = kit.register_domain("formatsread", "west").application("app")
    owner.grant(product, reader.domain.request(product, reader.name))
    as_reader = ("--application", reader.name, "-d", reader.domain.name)

    def copied() -> list[Any]:
        return [one["value"] for one in sdm("topic", "consume", topic, *as_reader).lines]

    eventually(copied, "the copy is there")
    assert copied() == [{"id": 150, "prices": [{"units": 5}, {"units": 0}]}]
    sdm("lineage", "show", product)
    out = f"{owner.name}.{fresh('out')}"
    text = f"INSERT INTO `{out}`\nSELECT id FROM `{topic}`"
    why = f"line 2, column 16: values of {topic} are PROTOBUF: streaming SQL reads Avro; "
    refused = sdm("streaming", "sql", "explain", text, "-d", owner.name, code=ExitCode.REFUSED)
    assert f"refused (unsupported_schema): {why}" in refused.err
    said = owner.say(StatementAdded, statement=out, sql=text, stream=topic, destination=out)
    decision = kit.decided(said.offset)
    assert isinstance(decision, IntentRejected)
    assert decision.code == "unsupported_schema"
    assert decision.reason.startswith(why)
