import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import yaml

from mesh_events.intents import Quality
from self_service.cli.framework.output import (
    Detail,
    Format,
    Listing,
    Multiline,
    cell,
    note,
    rendered,
    show,
)

MOMENT = datetime(2026, 1, 31, 10, tzinfo=UTC)
LISTING = Listing(
    ("product", "quality", "tags"),
    [
        {"product": "east.users", "quality": Quality.RAW, "tags": ["a", "b"], "at": MOMENT},
        {"product": "east.[bold]x", "quality": Quality.ENRICHED, "tags": [], "at": None},
    ],
)


def test_a_table_shows_its_columns_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    show(LISTING, Format.TABLE)
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["PRODUCT", "QUALITY", "TAGS"]
    assert first.split() == ["east.users", "RAW", "a,", "b"]
    assert second.split() == ["east.[bold]x", "ENRICHED", "-"]


def test_json_and_yaml_hold_the_same_and_more_than_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(LISTING, Format.JSON)
    as_json = json.loads(capsys.readouterr().out)
    show(LISTING, Format.YAML)
    assert yaml.safe_load(capsys.readouterr().out) == as_json
    assert as_json[0] == {
        "product": "east.users",
        "quality": "RAW",
        "tags": ["a", "b"],
        "at": "2026-01-31T10:00:00.000Z",
    }


def test_nothing_found_is_an_empty_document_and_a_word_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(Listing(("product",), [], "no products match"), Format.TABLE)
    table = capsys.readouterr()
    show(Listing(("product",), []), Format.JSON)
    assert (table.out, table.err) == ("", "no products match\n")
    assert json.loads(capsys.readouterr().out) == []


def test_a_detail_is_one_document_with_its_listings(capsys: pytest.CaptureFixture[str]) -> None:
    show(Detail({"name": "east"}, {"products": LISTING}), Format.JSON)
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "east"
    assert [one["product"] for one in found["products"]] == ["east.users", "east.[bold]x"]


