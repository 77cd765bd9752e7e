"""Schemas that describe more than their text: comparing and reading them ends, or is refused."""

import json
from typing import Any

import pytest

from mesh_events.errors import RefusedError
from mesh_events.schema.compatibility import Level, breaks, fields
from mesh_events.schema.patterns import places, require_usable
from mesh_events.schema.resolution import Comparison
from mesh_events.schema.size import (
    LONGEST_NAME,
    expanded_size,
    parsed,
    require_bounded,
    require_no_recursion,
)

pytestmark = pytest.mark.timeout(20)
DEPTHS = [10, 30, 60]


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def record(name: str, *fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def doubling(levels: int, leaf: Any = "int", *more: Any) -> dict[str, Any]:
    """Each level has two records whose field is a union of both records of the next one."""

    def level(number: int, which: str) -> dict[str, Any]:
        inner = leaf if number == levels else ["null", f"R{number + 1}a", f"R{number + 1}b"]
        return record(f"R{number}{which}", field("f", inner))

    held = [
        field(f"d{number}{which}", ["null", level(number, which)], default=None)
        for number in range(levels, 0, -1)
        for which in "ab"
    ]
    return record("T", *held, field("top", ["null", "R1a", "R1b"], default=None), *more)


@pytest.mark.parametrize("levels", DEPTHS)
def test_comparing_types_that_use_each_other_twice_ends(levels: int) -> None:
    old = json.dumps(doubling(levels))
    wider = json.dumps(doubling(levels, "int", field("more", "int", default=0)))
    assert breaks(old, wider, Level.FULL) == []
    found = breaks(old, json.dumps(doubling(levels, "string")), Level.BACKWARD)
    # each of the two records at the end is told once, not once for each way that leads to it
    assert sorted(one.path for one in found) == [f"d{levels}a.f", f"d{levels}b.f"]


@pytest.mark.parametrize("levels", DEPTHS)
def test_fields_and_patterns_of_such_types_end(levels: int) -> None:
    schema = doubling(levels)
    assert list(places(schema)) == []
    assert len(fields(json.dumps(schema))) <= 5000


@pytest.mark.parametrize("levels", [30, 60])
def test_a_schema_that_describes_too_many_fields_is_refused(levels: int) -> None:
    for leaf in ("int", {"type": "string", "logicalType": "validatedString", "pattern": "a"}):
        with pytest.raises(RefusedError, match=r"east\.t-value: the schema") as refused:
            require_usable(json.dumps(doubling(levels, leaf)), "east.t-value")
        assert refused.value.code == "schema_too_large"


def test_too_many_strings_with_a_pattern_are_refused() -> None:
    leaf = {"type": "string", "logicalType": "validatedString", "pattern": "a"}
    many = record("T", *(field(f"f{one}", leaf) for one in range(1001)))
    with pytest.raises(RefusedError, match="1000 strings with a pattern") as refused:
        require_usable(json.dumps(many), "east.t-value")
    assert refused.value.code == "schema_too_large"


@pytest.mark.parametrize("levels", [100, 5000, 100_000])
def test_a_schema_nested_too_deep_is_refused(levels: int) -> None:
    text = '{"type":"array","items":' * levels + '"int"' + "}" * levels
    with pytest.raises(RefusedError) as refused:
        parsed(text, "east.t-value")
    assert refused.value.code == "schema_too_large"
    assert "64 levels" in str(refused.value) or "characters" in str(refused.value)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([f"T{one}" for one in range(501)], "501 branches"),
        (record("R", *(field(f"f{n}", record(f"R{n}")) for n in range(2001))), "2002 named"),
        ("x" * 1_000_001, "characters"),
    ],
)
def test_each_limit_is_named(schema: Any, why: str) -> None:
    with pytest.raises(RefusedError, match=f"east.t-value.*{why}") as refused:
        parsed(json.dumps(schema), "east.t-value")
    assert refused.value.code == "schema_too_large"


LONG = "n" * (LONGEST_NAME + 1)


