"""`sdm schema register` on a running mesh: shared schemas, refusals, new major versions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_platform import Endpoints
from mesh_events.settings import key_path
from mesh_events.statements import StatementAdded
from self_service.cli.framework.exits import ExitCode
from tests.integration.test_cli import Sdm, sdm
from tests.kafka_client import eventually, fresh, register_schema, registrar
from tests.mesh_fixtures import kit
from tests.mesh_kit import Domain, Mesh

__all__ = ["kit", "sdm"]
pytestmark = pytest.mark.platform

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
MONEY = {
    "type": "record",
    "name": "acme.Money",
    "fields": [{"name": "units", "type": DECIMAL}, {"name": "currency", "type": "string"}],
}
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": "acme.Money"},
        {"name": "tip", "type": ["null", "acme.Money"], "default": None},
    ],
}
PRICE = {"units": "19.99", "currency": "EUR"}
SOLD: dict[str, Any] = {"id": 1, "price": PRICE, "tip": {"units": "0.50", "currency": "USD"}}


@pytest.fixture(scope="module")
def owner(kit: Mesh) -> Domain:
    found = kit.register_domain("register")
    # the command line speaks for it as well
    found.key.save(key_path(kit.home, found.name))
    return found


Writes = Callable[[str, Any], str]


@pytest.fixture
def write(tmp_path: Path) -> Writes:
    """Write a schema into a file; returns its path."""

    def to_file(name: str, schema: Any) -> str:
        path = tmp_path / name
        path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
        return str(path)

    return to_file


def shared_money(sdm: Sdm, write: Writes, owner: Domain) -> str:
    """A subject with the schema of money, which belongs to no topic."""
    subject, path = f"{owner.name}.{fresh('money')}", write("money.avsc", MONEY)
    sdm("schema", "register", subject, path, "--shared", "-d", owner.name)
    return subject


def order_topic(sdm: Sdm, write: Writes, owner: Domain) -> str:
    """A topic of orders, whose schema refers to that of money."""
    money, topic = shared_money(sdm, write, owner), owner.topic("orders", schema=None)
    refers = ("--reference", f"acme.Money={money}", "-d", owner.name)
    sdm("schema", "register", topic, write("order.avsc", ORDER), *refers)
    return topic


def test_a_schema_is_registered_once_and_the_same_again_changes_nothing(
    sdm: Sdm, owner: Domain, write: Writes
) -> None:
    topic, path = owner.topic(schema=None), write("x.avsc", {"type": "string"})
    register = ("schema", "register", topic, path, "-d", owner.name)
    told = sdm(*register, "--dry-run").document
    assert (told["outcome"], told["version"], told["id"]) == ("would be registered", None, None)
    assert sdm("schema", "list", topic).document == []
    told = sdm(*register).document
    assert (told["outcome"], told["version"], told["against"]) == ("registered", 1, [])
    again = sdm(
        "schema", "register", topic, write("y.avsc", '{ "type":\n"string" }'), *register[4:]
    )
    assert again.document["outcome"] == "registered already"
    assert (again.document["version"], again.document["id"]) == (1, told["id"])
    [listed] = sdm("schema", "list", topic).document
    assert (listed["subject"], listed["version"]) == (f"{topic}-value", 1)
    wider = sdm("schema", "register", topic, write("z.avsc", ["null", "string"]), *register[4:])
    assert (wider.document["version"], wider.document["against"]) == (2, [1])


def test_a_shared_schema_is_referred_to_and_both_tell(
    sdm: Sdm, owner: Domain, write: Writes
) -> None:
    topic = order_topic(sdm, write, owner)
    told = sdm("schema", "describe", topic).document
    [reference] = told["references"]
    money = reference.removeprefix("acme.Money=").removesuffix(":1")
    described = sdm("schema", "describe", money).document
    assert (described["subject"], described["referred_to_by"]) == (money, [f"{topic}-value:1"])
    assert {"field": "price.units", "type": "decimal(9,2)", "doc": None} in told["fields"]
    # the next version is checked and registered with the same reference
    more = {**ORDER, "fields": [*ORDER["fields"], {"name": "n", "type": "int", "default": 0}]}  # type: ignore[misc]
    path = write("more.avsc", more)
    assert sdm("schema", "check", path, "--subject", topic).document[0]["outcome"] == "may follow"
    registered = sdm("schema", "register", topic, path, "-d", owner.name).document
    assert (registered["version"], registered["references"]) == (2, [reference])
    [added] = sdm("schema", "diff", topic).document
    assert (added["field"], added["change"]) == ("n", "added")


def test_what_a_file_refers_to_must_be_told_and_be_there(
    sdm: Sdm, owner: Domain, write: Writes
) -> None:
    topic, path = owner.topic(schema=None), write("order.avsc", ORDER)
    register = ("schema", "register", topic, path, "-d", owner.name)
    told = sdm(*register, code=ExitCode.USAGE).err
    assert "the type acme.Money is not defined in it; " in told
    assert "--reference NAME=SUBJECT" in told
    gone = f"acme.Money={owner.name}.gone"
    told = sdm(*register, "--reference", gone, code=ExitCode.NOT_FOUND).err
    assert f"--reference {gone}: the registry has no subject {owner.name}.gone" in told
    money = shared_money(sdm, write, owner)
    refer = (*register, "--reference", f"acme.Money={money}:2")
    assert f"{money} has no version 2: there are 1" in sdm(*refer, code=ExitCode.NOT_FOUND).err
    told = sdm(*register, "--reference", "acme.Money", code=ExitCode.USAGE).err
    assert "write it as NAME=SUBJECT" in told
    assert sdm("schema", "list", topic).document == []


def test_records_whose_schema_refers_to_another_are_written_read_and_made_up(
    sdm: Sdm, owner: Domain, write: Writes
) -> None:
    topic, as_owner = order_topic(sdm, write, owner), ("-d", owner.name)
    sdm("topic", "produce", topic, *as_owner, stdin=json.dumps(SOLD))
    told = sdm("topic", "produce", topic, *as_owner, "--value", '{"id": 2}', code=ExitCode.USAGE)
    assert "price" in told.err
    sdm("generate", topic, "--count", "5", "--fast", *as_owner)
    first, *others = [one["value"] for one in sdm("topic", "consume", topic, *as_owner).lines]
    assert first == SOLD
    assert len(others) == 5
    assert all(set(one["price"]) == {"units", "currency"} for one in others)


def test_only_a_domain_registers_under_its_own_names(
    sdm: Sdm, kit: Mesh, owner: Domain, write: Writes
) -> None:
    other, path = kit.register_domain("registerother"), write("x.avsc", '"string"')
    for name, domain in (
        (owner.topic(schema=None), other.name),
        (owner.topic(schema=None), "mesh"),
        ("mesh.catalog", owner.name),
        ("orders", owner.name),
    ):
        told = sdm("schema", "register", name, path, "-d", domain, code=ExitCode.REFUSED).err
        assert "refused (not_your_domain)" in told
        assert sdm("schema", "list", f"{name}-value").document == []
    nobody = ("schema", "register", "nobody.x", path, "-d", "nobody")
    assert "no domain nobody" in sdm(*nobody, code=ExitCode.NOT_FOUND).err


def test_a_break_is_refused_with_its_field_its_readers_and_the_next_step(
    sdm: Sdm, kit: Mesh, owner: Domain, write: Writes
) -> None:
    product, topic = owner.product()
    reader = kit.register_domain("registerread").application("app")
    owner.grant(product, reader.domain.request(product, reader.name), active=False)
    register = ("schema", "register", topic, write("x.avsc", '"long"'), "-d", owner.name)
    refused = sdm(*register, code=ExitCode.REFUSED)
    assert "refused (incompatible_schema)" in refused.err
    assert "string was written, long is read" in refused.err
    assert f"it is read by {reader.name}; " in refused.err
    assert "--major" in refused.err
    assert (refused.document["outcome"], refused.document["consumers"]) == ("breaks", [reader.name])
    assert {one["field"] for one in refused.document["breaks"]} == {"the value"}
    assert sdm("schema", "describe", topic).document["versions"] == [1]


def test_a_major_version_has_a_topic_and_a_product_of_its_own(
    sdm: Sdm, kit: Mesh, owner: Domain, write: Writes
) -> None:
    topic, as_owner = f"{owner.name}.{fresh('users')}", ("-d", owner.name)
    old = write(
        "old.avsc", {"type": "record", "name": "U", "fields": [{"name": "a", "type": "int"}]}
    )
    new = write(
        "new.avsc", {"type": "record", "name": "U", "fields": [{"name": "b", "type": "int"}]}
    )
    made = ("-p", "3", "--config", "retention.ms=7200000", "--schema", old, *as_owner)
    sdm("topic", "create", topic, *made)
    register_schema(kit.endpoints, f"{topic}-key", '"string"')
    kit.accepted(owner.publish(topic, topic, tags=["people"], version="1.4.0"))
    reader = kit.register_domain("registermajor", "west").application("app")
    owner.grant(topic, reader.domain.request(topic, reader.name), active=False)
    out = f"{owner.name}.{fresh('out')}"
    text = f"INSERT INTO `{out}` SELECT a FROM `{topic}`"
    kit.accepted(owner.say(StatementAdded, statement=out, sql=text, stream=topic, destination=out))
    register = ("schema", "register", topic, new, "--major", *as_owner)

    told = sdm(*register, "--dry-run").document
    assert {one["state"] for one in told["steps"]} == {"would be made"}
    assert "not_confirmed" in sdm(*register, code=ExitCode.REFUSED).err
    assert sdm("schema", "list", f"{topic}-v2").document == []

    told = sdm(*register, "--yes").document
    assert [(one["step"], one["name"]) for one in told["steps"]] == [
        ("schema", f"{topic}-v2-value"),
        ("schema", f"{topic}-v2-key"),
        ("topic", f"{topic}-v2"),
        ("product", f"{topic}-v2"),
    ]
    assert {one["state"] for one in told["steps"]} == {"made"}
    assert (told["version"], told["replaces"]) == (1, {"topic": topic, "product": topic})
    assert [(one["kind"], one["name"], one["cluster"]) for one in told["readers"]] == [
        ("application", reader.name, "west"),
        ("statement", out, "east"),
        ("link", f"{topic}@west", "west"),
    ]
    described = sdm("topic", "describe", f"{topic}-v2", *as_owner).document
    assert (described["partitions"], described["config"]["retention.ms"]) == (3, "7200000")
    before, after = (sdm("product", "describe", one).document for one in (topic, f"{topic}-v2"))
    for same in ("description", "owner", "quality", "sla", "tags"):
        assert after[same] == before[same], same
    assert (before["version"], after["version"]) == ("1.4.0", "2.0.0")
    assert after["schema_id"] == told["id"]

    again = sdm(*register).document
    assert again["outcome"] == "a major version already"
    assert {one["state"] for one in again["steps"]} == {"was there"}
    third = write("third.avsc", '"bytes"')
    third_topic = sdm("schema", "register", topic, third, "--major", "--dry-run", *as_owner)
    assert third_topic.document["topic"] == f"{topic}-v3"


@pytest.mark.parametrize("until", ["schema", "topic"])
def test_a_major_version_goes_on_where_it_was_broken_off(
    sdm: Sdm, mesh: Endpoints, kit: Mesh, owner: Domain, write: Writes, until: str
) -> None:
    product, topic = owner.product()
    register_schema(mesh, f"{topic}-v2-value", '"long"')
    if until == "topic":
        sdm("topic", "create", f"{topic}-v2", "-d", owner.name)
    register = ("schema", "register", topic, write("x.avsc", '"long"'), "-d", owner.name)
    told = sdm(*register, "--major", "--yes").document
    states = {one["step"]: one["state"] for one in told["steps"]}
    topics = "was there" if until == "topic" else "made"
    assert states == {"schema": "was there", "topic": topics, "product": "made"}
    assert (told["topic"], told["product"]) == (f"{topic}-v2", f"{product}-v2")
    assert kit.wait_for(lambda image: f"{product}-v2" in image.catalog, "it is published")


def test_a_number_that_something_else_has_is_left_out(
    sdm: Sdm, mesh: Endpoints, owner: Domain, write: Writes
) -> None:
    _, topic = owner.product()
    register_schema(mesh, f"{topic}-v2-value", '"bytes"')
    sdm("topic", "create", f"{topic}-v3", "-d", owner.name)
    register = ("schema", "register", topic, write("x.avsc", '"long"'), "-d", owner.name)
    assert sdm(*register, "--major", "--dry-run").document["topic"] == f"{topic}-v4"


def test_a_schema_that_breaks_nobody_is_no_major_version(
    sdm: Sdm, owner: Domain, write: Writes
) -> None:
    topic = owner.topic()
    for schema in ('"bytes"', '"string"'):
        register = ("schema", "register", topic, write("x.avsc", schema), "-d", owner.name)
        told = sdm(*register, "--major", "--yes", code=ExitCode.REFUSED).err
        assert "refused (not_breaking)" in told
    told = sdm(*register, "--major", "--shared", code=ExitCode.USAGE).err
    assert "leave out --shared" in told


def test_a_topic_whose_latest_schema_cannot_read_its_records_is_not_published(
    kit: Mesh, owner: Domain
) -> None:
    def schema(kind: str) -> str:
        fields = [{"name": "id", "type": "long"}, {"name": "total", "type": kind}]
        return json.dumps({"type": "record", "name": "Odd", "fields": fields})

    topic = owner.topic("odd", schema=schema("int"))
    subject = f"{topic}-value"
    registrar(kit.endpoints).set_compatibility(subject, "NONE")
    register_schema(kit.endpoints, subject, schema("string"))
    said = owner.publish(f"{owner.name}.{fresh('odd')}", topic)
    assert kit.code(said) == "incompatible_schema"
    decision: Any
    [decision] = kit.decisions(said.offset)
    assert "version 1" in decision.reason
    assert "total: int was written, string is read" in decision.reason
    # and once a version reads them all, it is
    register_schema(kit.endpoints, subject, schema("long"))
    registrar(kit.endpoints).delete_version(subject, 2)
    kit.accepted(owner.publish(f"{owner.name}.{fresh('odd')}", topic))


def test_a_statement_and_lineage_read_a_schema_that_refers_to_another(
    sdm: Sdm, kit: Mesh, owner: Domain, write: Writes
) -> None:
    topic, as_owner = order_topic(sdm, write, owner), ("-d", owner.name)
    sdm("topic", "produce", topic, *as_owner, stdin=json.dumps(SOLD))
    kit.accepted(owner.publish(topic, topic))
    out = f"{owner.name}.{fresh('out')}"
    columns = "id, price.units AS units, tip.currency AS tipped"
    text = f"INSERT INTO `{out}` SELECT {columns} FROM `{topic}`"
    sdm("streaming", "sql", "add", out, text, *as_owner, "--timeout", "240")

    def results() -> list[Any]:
        return [one["value"] for one in sdm("topic", "consume", out, *as_owner).lines]

    eventually(results, "the result is there")
    assert results() == [{"id": 1, "units": "19.99", "tipped": "USD"}]
    sdm("streaming", "sql", "delete", out, *as_owner)
    [price] = [one for one in told_fields(sdm, topic) if one["name"] == "price"]
    assert [one["name"] for one in price["fields"]] == ["units", "currency"]


def told_fields(sdm: Sdm, topic: str) -> list[dict[str, Any]]:
    """The fields of a topic as the lineage tells them."""
    for line in sdm("topic", "consume", "mesh.lineage").lines:
        event = json.loads(line["value"]) if isinstance(line["value"], str) else line["value"]
        for dataset in event.get("inputs", []):
            if dataset["name"] == topic and "schema" in dataset["facets"]:
                found: list[dict[str, Any]] = dataset["facets"]["schema"]["fields"]
                return found
    return []
