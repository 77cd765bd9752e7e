"""Patterns in a schema, and the strings that do not match them."""

import re
from typing import Any

import pytest

from mesh_events.errors import RefusedError
from mesh_events.schema.patterns import misfits, places, require_patterns
from tests.pattern_cases import EXPONENTIAL, VERDICTS


def validated(pattern: Any) -> dict[str, Any]:
    return {"type": "string", "logicalType": "validatedString", "pattern": pattern}


def record(**fields: Any) -> dict[str, Any]:
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "R", "fields": listed}


def wrong(value: Any, schema: Any) -> list[tuple[str, str]]:
    return [(place.path, one) for place, one in misfits(value, list(places(schema)))]


INNER = record(b=validated("x"))


def test_patterns_are_found_wherever_a_string_may_stand() -> None:
    schema = record(
        a=["null", validated("a")],
        i=INNER,
        l={"type": "array", "items": ["null", INNER]},
        m={"type": "map", "values": validated("m")},
        n="string",
        o=[validated("o")],
    )
    found = [(one.path, one.pattern, one.is_sure) for one in places(schema)]
    assert found == [
        ("a", "a", True),
        ("i.b", "x", True),
        ("l[].b", "x", True),
        ("m[]", "m", True),
        ("o", "o", True),
    ]
    assert [one.path for one in places(validated("v"))] == ["the value"]
    require_patterns(schema, "east.people-value")


UNSUPPORTED = [
    *("[a-", "(", None, 7, r"(a)\1", "(?=a)b", "(?<!a)b", "a*+", r"\p{L}", r"[^\PL]", r"\C"),
    *("a{,2}", "a{2", "(?i)\u00e4", r"(?s-U:(?mi)\x{e4})", "a{1001}", "\ud800", "a" * 1001),
    *("(?:a{500}){3}", "[a-z]{1,1000}", "(" * 1000, r"\Z", "(?x)a", "(?P<a>a)", "(?<a>a)"),
]


@pytest.mark.parametrize("pattern", UNSUPPORTED)
def test_a_pattern_that_is_not_matched_is_refused_with_its_place(pattern: Any) -> None:
    with pytest.raises(RefusedError, match=r"east\.people-value.*phone.*: .*: ") as refused:
        require_patterns(record(phone=validated(pattern)), "east.people-value")
    assert refused.value.code == "unsupported_pattern"
    assert len(str(refused.value)) < 500


def test_every_string_that_does_not_match_is_found_with_its_place() -> None:
    schema = record(
        a=["null", validated("[a-z]+")],
        i=["null", INNER],
        l={"type": "array", "items": INNER},
        m={"type": "map", "values": validated("m|mm")},
    )
    value = {"a": "A", "i": {"b": "y"}, "l": [{"b": "x"}, {"b": "z"}], "m": {"p": "mm", "q": "n"}}
    assert wrong(value, schema) == [("a", "A"), ("i.b", "y"), ("l[].b", "z"), ("m[]", "n")]
    assert wrong({"a": None, "i": None, "l": [], "m": {}}, schema) == []
    # what is left out gets the field's default
    assert wrong({}, schema) == []


@pytest.mark.parametrize(("pattern", "text", "matches"), VERDICTS)
def test_a_pattern_matches_the_whole_string(pattern: str, text: str, *, matches: bool) -> None:
    assert (wrong(text, validated(pattern)) == []) is matches


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", EXPONENTIAL)
def test_matching_takes_time_that_is_linear_in_the_string(pattern: str) -> None:
    text = "a" * 60_000 + "!"
    assert wrong(text, validated(pattern)) == [("the value", text)]


@pytest.mark.parametrize("pattern", ["(", "(?=a)a", None])
def test_a_value_with_a_pattern_that_is_not_matched_is_refused(pattern: Any) -> None:
    with pytest.raises(RefusedError, match="the pattern of b") as refused:
        wrong({"b": "a"}, record(b=validated(pattern)))
    assert refused.value.code == "unsupported_pattern"


SEVERAL = {
    "u": ["null", "int", validated("u")],
    "u[].b": {"type": "array", "items": [INNER, "string"]},
    "u.b": [{**record(c="int"), "name": "S"}, INNER],
    "u[]": ["string", {"type": "map", "values": validated("u")}],
}
"""Path of a pattern -> the type of `u`, with a union of several types on the way."""


@pytest.mark.parametrize("path", SEVERAL)
def test_a_pattern_in_a_union_of_several_types_is_refused_with_its_place(path: str) -> None:
    schema = record(u=SEVERAL[path])
    assert [(one.path, one.is_sure) for one in places(schema)] == [(path, False)]
    words = rf"of {re.escape(path)} .*union of several types.*: .*null"
    with pytest.raises(RefusedError, match=rf"east\.people-value.*{words}") as refused:
        require_patterns(schema, "east.people-value")
    assert refused.value.code == "unsupported_pattern"
    # a schema that was registered before
    with pytest.raises(RefusedError, match=words) as refused:
        wrong({"u": "x"}, schema)
    assert refused.value.code == "unsupported_pattern"


def test_a_type_that_is_called_by_its_name_is_asked_where_it_is_called() -> None:
    home = {**record(b=validated("x")), "name": "Home", "namespace": "shop"}
    schema = record(before=["null", home], after=["null", "shop.Home"], last="shop.Home")
    value = {"before": None, "after": {"b": "y"}, "last": {"b": "z"}}
    assert wrong(value, schema) == [("after.b", "y"), ("last.b", "z")]


def test_a_type_within_itself_ends() -> None:
    node = record(b=validated("x"), next=["null", "Node"])
    assert wrong({"b": "y", "next": {"b": "z", "next": None}}, {**node, "name": "Node"}) == [
        ("b", "y")
    ]


def test_a_type_of_the_same_short_name_takes_no_pattern_away() -> None:
    phone = {**record(no=validated("[0-9]{4}")), "name": "Phone"}
    other = {**record(no="string"), "name": "Phone", "namespace": "far"}
    schema = {**record(x=["null", phone], phone="Phone", y=["null", other]), "namespace": "shop"}
    assert [one.path for one in places(schema)] == ["x.no", "phone.no"]
    braces = {**record(x=["null", phone], phone={"type": "Phone"}), "namespace": "shop"}
    assert [one.path for one in places(braces)] == ["x.no", "phone.no"]
