"""Protobuf records: bytes written down by hand from the specification, and what is shown of them.

A field is a tag (number times 8, plus 0 for a varint, 1 for eight bytes, 2 for a length and so many
bytes, 5 for four bytes) and what follows it.
"""

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from mesh_events.errors import InvalidValueError
from mesh_events.schema.compatibility import Field
from self_service.formats.json_numbers import parsed
from self_service.formats.protobuf import Protobuf
from self_service.formats.schema import Decoded, Schema, SchemaError

HEAD = b"\x00\x00\x00\x00\x07"
MONEY = """
syntax = "proto3";
package shop.common;
import "unit.proto";
message Money { int64 units = 1; shop.common.Unit unit = 2; }
"""
UNIT = 'syntax = "proto3"; package shop.common; enum Unit { EUR = 0; USD = 1; }'
IMPORTS = {"common/money.proto": MONEY, "unit.proto": UNIT}
ORDER = """
syntax = "proto3";
package shop;
import "common/money.proto";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";

message Note { string text = 1; }

message Order {
  enum State { NEW = 0; PAID = 1; }
  message Line {
    message Size { sint32 delta = 1; }
    string sku = 1;
    Size size = 2;
  }
  // What it is known by
  int64 id = 1;
  repeated Line lines = 2;
  map<string, sfixed64> counts = 3;
  map<bool, Line> marked = 4;
  oneof pay { string card = 5; bytes cash = 6; }
  State state = 7;
  optional int32 rank = 8;
  google.protobuf.Timestamp at = 9;
  google.protobuf.Duration took = 10;
  google.protobuf.Int64Value limit = 11;
  google.protobuf.Struct more = 12;
  google.protobuf.Any other = 13;
  shop.common.Money total = 14;
  google.type.Date day = 15;
  repeated int32 points = 16;
  double weight = 17;
  float part = 18;
  fixed32 crc = 19;
  bool gift = 20;
  uint64 most = 21;
}
"""
EMPTY: dict[str, Any] = {
    "id": 0,
    "lines": [],
    "counts": {},
    "marked": {},
    "state": "NEW",
    "points": [],
    "weight": 0.0,
    "part": 0.0,
    "crc": 0,
    "gift": False,
    "most": 0,
}


@pytest.fixture(scope="module")
def order() -> Schema:
    return Protobuf(ORDER, IMPORTS)


def some(body: bytes) -> bytes:
    """A record of Order, which is the second message: one step, to number 1, both zigzag."""
    return HEAD + b"\x02\x02" + body


