"""The contract as files: every type through Avro, every file up to date, every field explained."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mesh_events import avro, codec
from mesh_events.decisions import SchemaIntroduced
from mesh_events.meta import Event
from mesh_events.vocabulary import ALL, EVENTS, ROW_TYPES
from tests.memory_log import SCHEMA_IDS, MemoryLog, key, record_of
from tests.unit.mesh_events.values import any_of

SCHEMAS = dict(MemoryLog().image.schemas)
COMMAND = "the types and schemas/avro differ: run `python -m mesh_events.avro write`"


@pytest.mark.parametrize("name", EVENTS)
@given(data=st.data())
def test_every_event_survives_the_log(name: str, data: st.DataObject) -> None:
    event: Event = data.draw(any_of(EVENTS[name]))
    wire = codec.encode(event, SCHEMA_IDS[name], key("east"), key("root").public)
    if len(wire.value) < 500_000:
        entry = codec.decode(record_of(wire, 9, 900), SCHEMAS, key("root").public)
        assert entry.event == event
        assert entry.signer == key("east").public


@pytest.mark.parametrize("name", ROW_TYPES)
@given(data=st.data())
def test_every_row_survives_its_topic(name: str, data: st.DataObject) -> None:
    row = data.draw(any_of(ROW_TYPES[name]))
    value = codec.frame(5, avro.text_of(name), row.model_dump())
    assert codec.schema_id_of(value) == 5
    assert codec.build(ROW_TYPES[name], codec.unframe(value, avro.text_of(name))) == row


def test_the_committed_schemas_are_those_of_the_types() -> None:
    assert avro.differences() == [], COMMAND
    assert set(avro.committed()) == set(ALL)


def test_the_command_tells_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert avro.main(["check"]) == 0
    assert avro.main(["dance"]) == 2
    assert "write|check" in capsys.readouterr().err


def test_missing_stale_and_foreign_files_are_found_and_repaired(tmp_path: Path) -> None:
    assert avro.write(tmp_path) == sorted(ALL)
    (tmp_path / "AccessGranted.avsc").unlink()
    (tmp_path / "Danced.avsc").write_text("{}", "utf-8")
    stale = json.loads((tmp_path / "LinkPaused.avsc").read_text("utf-8"))
    stale["fields"].pop()
    (tmp_path / "LinkPaused.avsc").write_text(json.dumps(stale), "utf-8")
    assert sorted(avro.differences(tmp_path)) == [
        "AccessGranted has no schema file",
        "Danced.avsc has no type in mesh_events",
        "LinkPaused.avsc differs from the type",
    ]
    assert avro.write(tmp_path) == ["AccessGranted", "Danced", "LinkPaused"]
    assert avro.differences(tmp_path) == []


def explained(schema: Any, path: str) -> Iterator[tuple[str, str | None]]:
    """(path, doc) of every record, field and enum."""
    if isinstance(schema, list):
        for branch in schema:
            yield from explained(branch, path)
    if not isinstance(schema, dict):
        return
    if schema["type"] in ("record", "enum"):
        yield path, schema.get("doc")
    for field in schema.get("fields", []):
        yield f"{path}.{field['name']}", field.get("doc")
        yield from explained(field["type"], f"{path}.{field['name']}")
    yield from explained(schema.get("items", schema.get("values")), path)


@pytest.mark.parametrize("name", ALL)
def test_every_record_and_field_is_explained(name: str) -> None:
    schema = json.loads(avro.committed()[name])
    docs = dict(explained(schema, name))
    assert len(docs) > len(schema["fields"])
    assert [path for path, doc in docs.items() if not doc or len(doc) < 5] == []


@pytest.mark.parametrize("name", ALL)
def test_no_schema_depends_on_another_file(name: str) -> None:
    """A consumer needs one file: named types are defined where they are first used."""
    assert avro.parsed(json.dumps(json.loads(avro.committed()[name])))["name"] == f"mesh.{name}"


def test_a_schema_text_is_known_by_its_fingerprint() -> None:
    texts = [avro.text_of(name) for name in ALL]
    assert len({avro.fingerprint(text) for text in texts}) == len(texts)
    assert avro.fingerprint("") == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert avro.subject("LinkPaused") == "mesh.LinkPaused"


def test_a_type_that_avro_cannot_hold_is_refused_by_name() -> None:
    class Odd(BaseModel):
        """A type with a field that has no Avro form."""

        share: complex

    with pytest.raises(TypeError, match="complex"):
        avro.derive(Odd)


def test_the_schema_of_introductions_never_changes() -> None:
    """Every log begins with it, before anything could say how to read it."""
    fields = [(field["name"], field["type"]) for field in avro.derive(SchemaIntroduced)["fields"]]
    assert fields[1:] == [
        ("schema_id", "long"),
        ("name", "string"),
        ("fingerprint", "string"),
        ("schema_text", "string"),
    ]
    meta = [(field["name"], field["type"]) for field in fields[0][1]["fields"]]
    assert meta == [
        ("id", "string"),
        ("time", {"type": "long", "logicalType": "timestamp-millis"}),
        ("actor", "string"),
        ("domain", "string"),
        ("correlation", "string"),
        ("causation", ["null", "string"]),
        ("producer", "string"),
    ]
