"""A connector's config as a person gives it."""

import re
from pathlib import Path

import pytest

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET
from mesh_events.errors import InvalidValueError
from projections.connectors.config import DEAD_LETTERS, captured, filled, foreign_references
from projections.connectors.tables import slot_of
from self_service.cli.connect import jdbc_sink
from self_service.cli.connect.config import read
from self_service.cli.connect.databases import Database, address_of
from self_service.cli.connect.debezium import config, outbox
from self_service.cli.connect.jdbc_sink import Key

SOURCE = Database("127.0.0.1", 5432, "postgres", "east", is_shared=True)


def test_each_table_becomes_a_topic_of_the_domain() -> None:
    found = config("east.shop", ["users", "sales.orders"], SOURCE)
    assert found["table.include.list"] == "public.users,sales.orders"
    route = re.compile(found["transforms.route.regex"])
    replacement = found["transforms.route.replacement"].replace("$1", r"\1")
    topic = f"{found['topic.prefix']}.public.users"
    assert route.fullmatch(topic)
    assert route.sub(replacement, topic) == "east.users"
    assert [one.topic for one in captured(found)] == ["east.users", "east.orders"]
    assert found["slot.name"] == "sdm_east_shop"
    assert found["database.password"] == SHARED_SECRET
    other = Database("db", 5432, "u", "d", is_shared=False)
    assert config("east.shop", ["users"], other)["database.password"] == OWN_SECRET


def test_the_slots_of_connectors_with_long_names_are_apart() -> None:
    long = "e" * 60
    slots = {slot_of(f"{long}.{name}") for name in ("shop", "store")}
    assert len(slots) == 2
    assert all(re.fullmatch("[a-z0-9_]{1,63}", slot) for slot in slots)


def test_an_outbox_is_routed_below_the_domains_prefix() -> None:
    found = outbox("east.events", "outbox", SOURCE)
    assert found["transforms.outbox.route.topic.replacement"] == "east.${routedByValue}"
    assert not [name for name in found if name.startswith("transforms.route")]
    assert not foreign_references(found)
    assert not captured(found)


@pytest.mark.parametrize("table", ["x,y", "a.b.c", '"x"', ""])
def test_a_name_that_is_no_table_is_refused(table: str) -> None:
    with pytest.raises(InvalidValueError):
        config("east.shop", [table], SOURCE)


def test_a_sink_writes_each_topic_into_its_table_and_keeps_what_it_cannot() -> None:
    found = jdbc_sink.config("east.report", ["east.users"], SOURCE, Key.RECORD)
    assert [one.name for one in filled(found)] == ["east.public.east_users"]
    assert found[DEAD_LETTERS] == "east.report.dead"
    assert (found["primary.key.mode"], found["delete.enabled"]) == ("record_key", "true")
    by_position = jdbc_sink.config("east.report", ["east.users"], SOURCE, Key.POSITION)
    assert by_position["primary.key.mode"] == "record_value"
    columns = by_position["primary.key.fields"].split(",")
    assert columns == ["__connect_topic", "__connect_partition", "__connect_offset"]


@pytest.mark.parametrize(
    ("text", "expected"), [("db", ("db", 5432)), ("db:1", ("db", 1)), ("db:65535", ("db", 65535))]
)
def test_an_address_is_a_host_and_perhaps_a_port(text: str, expected: tuple[str, int]) -> None:
    assert address_of(text) == expected


@pytest.mark.parametrize("text", ["", ":1", "db:", "db:0", "db:65536", "db:-1", "db:x", "db:1:2"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="port 1 to 65535"):
        address_of(text)


@pytest.mark.parametrize(
    "text", ["tasks.max: 1\nx: true\n", '{"name": "n", "config": {"tasks.max": 1, "x": true}}']
)
def test_a_config_file_is_yaml_or_connects_own_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "connector"
    path.write_text(text)
    assert read(path) == {"tasks.max": "1", "x": "true"}


VALUES = {
    "0123": "0123",
    "12:30:00": "12:30:00",
    "1.10": "1.10",
    "12_000": "12_000",
    "1e3": "1e3",
    "0x1F": "0x1F",
    ".inf": ".inf",
    "2026-01-31": "2026-01-31",
    "yes": "yes",
    "no": "no",
    "=": "=",
    "True": "true",
    "false": "false",
    '"True"': "True",
    '""': "",
    '"null"': "null",
    "!!str 5": "5",
}


@pytest.mark.parametrize("value", VALUES)
def test_a_setting_in_a_file_is_the_text_that_stands_there(value: str, tmp_path: Path) -> None:
    path = tmp_path / "connector"
    path.write_text(f"x: {value}\n0123: {value}\n")
    assert read(path) == {"x": VALUES[value], "0123": VALUES[value]}


def test_settings_may_be_merged_in(tmp_path: Path) -> None:
    path = tmp_path / "connector"
    path.write_text("config:\n  <<: {a: 1, b: 010}\n  a: 2\n")
    assert read(path) == {"a": "2", "b": "010"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x: null", "x is null"),
        ("x:", "x is null"),
        ("x: ~", "x is null"),
        ('{"x": null}', "x is null"),
        ("x: [a, b]", "x is not a string"),
        ('{"x": {"y": 1}}', "x is not a string"),
        ("x: !!int 5", "x is not a string"),
        ("~: 1", "a setting whose name is not a string"),
        ("x: 1\ny: 2\nx: 3", "has a duplicate name .line 3, column 1"),
        ('{"config": {"x": 1, "x": 1}}', "has a duplicate name"),
        ("? [a]\n: b", "is not YAML"),
    ],
)
def test_a_setting_that_is_no_text_is_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "connector"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=f"{path}.*{why}"):
        read(path)


@pytest.mark.parametrize("text", ["", "- a", "a: [", "just text"])
def test_a_file_without_settings_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "connector.yaml"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=r"connector\.yaml"):
        read(path)


@pytest.mark.parametrize("text", ["root:$6$hash:19000:\nsecond: [hash", "hash", "a: 'hash"])
def test_what_stands_in_a_file_of_something_else_is_not_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_text(text)
    with pytest.raises(InvalidValueError) as told:
        read(path)
    assert "hash" not in str(told.value)