def of(tag: int, body: bytes) -> bytes:
    """A field with a length; tags above 127 have a second byte."""
    number = bytes([tag]) if tag < 128 else bytes([tag & 0x7F | 0x80, tag >> 7])
    return number + bytes([len(body)]) + body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"\x08\x96\x01", {"id": 150}),
        (b"\x08" + b"\xff" * 9 + b"\x01", {"id": -1}),
        (b"\x08" + b"\xff" * 8 + b"\x7f", {"id": 2**63 - 1}),
        (of(18, b"\x0a\x01s"), {"lines": [{"sku": "s"}]}),
        (of(18, b"\x12\x02\x08\x01"), {"lines": [{"sku": "", "size": {"delta": -1}}]}),
        (of(26, b"\x0a\x01k\x11" + b"\x05" + b"\0" * 7), {"counts": {"k": 5}}),
        (of(34, b"\x08\x01\x12\x03\x0a\x01s"), {"marked": {"true": {"sku": "s"}}}),
        (of(42, b""), {"card": ""}),
        (of(50, b"\xff\x00"), {"cash": b"\xff\x00"}),
        (of(42, b"a") + of(50, b"b"), {"cash": b"b"}),
        (b"\x38\x01", {"state": "PAID"}),
        (b"\x38\x09", {"state": 9}),
        (b"\x40\x00", {"rank": 0}),
        (of(74, b"\x08\x01\x10\x01"), {"at": "1970-01-01T00:00:01.000000001Z"}),
        (of(74, b"\x08" + b"\xff" * 8 + b"\x7f"), {"at": {"seconds": 2**63 - 1, "nanos": 0}}),
        (of(82, b"\x08\x03"), {"took": "3s"}),
        (of(90, b""), {"limit": 0}),
        (of(90, b"\x08\x05"), {"limit": 5}),
        (of(98, of(10, b"\x0a\x01a\x12\x02\x20\x01")), {"more": {"a": True}}),
        (of(98, of(10, b"\x0a\x01a\x12\x02\x08\x00")), {"more": {"a": None}}),
        (
            of(106, of(10, b"x/shop.Note") + of(18, b"\x0a\x01n")),
            {"other": {"@type": "x/shop.Note", "text": "n"}},
        ),
        (
            of(106, of(10, b"x/gone.Away") + of(18, b"\xff")),
            {"other": {"@type": "x/gone.Away", "value": b"\xff"}},
        ),
        (of(114, b"\x08\x05\x10\x01"), {"total": {"units": 5, "unit": "USD"}}),
        (of(122, b"\x08\x0b"), {"day": {"year": 11, "month": 0, "day": 0}}),
        (of(130, b"\x01\x02"), {"points": [1, 2]}),
        (b"\x80\x01\x03", {"points": [3]}),
        (b"\x89\x01" + b"\0" * 6 + b"\xf0\x3f", {"weight": 1.0}),
        (b"\x95\x01\0\0\x80\x3f", {"part": 1.0}),
        (b"\x9d\x01\xff\xff\xff\xff", {"crc": 2**32 - 1}),
        (b"\xa0\x01\x01", {"gift": True}),
        (b"\xa8\x01" + b"\xff" * 9 + b"\x01", {"most": 2**64 - 1}),
        (b"", {}),
    ],
)
def test_each_kind_of_field_is_shown(order: Schema, body: bytes, expected: dict[str, Any]) -> None:
    assert order.decoded(some(body)) == Decoded(EMPTY | expected)


