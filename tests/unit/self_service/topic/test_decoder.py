"""Records of a topic as they are shown: by the schemas that they name, whatever the bytes are."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events.errors import InfrastructureError
from mesh_events.schema.definition import Definition, Kind, Reference
from self_service.cli.topic.record_view import Decoder, Shown, note_misfits

PROTO = 'syntax = "proto3"; import "b.proto"; message A { int64 n = 1; B b = 2; }'
SCHEMAS = {
    1: Definition(Kind.AVRO, '"string"'),
    2: Definition(Kind.JSON, json.dumps({"properties": {"n": {"type": "integer"}}})),
    3: Definition(Kind.PROTOBUF, PROTO, (Reference("b.proto", "b", 1),)),
    4: Definition(Kind.PROTOBUF, "message {"),
    5: Definition("XML", "<a/>"),
    6: Definition(Kind.PROTOBUF, PROTO, (Reference("b.proto", "gone", 1),)),
}


class Registry:
    def __init__(self) -> None:
        self.asked: list[int] = []
        self.down = False

    def definition(self, schema_id: int) -> Definition:
        self.asked.append(schema_id)
        if self.down or schema_id not in SCHEMAS:
            raise InfrastructureError("no schema", retriable=self.down)
        return SCHEMAS[schema_id]

    def imports(self, schema: Definition) -> dict[str, str]:
        if any(one.subject == "gone" for one in schema.references):
            raise InfrastructureError("reading version 1 of gone", retriable=False)
        return {one.name: 'syntax = "proto3"; message B {}' for one in schema.references}


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def decoder(registry: Registry) -> Decoder:
    mesh: Any = SimpleNamespace(registry=registry)
    return Decoder(mesh)


def named(schema_id: int, rest: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + rest


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, Shown(None)),
        (b"", Shown("")),
        (b"text", Shown("text")),
        (b'{"a": 1}', Shown({"a": 1})),
        (b"\0\0\0", Shown("\0\0\0")),
        (named(1, b"\x02a"), Shown("a", 1)),
        (named(2, b'{"n": 5}'), Shown({"n": 5}, 2)),
        (named(3, b"\x00\x08\x05"), Shown({"n": 5}, 3)),
        # nobody knows what the number means, if it is one
        (named(99, b"\xff"), Shown("0x0000000063ff")),
    ],
)
def test_a_record_is_read_by_the_schema_that_it_names(
    decoder: Decoder, data: bytes | None, expected: Shown
) -> None:
    assert decoder.value(data) == expected


@pytest.mark.parametrize(
    ("data", "value", "why"),
    [
        (named(1, b"\x09"), "\x00\x00\x00\x00\x01\t", "it does not fit schema 1: "),
        (named(1, b"\x02ab"), "\x00\x00\x00\x00\x01\x02ab", "bytes follow the Avro body"),
        (named(2, b'{"n": "x"}'), {"n": "x"}, "schema 2: n: 'x' is not of type 'integer'"),
        (named(2, b"{"), "\x00\x00\x00\x00\x02{", "it does not fit schema 2: "),
        (named(2, b"[" * 70 + b"]" * 70), None, "it has too many levels"),
        (named(3, b"\x00\x08"), "\x00\x00\x00\x00\x03\x00\x08", "schema 3: it is no A"),
        (named(3, b"\x00\x08\x01\x30\x01"), {"n": 1}, "no fields number 6"),
        (named(4, b"\x00"), "\x00\x00\x00\x00\x04\x00", "its schema 4 cannot be used: "),
        (named(5, b"a"), "\x00\x00\x00\x00\x05a", "schemas of type XML are not read"),
        (named(6, b"a"), "\x00\x00\x00\x00\x06a", "reading version 1 of gone"),
    ],
)
def test_a_record_that_does_not_fit_is_told_and_shown_as_far_as_it_goes(
    decoder: Decoder, data: bytes, value: Any, why: str
) -> None:
    found = decoder.value(data)
    assert value is None or found.value == value
    assert found.schema_id is None
    assert why in found.misfit


def test_each_schema_is_asked_for_once(decoder: Decoder, registry: Registry) -> None:
    for data in (named(3, b"\x00"), named(4, b"\x00"), named(99, b"x")) * 3:
        decoder.value(data)
    # what is not there yet may come
    assert registry.asked == [3, 4, 99, 99, 99]


def test_a_registry_that_is_down_is_no_misfit(decoder: Decoder, registry: Registry) -> None:
    registry.down = True
    with pytest.raises(InfrastructureError):
        decoder.value(named(1, b"\x02a"))
    registry.down = False
    assert decoder.value(named(1, b"\x02a")) == Shown("a", 1)


def test_misfits_are_said_with_their_place(
    decoder: Decoder, capsys: pytest.CaptureFixture[str]
) -> None:
    message: Any = SimpleNamespace(
        topic=lambda: "t",
        partition=lambda: 0,
        offset=lambda: 7,
        timestamp=lambda: (1, 0),
        key=lambda: named(1, b"\x02a"),
        value=lambda: named(2, b'{"n": "x"}'),
    )
    found = decoder.document(message, headers=False)
    assert (found["key_schema"], found["value_schema"]) == (1, None)
    note_misfits(found)
    said = capsys.readouterr().err
    assert said == "0@7, value: it does not fit schema 2: n: 'x' is not of type 'integer'\n"
