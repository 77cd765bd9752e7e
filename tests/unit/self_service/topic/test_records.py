import json
import math
from decimal import Decimal
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

from mesh_events.errors import InvalidValueError
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.output import Format, rendered, text_of
from self_service.cli.schema.subjects import read_schema
from self_service.cli.topic.consuming import Wanted, _range, _records, position
from self_service.cli.topic.producing import Encoder, Lines, records
from self_service.cli.topic.record_options import Input
from self_service.cli.topic.record_view import _line, _plain, write
from self_service.formats.avro import Avro
from self_service.formats.json_numbers import parsed

USER = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [
            {"name": "userid", "type": "long"},
            {"name": "phone", "type": ["null", "string"], "default": None},
        ],
    }
)
PLAIN = Encoder(None)


PHONE = {"type": "string", "logicalType": "validatedString", "pattern": "[+]?[0-9 ]{4,20}"}
PERSON = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "fields": [{"name": "others", "type": {"type": "array", "items": PHONE}}],
    }
)


def test_a_line_whose_string_does_not_match_its_pattern_is_refused_with_its_place() -> None:
    lines = ['{"others": ["+49 555"]}', json.dumps({"others": ["+49 555", "call me " * 9]})]
    with pytest.raises(InvalidValueError) as refused:
        list(records(lines, Lines(), PLAIN, Encoder((5, Avro(PERSON)))))
    assert str(refused.value) == (
        "line 2: the value does not fit the schema: others[] is "
        "'call me call me call me call me call me ...', "
        "which does not match its pattern [+]?[0-9 ]{4,20}"
    )


class Busy:
    """A consumer of a topic whose partitions get a new record after each that is read."""

    def __init__(self, ends: dict[int, int]) -> None:
        self.ends, self.at = dict(ends), dict.fromkeys(ends, 0)

    def get_watermark_offsets(self, place: TopicPartition, **_: float) -> tuple[int, int]:
        return 0, self.ends[place.partition]

    def poll(self, _: float) -> Any:
        assert sum(self.at.values()) < 1000, "it does not come to an end"
        partition = min(self.at, key=self.at.__getitem__)
        offset = self.at[partition]
        self.at[partition], self.ends[partition] = offset + 1, self.ends[partition] + 1
        return SimpleNamespace(
            error=lambda: None, partition=lambda: partition, offset=lambda: offset
        )


def test_reading_stops_at_the_ends_that_there_were_when_it_began() -> None:
    wanted, busy = Wanted("t"), Busy({0: 2, 1: 0, 2: 5})
    ranges = {one: _range(busy, wanted, one, "reading") for one in busy.ends}
    ends = {one: end for one, (_, end) in ranges.items()}
    assert ranges == {0: (0, 2), 1: (0, 0), 2: (0, 5)}
    read = [
        (one.partition(), one.offset())
        for one in islice(_records(busy, wanted, ends, "reading", math.inf), 100)
    ]
    assert sorted(read) == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]


def test_following_goes_on_behind_the_end() -> None:
    wanted, busy = Wanted("t", follow=True), Busy({0: 2})
    start, end = _range(busy, wanted, 0, "reading")
    assert start == OFFSET_BEGINNING
    read = islice(_records(busy, wanted, {0: end}, "reading", math.inf), 50)
    assert [one.offset() for one in read] == list(range(50))


def test_a_json_line_becomes_avro_and_back() -> None:
    pairs = list(records(['{"userid": 7}\n', "\n"], Lines(), PLAIN, Encoder((5, Avro(USER)))))
    assert len(pairs) == 1
    key, value = pairs[0]
    assert key is None
    assert value[:5] == b"\x00\x00\x00\x00\x05"
    assert Avro(USER).decoded(value).value == {"userid": 7, "phone": None}


@pytest.mark.parametrize(
    ("shape", "line", "expected"),
    [
        (Lines(key="k"), "v", (b"k", b"v")),
        (Lines(separator=":"), "k:v:w", (b"k", b"v:w")),
        (Lines(key_field="userid"), '{"userid": 7}', (b"7", b'{"userid": 7}')),
        (Lines(key_field="name"), '{"name": "a"}', (b"a", b'{"name": "a"}')),
        (Lines(), "v", (None, b"v")),
    ],
)
def test_the_key_comes_from_where_the_options_say(
    shape: Lines, line: str, expected: tuple[bytes | None, bytes]
) -> None:
    assert list(records([line], shape, PLAIN, PLAIN)) == [expected]


