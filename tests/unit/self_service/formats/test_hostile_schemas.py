"""Schemas that are made to take memory or time: refused with a code, or bounded."""

import itertools
import json
from datetime import time
from decimal import Decimal
from typing import Any

import pytest

from mesh_events.errors import InvalidValueError, RefusedError
from mesh_events.schema.definition import Definition, Kind
from self_service.cli.schema.subjects import require_schema
from self_service.formats import json_rules
from self_service.formats.avro import Avro
from self_service.formats.field_walk import MOST_FIELDS
from self_service.formats.json_schema import JsonSchema
from self_service.formats.protobuf import Protobuf
from self_service.formats.schema import SchemaError, head

pytestmark = pytest.mark.timeout(60)
LEVELS = 40


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many are enough here, and take less time."""
    monkeypatch.setattr(json_rules, "MOST_STEPS", 5_000)


def doubling(keyword: str, **end: Any) -> dict[str, Any]:
    """Each definition refers to the next one twice."""
    definitions: dict[str, Any] = {
        f"d{number}": _twice(keyword, f"#/definitions/d{number + 1}") for number in range(LEVELS)
    }
    return {"$ref": "#/definitions/d0", "definitions": {**definitions, f"d{LEVELS}": end}}


def _twice(keyword: str, target: str) -> dict[str, Any]:
    inner = {"$ref": target}
    if keyword == "properties":
        return {"properties": {"a": inner, "b": inner}}
    return {keyword: [inner, inner]}


def nested(levels: int) -> str:
    return '{"not":' * levels + "{}" + "}" * levels


REFUSED = [
    (nested(10_000), "schema_too_large", "levels"),
    (nested(150), "schema_too_large", "levels"),
    ('{"enum": [' + "[" * 100_000 + "]" * 100_000 + "]}", "schema_too_large", "levels"),
    (json.dumps({"enum": ["x" * 1_048_576]}), "schema_too_large", "characters"),
    (json.dumps({"enum": [f"{one:09}" for one in range(50_000)]}), "schema_too_large", "values"),
    (json.dumps({"enum": [{"a": one} for one in range(9_000)]}), "schema_too_large", "values"),
    (json.dumps({"required": ["a", 1, *map(str, range(9_000))]}), "schema_too_large", "values"),
    (
        json.dumps({"properties": {f"p{one}": {} for one in range(20_000)}}),
        "schema_too_large",
        "objects",
    ),
    (json.dumps({"properties": {"p" * 201: {}}}), "schema_too_large", "name"),
    (
        json.dumps({"patternProperties": {f"p{one}": True for one in range(1_001)}}),
        "schema_too_large",
        "1000 patterns",
    ),
    (json.dumps({"pattern": "(?=a)a"}), "unsupported_pattern", "RE2"),
    (json.dumps({"items": {"pattern": "a" * 1_001}}), "unsupported_pattern", "items"),
    (json.dumps({"patternProperties": {r"(a)\1": {}}}), "unsupported_pattern", "RE2"),
    (json.dumps({"properties": {"p": {"pattern": "a{1001}"}}}), "unsupported_pattern", "p, "),
    (
        json.dumps({"patternProperties": {"a": {}}, "unevaluatedProperties": False}),
        "schema_not_usable",
        "additionalProperties",
    ),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED, ids=range(len(REFUSED)))
def test_a_json_schema_beyond_the_limits_is_refused(text: str, code: str, words: str) -> None:
    with pytest.raises(RefusedError, match=f"order.json: .*{words}") as refused:
        require_schema(Definition(Kind.JSON, text), {}, "order.json")
    assert refused.value.code == code
    assert len(str(refused.value)) < 500
    # the same in a schema that another one refers to
    with pytest.raises(SchemaError, match=words):
        JsonSchema('{"$ref": "other.json"}', {"other.json": text})


def test_names_that_are_keywords_and_values_that_are_no_schemas_are_taken() -> None:
    JsonSchema(
        json.dumps(
            {
                "properties": {"pattern": {"type": "string"}, "patternProperties": {"enum": ["("]}},
                "default": {"pattern": "(", "$schema": "x"},
                "const": {"patternProperties": {"(": 1}},
            }
        ),
        {},
    )


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "properties"])
def test_references_that_double_are_followed_for_bounded_time(keyword: str) -> None:
    made = JsonSchema(json.dumps(doubling(keyword, type="integer")), {})
    assert len(made.fields()) <= MOST_FIELDS
    datum: Any = "x"
    for _ in range(20 if keyword == "properties" else 0):
        datum = {"a": datum, "b": datum}
    with pytest.raises(InvalidValueError):
        made.encoded(7, datum)
    assert made.decoded(b"\0" * 5 + b'{"a": {"b": 1}}').value == {"a": {"b": 1}}


def test_checking_a_value_ends_with_the_reason() -> None:
    made = JsonSchema(json.dumps(doubling("allOf", type="integer")), {})
    assert "takes more than" in made.decoded(b"\0" * 5 + b"1").misfit
    # the next value is counted by itself
    assert "takes more than" not in JsonSchema("{}", {}).decoded(b"\0" * 5 + b"1").misfit


def test_a_dialect_in_a_part_of_a_schema_changes_no_limit() -> None:
    inner = {"$schema": "http://json-schema.org/draft-07/schema#", **doubling("allOf")}
    made = JsonSchema(json.dumps(inner), {})
    assert "takes more than" in made.decoded(b"\0" * 5 + b"1").misfit
    other = JsonSchema('{"$ref": "other.json"}', {"other.json": json.dumps(inner)})
    assert "takes more than" in other.decoded(b"\0" * 5 + b"1").misfit


@pytest.mark.parametrize(
    "reference", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"items": {"$ref": "#"}}]
)
def test_a_schema_that_refers_to_itself_ends(reference: dict[str, Any]) -> None:
    made = JsonSchema(json.dumps(reference), {})
    assert made.fields() == []
    if "items" in reference:
        assert made.decoded(b"\0" * 5 + b"[[1]]").misfit == ""
    else:
        assert "levels" in made.decoded(b"\0" * 5 + b"[[1]]").misfit


@pytest.mark.parametrize(
    ("schema", "datum"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 60_000 + "!"),
        ({"pattern": "a"}, "\ud800"),
        (
            {"additionalProperties": False, "patternProperties": {"^(a+)+$": {}}},
            {"a" * 99 + "!": 1},
        ),
        ({"additionalProperties": {"type": "null"}}, {"a": 1}),
        ({"patternProperties": {"^(a|aa)+$": {"type": "null"}}}, {"a" * 99: 1}),
        ({"uniqueItems": True}, [{"a": one} for one in range(2_000)] + [{"a": 7.0}]),
        ({"uniqueItems": True}, [[True], [1], [True]]),
    ],
)
def test_a_value_that_is_made_to_take_long_does_not_fit(schema: Any, datum: Any) -> None:
    with pytest.raises(InvalidValueError):
        JsonSchema(json.dumps(schema), {}).encoded(7, datum)


@pytest.mark.parametrize(
    ("schema", "datum"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 60_000),
        ({"pattern": "b"}, "abc"),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}]),
        ({"additionalProperties": False, "patternProperties": {"^a": {}}}, {"ab": 1}),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"a": 1}),
    ],
)
def test_a_value_that_fits_is_taken(schema: Any, datum: Any) -> None:
    made = JsonSchema(json.dumps(schema), {})
    assert made.decoded(made.encoded(7, datum)).misfit == ""


def proto(body: str) -> str:
    return f'syntax = "proto3"; package p; {body}'


def test_messages_that_use_each_other_twice_are_listed_to_a_limit() -> None:
    body = "".join(
        f"message M{one} {{ M{one + 1} a = 1; M{one + 1} b = 2; }}" for one in range(LEVELS)
    )
    found = Protobuf(proto(f"{body} message M{LEVELS} {{ int32 x = 1; }}"), {}).fields()
    assert 0 < len(found) <= MOST_FIELDS


def test_a_long_enum_is_cut_where_its_fields_are_listed() -> None:
    members = "".join(f"V{one} = {one};" for one in range(5_000))
    uses = "".join(f"E f{one} = {one};" for one in range(1, 2_000))
    found = Protobuf(proto(f"enum E {{ {members} }} message M {{ {uses} }}"), {}).fields()
    assert max(len(one.type) for one in found) < 1_200


NOT_COMPILED = [
    proto("message A {" * 10_000 + "}" * 10_000),
    proto("// " + "x" * 1_000_000),
    "a" + " " * 400_000 + "!",
    "A" * 400_000 + "=" * 400_000 + "!",
]


@pytest.mark.parametrize("text", NOT_COMPILED, ids=range(len(NOT_COMPILED)))
def test_a_proto_file_beyond_the_limits_is_refused(text: str) -> None:
    with pytest.raises(SchemaError) as refused:
        Protobuf(text, {})
    assert len(str(refused.value)) < 2_000


def test_imports_count_as_a_part_of_a_proto_file() -> None:
    many = {f"{one}.proto": proto("// " + "x" * 100_000) for one in range(11)}
    uses = "".join(f'import "{name}";' for name in itertools.islice(many, 11))
    with pytest.raises(RefusedError, match="characters") as refused:
        require_schema(Definition(Kind.PROTOBUF, proto(uses)), many, "order.proto")
    assert refused.value.code == "schema_too_large"


def test_a_value_that_nests_thousands_of_times_is_told_and_ends_no_process() -> None:
    """Five kilobytes ended whoever read the topic."""
    node = {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "R"]}]}
    schema = Avro(json.dumps(node))
    nested = schema.decoded(head(1) + b"\x02" * 50 + b"\0").value
    assert json.dumps(nested).count('"n"') == 51
    with pytest.raises(ValueError, match="nests types within themselves too often"):
        schema.decoded(head(1) + b"\x02" * 200_000 + b"\0")


@pytest.mark.parametrize("size", [0, 20])
def test_a_decimal_with_more_digits_than_declared_is_told_and_not_rounded(size: int) -> None:
    kind: dict[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    if size:
        kind |= {"type": "fixed", "name": "F", "size": size}
    schema = Avro(json.dumps(kind))

    def value(number: int) -> bytes:
        width = size or (number.bit_length() + 8) // 8
        data = number.to_bytes(width, "big", signed=True)
        return head(1) + (data if size else bytes([2 * len(data)]) + data)

    for number in (0, 7, -(10**10) + 1, 10**10 - 1):
        assert schema.decoded(value(number)).value == Decimal(number) / 100
    for number in (10**10, -(10**10), 2**64 + 123):
        with pytest.raises(ValueError, match="more digits than its schema allows"):
            schema.decoded(value(number))


@pytest.mark.parametrize(("kind", "day"), [("int", 86_400_000), ("long", 86_400_000_000)])
def test_a_time_of_day_that_is_none_is_told_and_not_another_one(kind: str, day: int) -> None:
    name = "time-millis" if kind == "int" else "time-micros"
    times, numbers = Avro(json.dumps({"type": kind, "logicalType": name})), Avro(f'"{kind}"')
    assert times.decoded(numbers.encoded(1, 0)).value == time(0)
    last = times.decoded(numbers.encoded(1, day - 1)).value
    assert last.replace(microsecond=0) == time(23, 59, 59)
    for number in (-1, -day, day, 2**31 - 1 if kind == "int" else 2**63 - 1):
        with pytest.raises(ValueError, match="a time of day is below 0:00"):
            times.decoded(numbers.encoded(1, number))


def test_a_decimal_of_a_megabyte_is_not_calculated() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    long = b"\x80\x80\x80\x01" + b"\x01" * 2**20
    with pytest.raises(ValueError, match="more digits than its schema allows"):
        Avro(json.dumps(kind)).decoded(head(1) + long)