@pytest.mark.parametrize(
    "schema",
    [
        record("T", field(LONG, "int")),
        record(LONG, field("f", "int")),
        record("T", field("f", ["null", record("U", field(LONG, "int"))])),
        record("T", field("f", "int")) | {"namespace": LONG},
        record("T", field("f", "int") | {"aliases": ["short", LONG]}),
        {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A", LONG]}},
    ],
)
def test_a_long_name_is_refused(schema: Any) -> None:
    with pytest.raises(RefusedError, match="513 characters, at most 512 are allowed") as refused:
        parsed(json.dumps(schema), "east.t-value")
    assert refused.value.code == "schema_too_large"


def test_a_name_of_the_bound_and_names_that_are_no_text_pass() -> None:
    parsed(json.dumps(record("T", field(LONG[1:], "int"))), "east.t-value")
    parsed(json.dumps({"type": "record", "name": 7, "aliases": 3, "fields": [5]}), "east.t-value")


def test_a_comparison_of_many_branches_is_refused_rather_than_made() -> None:
    kinds = [record(f"R{one}", field("a", "int")) for one in range(500)]
    wide = record("T", field("f0", kinds), *(field(f"f{n}", [f"R{m}" for m in range(500)])
                                             for n in range(1, 20)))  # fmt: skip
    with pytest.raises(RefusedError, match="more than 500000 steps") as refused:
        breaks(json.dumps(wide), json.dumps(wide), Level.BACKWARD)
    assert refused.value.code == "schema_too_large"


@pytest.mark.timeout(60)
def test_a_record_of_very_many_fields_is_compared() -> None:
    """Each of them is looked at by itself, not with all the others."""
    fields = [field(f"f{one}", "int", default=0, aliases=[f"g{one}"]) for one in range(20_000)]
    text = json.dumps(record("T", *fields))
    assert breaks(text, text, Level.BACKWARD) == []


def test_a_chain_of_a_thousand_types_is_compared() -> None:
    chain = [field("d0", record("R0", field("f", "int")))]
    chain += [field(f"d{n}", record(f"R{n}", field("f", f"R{n - 1}"))) for n in range(1, 1000)]
    text = json.dumps(record("T", *chain))
    assert breaks(text, text, Level.FULL) == []
    assert len(fields(text)) == 5000


def test_records_within_each_other_are_compared_once() -> None:
    """P needs Q, and Q may hold P."""

    def q(bad: str) -> dict[str, Any]:
        p = record("P", field("q", "Q"))
        return record("Q", field("p", ["null", p]), field("bad", bad))

    writer, reader = (
        record("T", field("a", q(kind)), field("b", "P")) for kind in ("string", "int")
    )
    assert [path for path, _ in Comparison(reader, writer).reasons()] == ["a.bad"]
    assert [one["name"] for one, _ in Comparison(reader, writer).pairs()] == ["T", "Q", "P"]


def test_the_size_of_a_schema_is_that_with_its_names_replaced() -> None:
    schema = doubling(3)
    assert expanded_size(schema) > expanded_size(doubling(2))
    assert expanded_size(doubling(60)) > 2**60
    itself = record("N", field("next", ["null", "N"]))
    assert expanded_size(itself) < 10
    require_bounded(schema, "east.t-value")


def test_a_long_enum_is_cut_where_its_fields_are_listed() -> None:
    def of(symbols: int) -> list[str]:
        kind = {"type": "enum", "name": "E", "symbols": [f"S{one}" for one in range(symbols)]}
        inner = record("R", field("e", kind))
        uses = [field(f"f{one}", "R") for one in range(3_000)]
        return [one.type for one in fields(json.dumps(record("T", field("r", inner), *uses)))]

    found = of(20_000)
    assert max(map(len, found)) < 1_200
    # one symbol more shows
    assert found != of(20_001)


EMPTY = {"type": "fixed", "name": "Nothing", "size": 0}
NO_BYTES = {
    "null": "null",
    "null, written as a type": {"type": "null"},
    "a fixed of no size": EMPTY,
    "a record without fields": record("E"),
    "a record of such fields": record(
        "E", field("n", "null"), field("f", EMPTY), field("g", "Nothing")
    ),
    "a record of such a record": record("E", field("a", record("F")), field("b", "F")),
}


@pytest.mark.parametrize("items", NO_BYTES.values(), ids=NO_BYTES)
def test_an_array_whose_items_take_no_bytes_is_refused(items: Any) -> None:
    schema = record(
        "T", field("s", "string"), field("a", ["null", {"type": "array", "items": items}])
    )
    with pytest.raises(RefusedError, match=r"the subject: the items of an array, .* take no bytes"):
        parsed(json.dumps(schema), "the subject")
    with pytest.raises(RefusedError, match="take no bytes"):
        Comparison(record("T", field("s", "string")), schema)


def test_an_array_of_a_name_is_refused_where_the_name_means_no_bytes() -> None:
    inner = {**record("V"), "namespace": "a"}
    other = {**record("V", field("n", "int")), "namespace": "b"}
    for items, refused in (("V", False), ("a.V", True), ("b.V", False)):
        array = field("l", {"type": "array", "items": items})
        outer = {**record("T", field("x", inner), field("y", other), array), "namespace": "b"}
        if refused:
            with pytest.raises(RefusedError, match="take no bytes"):
                require_bounded(outer, "the subject")
        else:
            require_bounded(outer, "the subject")


def test_a_record_that_holds_itself_in_every_value_is_refused() -> None:
    for inner in ("T", record("U", field("t", "T"))):
        with pytest.raises(RefusedError, match="the record T holds itself in every value: make"):
            parsed(json.dumps(record("T", field("t", inner), field("s", "string"))), "the subject")


def test_a_record_that_may_hold_itself_is_not_refused() -> None:
    for inner in (["null", "T"], {"type": "array", "items": "T"}, {"type": "map", "values": "T"}):
        parsed(json.dumps(record("T", field("t", inner))), "the subject")
    value = {**record("Value", field("n", "int")), "namespace": "west"}
    parsed(json.dumps({**record("Value", field("v", value)), "namespace": "east"}), "the subject")


def test_records_within_each_other_a_thousand_times_come_to_an_end() -> None:
    held = [
        record(f"R{number}", *(field(f"f{one}", f"R{number + 1}") for one in range(40)))
        for number in range(1500)
    ]
    last = record("R1500")
    whole = record(
        "T",
        field("l", {"type": "array", "items": "R0"}),
        *(field(f"h{number}", one) for number, one in enumerate([*held, last])),
    )
    with pytest.raises(RefusedError, match="take no bytes"):
        require_bounded(whole, "the subject")


RECURSIVE = {
    "a union": ["null", "N"],
    "items": {"type": "array", "items": "N"},
    "values": {"type": "map", "values": ["null", "N"]},
    "another record": ["null", record("M", field("n", ["null", "N"]))],
}


@pytest.mark.parametrize("inner", RECURSIVE.values(), ids=RECURSIVE)
def test_a_record_that_may_hold_itself_is_found(inner: Any) -> None:
    whole = record("T", field("a", "int"), field("n", ["null", record("N", field("n", inner))]))
    with pytest.raises(
        RefusedError, match=r"the subject: a record [NM] may hold another one, in any"
    ):
        require_no_recursion(whole, "the subject")


def test_a_record_that_may_hold_itself_is_found_by_a_name_without_a_namespace() -> None:
    """Avro looks for it there where the namespace around it has none."""
    inner = {**record("N", field("r", ["null", "R"])), "namespace": "a"}
    with pytest.raises(RefusedError, match=r"a record (a\.N|R) may hold another"):
        require_no_recursion(record("R", field("n", ["null", inner])), "the subject")
    for space in (None, "b"):
        inner = {**record("N", field("r", ["null", "R"])), "namespace": space}
        whole = {**record("R", field("n", ["null", inner])), "namespace": "b"}
        with pytest.raises(RefusedError, match=r"a record b\.\w may hold another"):
            require_no_recursion(whole, "the subject")


def test_a_record_that_is_used_twice_does_not_hold_itself() -> None:
    require_no_recursion(doubling(60), "the subject")
    value = {**record("Value", field("n", "int")), "namespace": "west"}
    whole = {**record("Value", field("v", value), field("w", ["null", "west.Value"]))}
    require_no_recursion({**whole, "namespace": "east"}, "the subject")
