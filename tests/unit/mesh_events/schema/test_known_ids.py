"""Ids of the mesh's own schemas, which a home keeps."""

import json
from pathlib import Path

import pytest

from mesh_events.errors import InfrastructureError
from mesh_events.intents import DomainFrozen
from mesh_events.schema import known_ids
from mesh_events.schema.known_ids import KnownIds
from mesh_events.schema.registry import Registry

NOWHERE = "http://127.0.0.1:1"
NAME = DomainFrozen.type_name()


def test_an_id_that_the_home_knows_is_not_asked_of_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownIds(tmp_path / "ids", "root", NOWHERE)
    with pytest.raises(InfrastructureError):
        Registry(NOWHERE, known=known).schema_id(NAME)
    registry = Registry(NOWHERE, known=known)
    monkeypatch.setattr(registry, "_looked_up", lambda *_: 7)
    assert registry.schema_id(NAME) == 7
    # another process finds it
    assert Registry(NOWHERE, known=KnownIds(tmp_path / "ids", "root", NOWHERE)).schema_id(NAME) == 7


def test_an_id_is_of_one_mesh_one_registry_and_one_text(tmp_path: Path) -> None:
    known = KnownIds(tmp_path / "ids", "root", NOWHERE)
    known.add("subject", "text", 7)
    assert known.find("subject", "text") == 7
    assert known.find("subject", "other") is None
    assert known.find("other", "text") is None
    assert KnownIds(tmp_path / "ids", "other", NOWHERE).find("subject", "text") is None
    assert KnownIds(tmp_path / "ids", "root", "http://else").find("subject", "text") is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 100_000, '{"a": "b"}', "\\xff"])
def test_a_file_that_holds_something_else_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ids"
    path.write_text(text)
    known = KnownIds(path, "root", NOWHERE)
    assert known.find("subject", "text") is None
    known.add("subject", "text", 7)
    assert known.find("subject", "text") == 7


def test_a_home_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    known = KnownIds(tmp_path / "file" / "ids", "root", NOWHERE)
    known.add("subject", "text", 7)
    assert known.find("subject", "text") is None


def test_the_file_does_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_ids, "MOST", 3)
    known = KnownIds(tmp_path / "ids", "root", NOWHERE)
    for number in range(10):
        known.add("subject", str(number), number)
        assert known.find("subject", str(number)) == number
    assert len(json.loads((tmp_path / "ids").read_text())) <= 3