@pytest.mark.parametrize(
    ("shape", "line", "said"),
    [
        (Lines(separator=":"), "no key", "between key and value"),
        (Lines(key_field="id"), '{"userid": 7}', "no field 'id'"),
        (Lines(), '{"userid": "seven"}', "User.userid is 'seven', and is to be long"),
        (Lines(), '{"phone": "1"}', "schema: User.userid has no value, and is to be long"),
        (Lines(), '{"userid": 1, "phnoe": "5"}', "phnoe is no field of User: is phone meant?"),
        (Lines(), '{"userid": 1, "zzz": "5"}', "zzz is no field of User, which has userid, phone"),
        (Lines(), "[]", "schema: it is [], and is to be record User"),
        (Lines(), '{"userid": 1, "phone": 5}', "User.phone is 5, and is to be null or string"),
        (Lines(), '{"userid": 9223372036854775808}', "User.userid is 9223372036854775808, and"),
        (Lines(), '{"userid": -9223372036854775809}', "does not fit the schema"),
        (Lines(), '{"userid": 1.5}', "does not fit the schema"),
        (Lines(), '{"userid": true}', "does not fit the schema"),
        (Lines(), "{", "not JSON"),
    ],
)
def test_a_bad_line_is_told_with_its_number(shape: Lines, line: str, said: str) -> None:
    good = '{"userid": 1}' if shape == Lines() else line.replace("no key", "k:{}")
    lines = [good if shape == Lines() else "", line]
    with pytest.raises(InvalidValueError) as told:
        list(records(lines, shape, PLAIN, Encoder((5, Avro(USER)))))
    assert said in str(told.value)
    assert "line 2" in str(told.value)


AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}


def avro_of(kind: Any) -> Avro:
    field = {"name": "amount", "type": kind}
    return Avro(json.dumps({"type": "record", "name": "R", "fields": [field]}))


@pytest.mark.parametrize(
    ("kind", "number", "wanted"),
    [
        (AMOUNT, "123456789012345678.91", Decimal("123456789012345678.91")),
        (["null", AMOUNT], "1E2", Decimal("100.00")),
        (AMOUNT, "0e999999999", Decimal("0.00")),
        ("double", "0.1000000000000000055", 0.1),
        ("double", "-0.0", -0.0),
        ("double", "-Infinity", -math.inf),
        (["null", "float", "double"], "1e39", 1e39),
        ("float", "0.5", 0.5),
    ],
)
def test_a_number_arrives_as_its_line_has_it(kind: Any, number: str, wanted: object) -> None:
    schema = avro_of(kind)
    value = Encoder((5, schema)).encode(f'{{"amount": {number}}}')
    found = schema.decoded(value).value["amount"]
    assert (found, str(found)) == (wanted, str(wanted))


@pytest.mark.parametrize(
    ("kind", "number", "why"),
    [
        (AMOUNT, "1234567890123456789.91", "does not fit decimal"),
        (AMOUNT, "1e999999999", "does not fit decimal"),
        (AMOUNT, "0.001", "does not fit decimal"),
        (AMOUNT, "NaN", "is no decimal"),
        ("double", "1e999", "field amount: 1e999 is beyond the greatest double"),
        ("double", "9" * 400, "field amount: 9{40} is beyond the greatest double"),
        ("float", "1e39", "field amount: 1e39 is beyond the greatest float"),
        ("float", "1" + "0" * 39, "is beyond the greatest float"),
        ("double", "1e9999999999999999999", "exponent has more than 18 digits"),
        ("long", "1.0", "is to be long"),
        ("long", "9223372036854775808", "is to be long"),
        ("long", '1, "amount": 2', "'amount' stands twice in one object"),
    ],
)
def test_a_number_that_would_be_another_one_is_refused(kind: Any, number: str, why: str) -> None:
    with pytest.raises(InvalidValueError, match=why):
        Encoder((5, avro_of(kind))).encode(f'{{"amount": {number}}}')


