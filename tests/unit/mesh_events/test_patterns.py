"""Patterns in a schema, and the strings that do not match them."""

from typing import Any

import pytest

from mesh_events.errors import RefusedError
from mesh_events.patterns import misfits, places, require_patterns


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
        u=["int", validated("u")],
    )
    found = [(one.path, one.pattern, one.is_sure) for one in places(schema)]
    assert found == [
        ("a", "a", True),
        ("i.b", "x", True),
        ("l[].b", "x", True),
        ("m[]", "m", True),
        ("u", "u", False),
    ]
    assert [one.path for one in places(validated("v"))] == ["the value"]
    require_patterns(schema, "east.people-value")


@pytest.mark.parametrize("pattern", ["[a-", "(", None, 7])
def test_what_is_no_pattern_is_refused_with_its_place(pattern: Any) -> None:
    with pytest.raises(RefusedError, match=r"east\.people-value.*phone") as refused:
        require_patterns(record(phone=validated(pattern)), "east.people-value")
    assert refused.value.code == "schema_not_usable"


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


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("[0-9]+", "12", True),
        ("[0-9]+", "12\n", False),
        ("[0-9]+", "call 12", False),
        ("a|ab", "ab", True),
        ("\\d", "\u0663", False),
        ("(?i)de", "DE", True),
    ],
)
def test_the_whole_string_has_to_match_as_java_reads_it(
    pattern: str, text: str, matches: bool
) -> None:
    assert (wrong(text, validated(pattern)) == []) is matches


@pytest.mark.parametrize("pattern", ["[a-z&&[^b]]", "[[a-c]x]", "\\p{L}", "(", None])
def test_a_pattern_that_python_reads_otherwise_is_left_to_others(pattern: Any) -> None:
    assert wrong("!", validated(pattern)) == []


def test_a_union_of_several_types_is_asked_for_nothing() -> None:
    assert wrong({"u": "x"}, record(u=["int", validated("u")])) == []


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
