"""A product is published only with a schema whose patterns and size every reader can work with."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema

from processors.controllers.checks.findings import Finding, schema_registered
from tests.unit.mesh_events.schema.test_registry import registry

PHONE = {"type": "string", "logicalType": "validatedString"}


def avro(pattern: str, *beside: str) -> Any:
    phone: Any = {**PHONE, "pattern": pattern}
    fields = [{"name": "phone", "type": [*beside, phone] if beside else phone}]
    return {"type": "record", "name": "R", "fields": fields}


def checked(kind: str, text: str) -> Finding:
    return schema_registered("east.t", registry(**{"east.t-value": [Schema(text, kind)]}))


def nested(levels: int) -> Any:
    found: Any = {}
    for _ in range(levels):
        found = {"not": found}
    return found


REFUSED = [
    ("AVRO", avro(r"(a)\1"), "unsupported_pattern", "the pattern of phone"),
    ("AVRO", avro("(?=a)a"), "unsupported_pattern", "the pattern of phone"),
    ("AVRO", avro("a", "null", "int"), "unsupported_pattern", "union of several types"),
    ("JSON", {"properties": {"p": {"pattern": "a*+"}}}, "unsupported_pattern", "properties.p"),
    ("JSON", nested(200), "schema_too_large", "128 levels"),
    ("JSON", {"enum": list(range(501))}, "schema_too_large", "501 values"),
    ("PROTOBUF", "x" * 1_000_001, "schema_too_large", "characters"),
]


@pytest.mark.parametrize(("kind", "schema", "code", "words"), REFUSED, ids=range(len(REFUSED)))
def test_a_schema_that_readers_cannot_work_with_fails_the_check(
    kind: str, schema: Any, code: str, words: str
) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    found = checked(kind, text)
    assert (found.code, words in found.reason) == (code, True)
    assert "east.t-value" in found.reason
    assert "publish again" in found.reason


def test_text_that_is_no_json_fails_the_check() -> None:
    assert checked("JSON", "{").code == "schema_not_usable"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", json.dumps(avro("(a+)+$"))),
        ("AVRO", json.dumps(avro("a", "null"))),
        ("JSON", '{"pattern": "^(a+)+$"}'),
        ("PROTOBUF", 'syntax = "proto3";'),
    ],
)
def test_a_schema_that_readers_can_work_with_passes(kind: str, text: str) -> None:
    found = checked(kind, text)
    assert found.code == ""