def test_a_key_out_of_a_field_has_its_digits() -> None:
    shape = Lines(key_field="amount")
    assert shape.parse('{"amount": 12345678901234567.10}')[0] == "12345678901234567.10"


STRANGE = "a\u2028b\x85c\x0cd\x0be\x1cf\rg"
"""What `str.splitlines` takes for seven lines."""


def test_only_a_line_feed_ends_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = tmp_path / "lines", f"{STRANGE}\r\n\nb\nc".encode()
    path.write_bytes(data)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(data), "latin-1"))
    for given in (Input(file=path), Input()):
        found = [value for _, value in records(given.lines(), Lines(), PLAIN, PLAIN)]
        assert found == [STRANGE.encode(), b"b", b"c"]


def test_a_line_that_is_not_utf8_is_told_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = tmp_path / "lines", b"a\nb\xff\n"
    path.write_bytes(data)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(data), "latin-1"))
    for given, name in ((Input(file=path), str(path)), (Input(), "stdin")):
        with pytest.raises(InvalidValueError, match=f"{name}, line 2: byte 2 is not UTF-8"):
            list(records(given.lines(), Lines(), PLAIN, PLAIN))
    with pytest.raises(InvalidValueError, match="line 1: it is not UTF-8"):
        list(records(["b\udcff"], Lines(), PLAIN, PLAIN))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        list(Input(file=tmp_path / "none").lines())


def test_a_string_schema_takes_the_text_as_it_is() -> None:
    schema = Avro('"string"')
    value = Encoder((5, schema)).encode("plain text")
    assert schema.decoded(value).value == "plain text"


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_a_number_out_of_range_of_an_int_is_refused_and_not_cut(number: int) -> None:
    schema = Avro('"int"')
    assert schema.decoded(schema.encoded(5, 2**31 - 1)).value == 2**31 - 1
    with pytest.raises(InvalidValueError, match=str(number)):
        schema.encoded(5, number)
    # an int is written as a long is
    with pytest.raises(ValueError, match=f"it is {number}, and is to be int"):
        schema.decoded(Avro('"long"').encoded(5, number))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", (OFFSET_BEGINNING, None)),
        ("end", (OFFSET_END, None)),
        ("7", (7, None)),
        ("-7", (OFFSET_END, 7)),
        (str(2**63 - 1), (2**63 - 1, None)),
    ],
)
def test_a_position_is_read_as_written(text: str, expected: tuple[int, int | None]) -> None:
    assert position(text) == expected


@pytest.mark.parametrize("text", ["", "-", "--5", "1.5", str(2**63), f"-{2**63}", "9" * 5000])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="--from"):
        position(text)


def test_bytes_behind_the_body_are_not_avro() -> None:
    with pytest.raises(ValueError, match="bytes follow"):
        Avro('"string"').decoded(Avro('"string"').encoded(5, "x") + b"y")


@pytest.mark.parametrize("text", ["{", '{"type": "strange"}', '"none"'])
def test_a_file_that_is_no_schema_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "user.avsc"
    path.write_text(text)
    with pytest.raises(
        InvalidValueError, match=r"user\.avsc is not a (valid|complete) Avro schema"
    ):
        read_schema(path)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"text", "text"),
        (b'{"a": 1}', {"a": 1}),
        (b"{broken", "{broken"),
        (b"\xff\x00", "0xff00"),
        (b"", ""),
        (b'{"a": NaN}', '{"a": NaN}'),
        (b'{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    ],
)
def test_what_is_not_avro_is_json_text_or_hex(data: bytes, expected: object) -> None:
    assert _plain(data) == expected


def test_numbers_are_shown_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"a": 123456789012345678.91, "b": [1.10, 1e+2, 1e999999999, -0.0], "c": 10}'
    common = {"partition": 0, "offset": 4, "time": "T", "key": None, "tombstone": False}
    document = {**common, "value": _plain(text.encode())}
    for form in Format:
        write(document, form)
    told = capsys.readouterr().out
    assert told.count(text) == 2
    assert "a: 123456789012345678.91\n" in told
    assert "- 1.10\n  - 1.0e+2\n" in told
    assert yaml.safe_load(told.partition("---\n")[2])["value"]["b"][:2] == [1.1, 100.0]


