import json
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from mesh_events.errors import InvalidValueError
from self_service.cli.consuming import _line, _plain, position, write
from self_service.cli.output import Format
from self_service.cli.producing import Encoder, Lines, records
from self_service.cli.subjects import decoded, encoded, read_schema

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


def test_a_json_line_becomes_avro_and_back() -> None:
    pairs = list(records(['{"userid": 7}\n', "\n"], Lines(), PLAIN, Encoder((5, USER))))
    assert len(pairs) == 1
    key, value = pairs[0]
    assert key is None
    assert value[:5] == b"\x00\x00\x00\x00\x05"
    assert decoded(USER, value) == {"userid": 7, "phone": None}


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
        (Lines(), '{"userid": "seven"}', "does not fit the schema"),
        (Lines(), '{"phone": "1"}', "does not fit the schema"),
        (Lines(), '{"userid": 9223372036854775808}', "User.userid is <9223372036854775808>"),
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
        list(records(lines, shape, PLAIN, Encoder((5, USER))))
    assert said in str(told.value)
    assert "line 2" in str(told.value)


def test_a_string_schema_takes_the_text_as_it_is() -> None:
    value = Encoder((5, '"string"')).encode("plain text")
    assert decoded('"string"', value) == "plain text"


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_a_number_out_of_range_of_an_int_is_refused_and_not_cut(number: int) -> None:
    assert decoded('"int"', encoded(5, '"int"', 2**31 - 1)) == 2**31 - 1
    with pytest.raises(InvalidValueError, match=str(number)):
        encoded(5, '"int"', number)


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
        decoded('"string"', encoded(5, '"string"', "x") + b"y")


@pytest.mark.parametrize("text", ["{", '{"type": "strange"}', '"none"'])
def test_a_file_that_is_no_schema_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "user.avsc"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=r"user\.avsc is no Avro schema"):
        read_schema(path)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"text", "text"),
        (b'{"a": 1}', {"a": 1}),
        (b"{broken", "{broken"),
        (b"\xff\x00", "0xff00"),
        (b"", ""),
    ],
)
def test_what_is_not_avro_is_json_text_or_hex(data: bytes, expected: object) -> None:
    assert _plain(data) == expected


def test_a_tombstone_is_told_from_an_empty_value() -> None:
    common = {"partition": 0, "offset": 4, "time": "T", "key": {"userid": 1}}
    assert _line({**common, "value": None, "tombstone": True}).endswith("\t(tombstone)\n")
    assert _line({**common, "value": "", "tombstone": False}) == '0@4\tT\t{"userid": 1}\t\n'


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
