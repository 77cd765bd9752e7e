"""A check quotes schemas; what it finds must fit the log, however much of them there is."""

import json
from typing import Any

import pytest

from mesh_events.meta import LONGEST_REASON
from mesh_events.statements import StatementAdded
from mesh_events.topics import MAX_RECORD_BYTES
from tests.integration.governance.conftest import Scene
from tests.integration.sql.records import record
from tests.kafka_client import register_schema

pytestmark = pytest.mark.platform
LEVELS, LEAVES, COLUMNS = 20, 300, 8000


def nested(leaf: str) -> dict[str, Any]:
    """Fields by paths of some thousand letters."""
    inner = record("Leaf", **{f"f{number}": leaf for number in range(LEAVES)})
    for level in range(LEVELS):
        inner = record(f"Level{level}", **{f"{'long' * 100}{level}": inner})
    return inner


def incompatible(scene: Scene) -> str:
    """A topic whose last schema cannot read records of the first, at very many places."""
    optional = {"name": "more", "type": ["null", nested("string")], "default": None}
    versions = (
        record("Root", id="int", more=["null", nested("int")]),
        record("Root", id="int"),
        record("Root", id="int") | {"fields": [{"name": "id", "type": "int"}, optional]},
    )
    topic = scene.owner.topic("deep", schema=None)
    for schema in versions:
        register_schema(scene.kit.endpoints, f"{topic}-value", json.dumps(schema))
    return topic


def appended_since(scene: Scene, offset: int) -> list[int]:
    """Bytes of the log's records from an offset on."""
    scene.kit.image()
    return [len(one.value or b"") for at, one in scene.kit.records.items() if at > offset]


def test_a_schema_with_very_many_breaks_is_refused_in_a_short_reason(scene: Scene) -> None:
    kit, owner = scene.kit, scene.owner
    receipt = owner.publish(f"{owner.name}.deep", incompatible(scene))
    found = kit.decided(receipt.offset)
    assert found.code == "incompatible_schema"  # type: ignore[attr-defined]
    assert "long" in found.reason  # type: ignore[attr-defined]
    assert len(found.reason) <= LONGEST_REASON + 1  # type: ignore[attr-defined]
    assert max(appended_since(scene, receipt.offset)) < MAX_RECORD_BYTES // 8


def test_a_statement_over_very_many_columns_is_refused_in_a_short_reason(scene: Scene) -> None:
    kit, owner = scene.kit, scene.owner
    fields = {f"{'column' * 12}{number}": "int" for number in range(COLUMNS)}
    topic = owner.topic("wide", schema=json.dumps(record("Wide", **fields)))
    receipt = owner.say(
        StatementAdded,
        statement=f"{owner.name}.wide",
        sql="SELECT * FROM wide",
        stream=topic,
        destination=f"{owner.name}.narrow",
        names={"wide": topic},
    )
    found = kit.decided(receipt.offset)
    assert found.code == "schema_too_large"  # type: ignore[attr-defined]
    assert "12000" in found.reason  # type: ignore[attr-defined]
    records = appended_since(scene, receipt.offset)
    assert max(records) < MAX_RECORD_BYTES // 8
    assert len(records) < 100