def test_numbers_in_many_lines_are_laid_out_as_others() -> None:
    text = '{"a": [1.5, {"b": [], "c": {}, "d": null}], "\u009b": "\u009b", "e": [[2.5]]}'
    assert rendered(parsed(text), Format.JSON) == rendered(json.loads(text), Format.JSON)


def test_a_tombstone_is_told_from_an_empty_value() -> None:
    common = {"partition": 0, "offset": 4, "time": "T", "key": {"userid": 1}}
    assert _line({**common, "value": None, "tombstone": True}).endswith("\t(tombstone)\n")
    assert _line({**common, "value": "", "tombstone": False}) == '0@4\tT\t{"userid": 1}\t\n'


def test_a_record_of_several_lines_begins_no_other_row() -> None:
    text = "a\n0@9\tT\tk\tb"
    document = {"partition": 0, "offset": 4, "time": "T", "key": text, "value": text}
    shown = _line({**document, "tombstone": False, "headers": [[text, text], ["n", None]]})
    escaped = r"a\n0@9\tT\tk\tb"
    assert shown == f"0@4\tT\t{escaped}\t{escaped}\n\t{escaped}: {escaped}\n\tn: None\n"


@pytest.mark.parametrize("depth", [65, 300, 900, 100_000])
@pytest.mark.parametrize("brackets", ["[]", ('{"a":', "}")])
def test_a_value_of_very_many_levels_is_shown_as_its_text(
    depth: int, brackets: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    opened, closed = brackets
    data = f"{opened * depth}1{closed * depth}".encode()
    for form in Format:
        document = {"partition": 0, "offset": 4, "time": "T", "key": None, "tombstone": False}
        write({**document, "value": _plain(data)}, form)
    assert isinstance(_plain(data), str)
    assert capsys.readouterr().out


def test_a_value_of_some_levels_is_shown_as_itself() -> None:
    assert _plain(b"[" * 60 + b"]" * 60) != "[" * 60 + "]" * 60


def test_a_record_in_json_is_one_line_that_no_terminal_obeys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write({"value": "a\x9b31m\u2028b"}, Format.JSON)
    told = capsys.readouterr().out
    assert told == '{"value": "a\\u009b31m\\u2028b"}\n'


def test_a_key_that_does_not_fit_is_told_as_the_key() -> None:
    key = Encoder((7, Avro('{"type": "record", "name": "K", "fields": []}')))
    with pytest.raises(InvalidValueError, match=r"line 1: the key: the value does not fit"):
        list(records(['{"code": 4}'], Lines(None, None, "code"), key, PLAIN))


UUID_TEXTS = ("ABCDEF00-0000-0000-0000-00000000000A", "{abcdef00-0000-0000-0000-00000000000a}")


@pytest.mark.parametrize("text", UUID_TEXTS)
def test_a_uuid_is_shown_as_its_record_has_it(text: str) -> None:
    schema = Avro(json.dumps({"type": "string", "logicalType": "uuid"}))
    body = b"\0\0\0\0\1" + bytes([2 * len(text)]) + text.encode()
    assert schema.decoded(body).value == text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\1"),
        (["null", "string", {"type": "enum", "name": "E", "symbols": ["A", "B"]}], b"\1\0"),
        (["null", "int"], b"\1\2"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\0"),
    ],
)
def test_what_javas_library_cannot_read_is_not_shown(kind: Any, body: bytes) -> None:
    named = {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}
    for schema in (kind, named):
        with pytest.raises(ValueError, match=r"branch or symbol -1|has no bytes"):
            Avro(json.dumps(schema)).decoded(b"\0\0\0\0\1" + body)


def test_bytes_and_a_text_of_their_digits_are_shown_apart() -> None:
    assert text_of(b"abc") == "abc"
    assert text_of(b"\0\xff") == "0x00ff"
    assert text_of(b"0x00ff") == "0x307830306666"