@pytest.mark.parametrize(
    ("way", "body", "expected"),
    [
        (b"\x00", b"\x0a\x01n", {"text": "n"}),
        (b"\x02\x00", b"\x0a\x01n", {"text": "n"}),
        (b"\x04\x02\x00", b"\x0a\x01s\x12\x00", {"sku": "s", "size": {"delta": 0}}),
        (b"\x06\x02\x00\x00", b"\x08\x01", {"delta": -1}),
    ],
)
def test_the_indexes_lead_to_the_message(
    order: Schema, way: bytes, body: bytes, expected: Any
) -> None:
    assert order.decoded(HEAD + way + body) == Decoded(expected)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (b"", "does not say which message"),
        (b"\x02", "does not say which message"),
        (b"\xff" * 12, "does not say which message"),
        (b"\x02\x04", r"no message at \[2\]"),
        (b"\x04\x00\x00", r"no message at \[0, 0\]"),
        (b"\x04\x02\x02", r"no message at \[1, 1\]"),
        (b"\x02\x01", "message number -1"),
        (b"\x28", "at 20 levels"),
        (b"\x01", "at -1 levels"),
        (b"\x02\x02\x08", "no shop.Order"),
        (b"\x02\x02\x08\x96", "no shop.Order"),
        (b"\x02\x02\x2a\x01\xff", "no shop.Order"),
        (b"\x02\x02\x2a\x7fx", "no shop.Order"),
        (b'{"id": 1}', "levels"),
        (b"\x00\x28\x01", "none of its fields"),
        (b"\x02\x02" + b"\x63" * 1000, "no shop.Order"),
    ],
)
def test_bytes_of_something_else_are_refused(order: Schema, rest: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        order.decoded(HEAD + rest)


def test_messages_in_messages_without_end_are_refused() -> None:
    tree = Protobuf('syntax = "proto3"; message Tree { Tree in = 1; }', {})
    body = b""
    for _ in range(40):
        body = of(10, body)
    assert tree.decoded(HEAD + b"\x00" + body).value["in"]["in"]
    deep = b"\x0a\x01" * 60 + b"\x00"
    with pytest.raises(ValueError, match="no Tree"):
        tree.decoded(HEAD + b"\x00" + deep)


@pytest.mark.parametrize(
    ("body", "number"), [(b"\x08\x01\xc0\x3e\x01", "1000"), (of(18, b"\x0a\x01s\x18\x01"), "3")]
)
def test_a_field_that_the_schema_lacks_is_told_beside_the_others(
    order: Schema, body: bytes, number: str
) -> None:
    found = order.decoded(some(body))
    assert found.misfit == f"the schema has no fields number {number}"
    assert found.value["id"] or found.value["lines"]


def test_fields_and_comments_are_told_in_their_order(order: Schema) -> None:
    found = order.fields()
    assert found[:3] == [
        Field("Note.text", "string = 1", None),
        Field("Order.id", "int64 = 1", "What it is known by"),
        Field("Order.lines", "repeated message shop.Order.Line = 2", None),
    ]
    told = {one.path: one.type for one in found}
    assert told["Order.lines[].size.delta"] == "sint32 = 1"
    assert told["Order.counts"] == "map of string to sfixed64 = 3"
    assert told["Order.marked{}.sku"] == "string = 1"
    assert told["Order.card"] == "string = 5, one of pay"
    assert told["Order.state"] == "enum shop.Order.State (NEW, PAID) = 7"
    assert told["Order.rank"] == "optional int32 = 8"
    assert told["Order.total.unit"] == "enum shop.common.Unit (EUR, USD) = 2"
    assert "Order.at.seconds" not in told


def test_a_descriptor_in_base64_is_the_same_schema() -> None:
    """As clients register it that have no text of their own, such as the one for Python."""
    money = FileDescriptorProto(name="whatever.proto", package="shop.common", syntax="proto3")
    money.message_type.add(name="Money").field.add(name="units", number=1, type=3, label=1)
    bare = base64.b64encode(money.SerializeToString()).decode()
    assert Protobuf(bare, {}).decoded(HEAD + b"\x00\x08\x05") == Decoded({"units": 5})
    text = (
        'syntax = "proto3"; import "m.proto"; import "google/protobuf/timestamp.proto";'
        "message A { shop.common.Money m = 1; google.protobuf.Timestamp at = 2; }"
    )
    value = HEAD + b"\x00\x0a\x02\x08\x05\x12\x02\x08\x01"
    expected = Decoded({"m": {"units": 5}, "at": "1970-01-01T00:00:01Z"})
    assert Protobuf(text, {"m.proto": bare}).decoded(value) == expected


def test_the_second_edition_of_the_language_has_groups_defaults_and_duties() -> None:
    old = Protobuf(
        'syntax = "proto2"; message A { required int32 a = 1; optional int32 b = 2 [default = 5];'
        " optional group C = 3 { optional bool d = 1; } extensions 100 to 200; }"
        " extend A { optional string more = 100; }",
        {},
    )
    assert old.decoded(HEAD + b"\x00\x08\x01\x1b\x08\x01\x1c\xa2\x06\x01x") == Decoded(
        {"a": 1, "c": {"d": True}, "[more]": "x"}
    )
    assert old.decoded(HEAD + b"\x00\x10\x07") == Decoded({"b": 7}, "it lacks a")
    with pytest.raises(InvalidValueError, match="it lacks a"):
        old.encoded(7, {"b": 1})
    assert old.fields()[0].type == "required int32 = 1"


@pytest.mark.parametrize(
    ("text", "imports", "why"),
    [
        ("message A {", {}, "line 1, column 12: Reached end"),
        ('syntax = "proto3"; import "gone.proto";', {}, "gone.proto: File not found"),
        ('syntax = "proto3"; message A { B b = 1; }', {}, '"B" is not defined'),
        ('syntax = "proto3"; import "../x.proto";', {"../x.proto": UNIT}, "no path below"),
        ('syntax = "proto3"; import "/x.proto";', {"/x.proto": UNIT}, "no path below"),
        ('syntax = "proto3"; import "a.proto";', {"a.proto": "message {"}, "a.proto:1:9"),
        ("", {"\0": UNIT}, "cannot be a file"),
    ],
)
def test_what_is_no_schema_is_told_in_the_compilers_words(
    text: str, imports: dict[str, str], why: str
) -> None:
    with pytest.raises(SchemaError, match=why.replace("(", r"\(")):
        Protobuf(text, imports)


def test_json_becomes_the_first_message_and_comes_out_again() -> None:
    schema = Protobuf(ORDER.replace("message Note { string text = 1; }", ""), IMPORTS)
    datum = {
        "id": 2**63 - 1,
        "lines": [{"sku": "s", "size": {"delta": -1}}],
        "counts": {"k": -5},
        "marked": {"true": {"sku": "t"}},
        "cash": "base64:/wA=",
        "state": "PAID",
        "at": "2026-01-31T12:00:00.000000001Z",
        "limit": 5,
        "more": {"a": [1.0, None, {"b": "c"}]},
        "total": {"units": 5, "unit": "USD"},
    }
    encoded = schema.encoded(7, datum)
    assert encoded[:6] == HEAD + b"\x00"
    assert schema.decoded(encoded) == Decoded(EMPTY | datum | {"cash": b"\xff\x00"})


def test_a_number_arrives_with_all_its_digits() -> None:
    schema = Protobuf(ORDER.replace("message Note { string text = 1; }", ""), IMPORTS)
    text = (
        '{"id": 9007199254740993.0, "most": 1.8446744073709551615e19, "weight": 0.1, "rank": -0e5}'
    )
    value = schema.decoded(schema.encoded(7, parsed(text))).value
    wanted = {"id": 9007199254740993, "most": 2**64 - 1, "weight": 0.1, "rank": 0}
    assert value == EMPTY | wanted


@pytest.mark.parametrize(
    ("datum", "why"),
    [
        ({"id": "x"}, "id"),
        ({"id": 2**63}, "id"),
        ({"crc": -1}, "crc"),
        ({"nothing": 1}, 'no field named "nothing"'),
        ({"lines": [{"sku": 1}]}, "sku"),
        ({"lines": ["s"]}, r"lines\[0\] is no object"),
        ({"cash": "raw"}, 'field cash: bytes are written as "base64:..."'),
        ({"cash": "base64:%"}, "field cash: what follows base64:"),
        ({"card": "\ud800"}, "card|surrogates"),
        ({"card": "a", "cash": "base64:"}, "pay"),
        ({"state": "GONE"}, "state"),
        ({"at": "yesterday"}, "at"),
        ({"took": "1.0000000005s"}, "field took: .* more than 9 digits behind the second"),
        (parsed('{"id": 9007199254740993.5}'), "id"),
        (parsed('{"id": 1e999999999}'), "no type of Protobuf has room for 1e999999999"),
        (parsed('{"id": 1e300}'), "id"),
        (parsed('{"state": 1.5}'), "state"),
        (parsed('{"part": 1e39}'), "part"),
        (parsed('{"more": {"a": [1e999]}}'), "no type of Protobuf has room for 1e999"),
        ({"weight": 10**400}, "too large"),
        ([], "the value is no object"),
        (5, "the value is no object"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(datum: Any, why: str) -> None:
    schema = Protobuf(ORDER.replace("message Note { string text = 1; }", ""), IMPORTS)
    with pytest.raises(InvalidValueError, match=why):
        schema.encoded(7, datum)