def test_a_pipe_gets_whole_lines_and_a_narrow_terminal_gets_folded_ones(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    long = Listing(("text",), [{"text": "word " * 60}])
    monkeypatch.delenv("COLUMNS", raising=False)
    show(long, Format.TABLE)
    assert len(capsys.readouterr().out.splitlines()) == 2
    monkeypatch.setenv("COLUMNS", "40")
    show(long, Format.TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 7
    assert max(map(len, lines)) <= 40


IDENTITY = "0199f3a2-7c1e-7d1a-9c0e-3f7f0a5b1c2d"
STEP = {
    "id": IDENTITY,
    "time": "2026-01-31T10:00:00.000Z",
    "after": "165 ms",
    "reason": "the weekly report needs to know who has an account with us",
}


@pytest.mark.parametrize("width", ["80", "70", "40", "10"])
def test_ids_and_times_stay_whole_however_narrow_the_terminal_is(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    show(Listing(tuple(STEP), [STEP]), Format.TABLE)
    show(Detail(STEP), Format.TABLE)
    told = capsys.readouterr().out
    for whole in (IDENTITY, STEP["time"], STEP["after"]):
        assert told.count(whole) == 2
    assert " ".join(told.split()).count("weekly") == 2


def test_a_terminal_of_80_cells_is_not_exceeded_as_long_as_ids_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show(Detail(STEP, {"steps": Listing(tuple(STEP), [STEP])}), Format.TABLE)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (Quality.RAW, "RAW"),
        (["a", None], "a, -"),
        ({"p": 1}, "p=1"),
        (MOMENT, "2026-01-31T10:00:00.000Z"),
    ],
)
def test_a_cell_is_readable(value: object, expected: str) -> None:
    assert cell(value) == expected


OBEYED = "east\x1b[2K\x9b31m\x7f\x85\u202egrant"
"""What a terminal would obey: escape sequences in 7 and 8 bits, and text turned round."""


@pytest.mark.parametrize("form", [Format.JSON, Format.YAML])
def test_what_a_stranger_wrote_reaches_a_terminal_as_text(
    form: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    show(Detail({"reason": OBEYED}), form)
    told = capsys.readouterr().out
    assert all(one.isprintable() for one in told.replace("\n", ""))
    assert yaml.safe_load(told) == {"reason": OBEYED}


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("text", ["für Größe", "a\u0301", "\u2764\ufe0f", "日本語", "हिन्दी"])
def test_letters_of_every_language_stay_readable(
    text: str, form: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    show(Detail({"reason": text}), form)
    assert text in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("east\ufe0f", r"east\ufe0f"),
        ("ж\ufe0e", r"ж\ufe0e"),
        ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f" + r"\ufe0f"),
        ("east\U000e0101", r"east\U000e0101"),
        ("x\u180b", r"x\u180b"),
        ("a" + "\u0301" * 6, "a" + "\u0301" * 4 + r"\u0301\u0301"),
        ("x\n" + "a" + "\u20dd" * 5, "x" + r"\n" + "a" + "\u20dd" * 4 + r"\u20dd"),
        ("a" + "\u0301" * 4 + "b\u0301", "a" + "\u0301" * 4 + "b\u0301"),
    ],
)
def test_what_takes_no_ink_or_covers_other_lines_is_told(text: str, shown: str) -> None:
    assert cell(text) == shown


def test_a_note_is_text_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    note(f"first {OBEYED}\nsecond")
    told = capsys.readouterr().err
    assert told.count("\n") == 2
    assert all(one.isprintable() for one in told.replace("\n", ""))


LINES = "agreed\nAccessGranted  accepted\r\n\tmesh.governor"
ONE_LINE = r"agreed\nAccessGranted  accepted\r\n\tmesh.governor"


@pytest.mark.parametrize("width", [None, "100", "30"])
def test_a_line_end_in_a_value_begins_no_other_row(
    width: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", width)
    show(Listing(("actor", "reason"), [{"actor": "a\nb", "reason": LINES}]), Format.TABLE)
    show(Detail({"owner": "a\nb", "reason": LINES, "tags": ["a\nb"]}), Format.TABLE)
    told = capsys.readouterr().out
    assert told.count(r"a\nb") == 3
    assert not any(one.split()[:1] == ["AccessGranted"] for one in told.splitlines())
    if width is None:
        assert told.count(ONE_LINE) == 2


@pytest.mark.parametrize("sign", ["\u034f", "\u115f", "\u2800", "\u3164"])
def test_signs_that_nobody_sees_are_shown_by_their_number(sign: str) -> None:
    assert cell(f"mesh{sign}.governor") == f"mesh{ascii(sign)[1:-1]}.governor"


def test_a_text_of_several_lines_keeps_them_under_its_own_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(Detail({"sql": Multiline("SELECT *\nFROM x\x1b[2K")}), Format.TABLE)
    assert capsys.readouterr().out == "sql  SELECT *\n     FROM x\\x1b[2K\n"
    for form in (Format.JSON, Format.YAML):
        show(Detail({"sql": Multiline("SELECT *\nFROM x")}), form)
        assert yaml.safe_load(capsys.readouterr().out) == {"sql": "SELECT *\nFROM x"}


def test_names_of_a_mapping_reach_a_terminal_as_text() -> None:
    assert cell({"\x1b[31mred\n": 1}) == r"\x1b[31mred\n=1"


def test_a_number_that_json_does_not_have_is_text() -> None:
    found = json.loads(rendered({"a": float("nan"), "b": [float("-inf")], "c": 1.5}, Format.JSON))
    assert found == {"a": "nan", "b": ["-inf"], "c": 1.5}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("0E-8", "0.00000000"),
        ("1E-8", "0.00000001"),
        ("-12.50", "-12.50"),
        ("1E+3", "1000"),
        ("1E-5000", "1E-5000"),
        ("NaN", "NaN"),
    ],
)
def test_a_decimal_is_shown_with_its_digits(number: str, expected: str) -> None:
    """Unless a schema gives it thousands."""
    assert cell(Decimal(number)) == expected
    assert json.loads(rendered({"amount": Decimal(number)}, Format.JSON)) == {"amount": expected}
