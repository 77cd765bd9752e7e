"""JSON Schema records: a head, and JSON text; what a schema does not allow is told by field."""

import json
from typing import Any

import pytest

from mesh_events.errors import InvalidValueError
from mesh_events.schema.compatibility import Field
from self_service.formats.json_numbers import parsed, written
from self_service.formats.json_schema import JsonSchema
from self_service.formats.schema import Decoded, SchemaError

HEAD = b"\x00\x00\x00\x00\x07"
LINE = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "description": "what it is known by"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "state": {"enum": ["NEW", "PAID"]},
        "at": {"type": "string", "format": "date-time"},
        "total": {"$ref": "money.json"},
        "rank": {"type": ["null", "integer"], "default": None},
        "prices": {"type": "object", "additionalProperties": {"$ref": "#/definitions/line"}},
    },
    "required": ["id"],
    "definitions": {"line": LINE},
}
MONEY = {
    "$id": "http://shop.example/common/money.json",
    "type": "object",
    "properties": {"units": {"type": "integer"}, "unit": {"$ref": "unit.json"}},
}
UNIT = {"enum": ["EUR", "USD"]}
IMPORTS = {"money.json": json.dumps(MONEY), "unit.json": json.dumps(UNIT)}


def schema(**more: Any) -> JsonSchema:
    return JsonSchema(json.dumps({**ORDER, **more}), IMPORTS)


def test_a_record_that_fits_is_its_json() -> None:
    datum = {"id": 2**60, "lines": [{"sku": "é"}], "total": {"units": 5, "unit": "EUR"}}
    text = json.dumps(datum, ensure_ascii=False).encode()
    assert schema().decoded(HEAD + text) == Decoded(datum)
    assert schema().encoded(7, datum) == HEAD + text


@pytest.mark.parametrize(
    ("datum", "why"),
    [
        ({}, "the value: 'id' is a required property"),
        ({"id": "x"}, "id: 'x' is not of type 'integer'"),
        ({"id": 1, "lines": [{"sku": "a"}, {"sku": 2}]}, r"lines\[1\].sku: 2 is not of type"),
        ({"id": 1, "state": "GONE"}, "state: 'GONE' is not one of"),
        ({"id": 1, "total": {"units": "5"}}, "total.units: '5' is not of type 'integer'"),
        ({"id": 1, "total": {"unit": "GBP"}}, "total.unit: 'GBP' is not one of"),
        ([], "the value: .* is not of type 'object'"),
        ({"id": {"a": "b" * 1000}}, "id: .{10,120} ... .{10,120} is not of type 'integer'"),
    ],
)
def test_what_the_schema_does_not_allow_is_shown_and_told(datum: Any, why: str) -> None:
    found = schema().decoded(HEAD + json.dumps(datum).encode())
    assert found.value == datum
    assert len(found.misfit) < 250
    with pytest.raises(InvalidValueError, match=f"does not fit the schema: {why}") as told:
        schema().encoded(7, datum)
    assert found.misfit in str(told.value)


def test_numbers_are_written_and_shown_with_their_digits() -> None:
    text = '{"id": 1, "more": [123456789012345678.91, 1.10, -0.0, 1E+2, 1e999999999]}'
    value = schema().encoded(7, parsed(text))
    assert value == HEAD + text.encode()
    assert written(schema().decoded(value).value) == text


@pytest.mark.parametrize(
    ("rule", "fits", "misfit"),
    [
        ({"type": "integer"}, "1.0", "1.00000000000000000001"),
        ({"type": "integer"}, "1e999999999", "1e-999999999"),
        ({"maximum": 5}, "5.0", "1e999999999"),
        ({"enum": [0.1]}, "0.10", "0.2"),
        ({"multipleOf": 0.5}, "1.5", "1.25"),
        ({"uniqueItems": True}, "[0.12345678901234567891, 0.12345678901234567892]", "[1.0, 1]"),
        ({"uniqueItems": True}, "[1e999999999, 2]", "[1e999999999, 10e999999998]"),
    ],
)
def test_a_number_is_judged_whatever_its_digits(
    rule: dict[str, Any], fits: str, misfit: str
) -> None:
    judge = JsonSchema(json.dumps(rule), {})
    assert judge.encoded(7, parsed(fits)) == HEAD + fits.encode()
    with pytest.raises(InvalidValueError, match="does not fit the schema"):
        judge.encoded(7, parsed(misfit))


DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize("datum", [float("nan"), "\ud800", DEEP])
def test_what_python_takes_for_json_is_not_written(datum: Any) -> None:
    with pytest.raises(InvalidValueError, match="does not fit the schema"):
        schema().encoded(7, {"id": 1, "more": datum})


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b'{"id": NaN}', b"[" * 100_000, b'{"id": 1} x', b'{"id": 1, "id": 2}'],
)
def test_bytes_that_are_no_json_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        schema().decoded(HEAD + body)


@pytest.mark.parametrize("own", [{}, {"$id": "http://shop.example/common/order.json"}])
def test_a_reference_is_found_by_its_name_also_below_the_schemas_own(own: dict[str, str]) -> None:
    found = schema(**own).decoded(HEAD + b'{"id": 1, "total": {"units": "x"}}')
    assert found.misfit == "total.units: 'x' is not of type 'integer'"


def test_a_reference_that_leads_nowhere_is_told_and_never_fetched() -> None:
    lost = JsonSchema('{"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}', {})
    with pytest.raises(ValueError, match=r"refers to http://127.0.0.1:9/x.json, which is not"):
        lost.decoded(HEAD + b'{"a": 1}')
    with pytest.raises(InvalidValueError, match="refers to"):
        lost.encoded(7, {"a": 1})
    assert lost.fields() == [Field("a", "http://127.0.0.1:9/x.json", None)]


@pytest.mark.parametrize("text", ["{", "5", '{"type": "record"}', '{"required": 1}', "[" * 99999])
def test_what_is_no_json_schema_is_told(text: str) -> None:
    with pytest.raises(SchemaError):
        JsonSchema(text, {})


def test_a_text_needs_no_quotes() -> None:
    assert JsonSchema('{"type": "string"}', {}).takes_text
    assert not schema().takes_text
    assert not JsonSchema("true", {}).takes_text


@pytest.mark.parametrize("own", [{}, {"$id": "http://shop.example/common/order.json"}])
def test_fields_are_told_with_their_types(own: dict[str, str]) -> None:
    assert sorted(schema(**own).fields(), key=lambda one: one.path) == [
        Field("at", "string (date-time)", None),
        Field("id", "integer, required", "what it is known by"),
        Field("lines", "array of #/definitions/line", None),
        Field("lines[].sku", "string, required", None),
        Field("prices", "object", None),
        Field("prices{}.sku", "string, required", None),
        Field("rank", "null | integer = null", None),
        Field("state", "enum (NEW, PAID)", None),
        Field("total", "object", None),
        Field("total.unit", "enum (EUR, USD)", None),
        Field("total.units", "integer", None),
    ]


def test_a_schema_inside_itself_ends() -> None:
    tree = {"type": "object", "properties": {"in": {"$ref": "#"}}}
    told = [one.path for one in JsonSchema(json.dumps(tree), {}).fields()]
    assert told == ["in"]
    around = {"allOf": [{"$ref": "#"}], "properties": {"a": {"type": "string"}}}
    assert [one.path for one in JsonSchema(json.dumps(around), {}).fields()] == ["a"]


@pytest.mark.parametrize("named", [1, [1], {}, "http://["])
def test_a_name_of_a_draft_that_is_none_is_told(named: Any) -> None:
    try:
        made = JsonSchema(json.dumps({"$schema": named, "type": "object"}), {})
    except SchemaError:
        return
    assert made.decoded(HEAD + b"{}") == Decoded({}, "")


def test_types_of_an_old_draft_that_are_not_known_are_told() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-03/schema#",
        "properties": {"a": {"type": [{"type": "string"}]}},
    }
    try:
        made = JsonSchema(json.dumps(old), {})
        made.decoded(HEAD + b'{"a": [1, {}]}')
    except (SchemaError, ValueError) as error:
        assert "draft" in str(error) or "$schema" in str(error)  # noqa: PT017 - either may tell it


@pytest.mark.parametrize("body", [b"1e999", b"1" + b"0" * 400])
def test_a_number_that_cannot_be_divided_is_a_misfit(body: bytes) -> None:
    found = JsonSchema('{"multipleOf": 0.1}', {}).decoded(HEAD + body)
    assert "too large to be compared" in found.misfit
