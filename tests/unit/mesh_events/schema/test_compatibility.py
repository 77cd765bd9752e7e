"""Old readers bear new records and new readers old ones, for every schema on a recorded log."""

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_many

from mesh_events import avro
from mesh_events.codec import build
from mesh_events.schema.compatibility import (
    Level,
    breaks,
    fields,
    misread,
    taking_aliases,
    unreadable,
)
from mesh_events.vocabulary import ALL, EVENTS
from projections.replay import replay
from tests.fixtures import recording

SAMPLES = 20
Change = Callable[[dict[str, Any]], None]


def recorded() -> list[tuple[str, str]]:
    """(event name, schema text) of every schema that a recorded log introduced."""
    texts = {
        text for log in recording.names() for text in replay(recording.load(log)).schemas.values()
    }
    return sorted((json.loads(text)["name"], text) for text in texts)


def carried(writer: str, reader: str) -> list[dict[str, Any]]:
    """Generated records written under one schema and read under the other; raises if one cannot."""
    found = []
    for datum in generate_many(avro.parsed(writer), SAMPLES):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, avro.parsed(writer), datum)
        out.seek(0)
        found.append(fastavro.schemaless_reader(out, avro.parsed(writer), avro.parsed(reader)))
    return found


def changed(name: str, change: Change) -> str:
    """Today's schema of an event after a change."""
    schema = avro.derive(ALL[name])
    change(schema)
    return json.dumps(schema)


def add(**field: Any) -> Change:
    return lambda schema: schema["fields"].append({"name": "mood", **field})


def drop(name: str) -> Change:
    def change(schema: dict[str, Any]) -> None:
        schema["fields"] = [field for field in schema["fields"] if field["name"] != name]

    return change


def retype(name: str, new: Any) -> Change:
    def change(schema: dict[str, Any]) -> None:
        [field] = [field for field in schema["fields"] if field["name"] == name]
        field["type"] = new

    return change


def test_recorded_logs_hold_every_event_type() -> None:
    assert {name for name, _ in recorded()} == set(EVENTS)


@pytest.mark.parametrize(("name", "old"), recorded())
def test_todays_reader_bears_recorded_events(name: str, old: str) -> None:
    for datum in carried(old, avro.text_of(name)):
        assert isinstance(build(ALL[name], datum), ALL[name])


@pytest.mark.parametrize(("name", "old"), recorded())
def test_a_reader_of_that_day_bears_todays_events(name: str, old: str) -> None:
    assert len(carried(avro.text_of(name), old)) == SAMPLES


@pytest.mark.parametrize(
    "change",
    [
        add(type="string", default=""),
        add(type=["null", "string"], default=None),
        drop("tags"),
        drop("version"),
    ],
)
def test_fields_with_a_default_come_and_go(change: Change) -> None:
    today, other = avro.text_of("ProductPublished"), changed("ProductPublished", change)
    assert carried(today, other)
    assert carried(other, today)


def test_an_unknown_symbol_is_read_as_unknown() -> None:
    def change(schema: dict[str, Any]) -> None:
        [field] = [field for field in schema["fields"] if field["name"] == "quality"]
        field["type"]["symbols"] = ["GOLDEN"]
        del field["type"]["default"]

    new = changed("ProductPublished", change)
    read = carried(new, avro.text_of("ProductPublished"))
    assert {datum["quality"] for datum in read} == {"UNKNOWN"}


@pytest.mark.parametrize(
    "change",
    [add(type="string"), retype("sla", "string"), retype("product", "long")],
)
def test_a_change_that_old_records_cannot_bear_is_found(change: Change) -> None:
    new = changed("ProductPublished", change)
    with pytest.raises(fastavro.read.SchemaResolutionError):
        carried(avro.text_of("ProductPublished"), new)


@pytest.mark.parametrize("change", [drop("owner"), retype("sla", "string")])
def test_a_change_that_old_readers_cannot_bear_is_found(change: Change) -> None:
    new = changed("ProductPublished", change)
    with pytest.raises(fastavro.read.SchemaResolutionError):
        carried(new, avro.text_of("ProductPublished"))


def of_fields(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": list(fields)}


ALONE = "a value by itself is no branch among several"
A, B = {"name": "a", "type": "int", "default": 7}, {"name": "b", "type": "int", "default": 7}
B_WAS_A = {**B, "aliases": ["a"]}


@pytest.mark.parametrize(
    ("reader", "writer", "taken"),
    [
        (of_fields(B_WAS_A), of_fields(A), []),
        (of_fields(B_WAS_A), of_fields(B), []),
        (of_fields(A, B_WAS_A), of_fields(A), [("Row.b", "a")]),
        (of_fields(B_WAS_A), of_fields(A, B), [("Row.b", "a")]),
        (
            of_fields({"name": "in", "type": of_fields(A, B_WAS_A) | {"name": "In"}}),
            of_fields(),
            [("In.b", "a")],
        ),
    ],
)
def test_an_alias_that_takes_another_fields_values_does_not_fit(
    reader: Any, writer: Any, taken: list[tuple[str, str]]
) -> None:
    assert taking_aliases(reader, writer) == taken
    told = [path for path, why in unreadable(reader, writer) if "its alias" in why]
    assert told == [path for path, _ in taken]


def decimal(scale: int | None) -> dict[str, Any]:
    logical = {"logicalType": "decimal", "precision": 9, "scale": scale}
    return of_fields({"name": "n", "type": {"type": "bytes", **(logical if scale else {})}})


@pytest.mark.parametrize(("old", "new"), [(2, 4), (None, 2), (2, None)])
def test_digits_that_would_mean_another_number_are_told(old: int | None, new: int | None) -> None:
    assert [path for path, _ in misread(decimal(new), decimal(old))] == ["n"]
    assert misread(decimal(old), decimal(old)) == []
    wider = decimal(2)
    wider["fields"][0]["type"]["precision"] = 12
    assert misread(wider, decimal(2)) == []


def of_long(scale: int | None) -> dict[str, Any]:
    logical = {"logicalType": "custom-decimal", "precision": 9, "scale": scale}
    return of_fields({"name": "n", "type": {"type": "long", **(logical if scale else {})}})


@pytest.mark.parametrize(("old", "new"), [(2, 4), (None, 2), (2, None)])
def test_a_decimal_that_spark_alone_knows_keeps_its_digits(
    old: int | None, new: int | None
) -> None:
    """Spark reads the long 1234 as 12.34 and as 0.1234; to all others it stays 1234."""
    told = misread(of_long(new), of_long(old))
    assert [(path, why.rpartition(": ")[2]) for path, why in told] == [
        ("n", "the same digits mean another number")
    ]
    assert misread(of_long(old), of_long(old)) == []


@pytest.mark.parametrize("more", [{"type": "enum", "symbols": ["x"]}, {"type": "fixed", "size": 2}])
@pytest.mark.parametrize("around", [lambda one: one, lambda one: ["null", one]])
def test_a_type_without_fields_keeps_its_name_too(more: dict[str, Any], around: Any) -> None:
    """Java's readers refuse each value of an enum or a fixed that is called otherwise."""

    def called(name: str, *aliases: str) -> str:
        kind = {"name": name, "aliases": list(aliases), **more}
        return json.dumps(of_fields({"name": "n", "type": around(kind)}))

    told = breaks(called("Old"), called("New"), Level.BACKWARD)
    assert [one.reason for one in told] == [f"the {more['type']} Old was written, New is read"]
    assert breaks(called("Old"), called("New", "Old"), Level.BACKWARD) == []
    assert breaks(called("a.Old"), called("b.Old"), Level.FULL) == []


@pytest.mark.parametrize(
    ("written", "read", "rounded"),
    [
        ("int", "long", False),
        ("int", "double", False),
        ("float", "double", False),
        ("int", "float", True),
        ("long", "float", True),
        ("long", "double", True),
        (["null", "long"], ["null", "double"], True),
        (["string", "long"], ["string", "long", "double"], False),
        ({"type": "map", "values": "long"}, {"type": "map", "values": ["double"]}, True),
    ],
)
def test_a_number_that_would_lose_digits_is_told(written: Any, read: Any, *, rounded: bool) -> None:
    """9007199254740993 of a long is 9007199254740992.0 as a double."""
    old, new = (of_fields({"name": "n", "type": one}) for one in (written, read))
    told = misread(new, old)
    assert bool(told) is rounded
    assert [why.endswith(" is read: large numbers lose digits") for _, why in told] == [True] * len(
        told
    )
    assert bool(breaks(json.dumps(old), json.dumps(new), Level.BACKWARD)) is rounded


_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("string", _DECIMAL),
        (_DECIMAL, "string"),
        (["null", "string"], ["null", _DECIMAL]),
        (["null", "string", _DECIMAL], ["null", "string"]),
        ({"type": "array", "items": "string"}, {"type": "array", "items": _DECIMAL}),
        ({"type": "map", "values": _DECIMAL}, {"type": "map", "values": "string"}),
    ],
)
def test_a_text_that_would_be_read_as_a_decimal_is_told(old: Any, new: Any) -> None:
    before, after = (of_fields({"name": "n", "type": one}) for one in (old, new))
    told = [path.strip("[]{}") for path, why in misread(after, before) if ALONE not in why]
    assert told == ["n"]
    assert [
        one.path.strip("[]{}") for one in breaks(json.dumps(before), json.dumps(after), Level.FULL)
    ]


def test_a_union_with_both_reads_texts_and_decimals_each_as_what_they_are() -> None:
    both = of_fields({"name": "n", "type": ["null", "string", _DECIMAL]})
    for one in ("null", "string", _DECIMAL):
        told = unreadable(both, of_fields({"name": "n", "type": one}))
        assert [why for _, why in told if ALONE not in why] == []
    assert (
        misread(
            of_fields({"name": "n", "type": "string"}), of_fields({"name": "n", "type": "bytes"})
        )
        == []
    )


def money(scale: int, **more: Any) -> dict[str, Any]:
    return {
        **of_fields({"name": "amount", "type": {**_DECIMAL, "scale": scale}}),
        "name": "Money",
    } | more


def orders(*fields: dict[str, Any]) -> dict[str, Any]:
    return {**of_fields(*fields), "namespace": "shop"}


def test_types_of_one_short_name_are_told_apart_by_their_namespaces() -> None:
    """A second Money, of another namespace, must not stand for the one that is meant."""
    old = orders({"name": "first", "type": money(2)})
    new = orders(
        {"name": "zero", "type": ["null", money(4)], "default": None},
        {"name": "first", "type": "Money"},
        {"name": "other", "type": ["null", money(2, namespace="far")], "default": None},
    )
    assert [path for path, _ in misread(new, old)] == ["first.amount"]
    told = breaks(json.dumps(old), json.dumps(new), Level.FULL)
    assert [one.path for one in told] == ["first.amount"] * 2
    types = {one.path: one.type for one in fields(json.dumps(new))}
    assert types["first"] == "shop.Money"
    assert types["other"] == "null | record far.Money = null"
    assert types["first.amount"] == "decimal(9,4)"
    assert types["other.amount"] == "decimal(9,2)"


def test_an_alias_is_told_where_the_record_moved_to_another_namespace() -> None:
    reader, writer = (
        {**of_fields(*one), "namespace": f"n{len(one)}"} for one in ([B_WAS_A], [A, B])
    )
    assert taking_aliases(reader, writer) == [("n1.Row.b", "a")]


def counting(unit: str, kind: str = "long") -> dict[str, Any]:
    return {"type": kind, "logicalType": f"timestamp-{unit}"}


def named(name: str, scale: int, **more: Any) -> dict[str, Any]:
    return money(scale, name=name, **more)


@pytest.mark.parametrize(
    ("written", "read", "told"),
    [
        (counting("millis"), [counting("micros"), "double"], True),
        (["null", counting("millis")], ["null", counting("micros"), "double"], True),
        (["null", counting("millis")], ["null", "double", counting("micros")], True),
        (["null", counting("millis")], ["null", counting("millis"), "double"], False),
        # by the full name, then by the short one
        (named("P", 2), [named("Q", 4), named("P", 2)], False),
        (named("y.P", 2), ["null", named("x.P", 4), named("y.P", 2)], False),
        (named("y.P", 2), ["null", named("x.P", 2), named("y.P", 4)], True),
        (named("z.P", 2), ["null", named("x.P", 2), named("y.P", 4)], True),
        # an alias renames what was written before that is looked for
        (named("P", 2), [named("P", 2), named("Q", 4, aliases=["P"])], True),
        (named("P", 2), ["null", named("Q", 4, aliases=["P"])], True),
    ],
)
def test_a_branch_is_the_one_that_readers_pick(written: Any, read: Any, *, told: bool) -> None:
    old, new = (of_fields({"name": "at", "type": one}) for one in (written, read))
    assert any(ALONE not in why for _, why in misread(new, old)) is told


def one_of(*branches: str | dict[str, Any]) -> list[Any]:
    """A union: of a record for each name in capitals."""
    made = (named(one, 2) if isinstance(one, str) and one.isupper() else one for one in branches)
    return list(made)


_SIDE = {"type": "enum", "name": "Side", "symbols": ["BUY"]}
_Q_WAS_P = named("Q", 2, aliases=["P"])


@pytest.mark.parametrize(
    ("written", "read", "branch"),
    [
        (one_of("null", "P", "Q"), one_of("null", "Q", "P"), "record P"),
        (one_of("null", "string", _SIDE), one_of("null", _SIDE, "string"), "string"),
        (one_of("null", "P", "Q"), one_of("null", "R", "P", "Q"), "record P"),
        (one_of("null", "P", "Q"), one_of("null", "P", "R", "Q"), "record Q"),
        (one_of("P", "Q", "R"), one_of("Q", "R"), "record P"),
        (one_of("P", "Q", "R"), one_of("P", "R"), "record Q"),
        (one_of("P", "Q"), one_of("R", "Q"), "record P"),
        (one_of("int", "string"), one_of("string", "long"), "int"),
        (one_of("int", "string", "long"), one_of("long", "string"), "long"),
        # by the name that it had
        (one_of("P", "R"), one_of("R", _Q_WAS_P), "record P"),
        (one_of(named("x.P", 2), named("y.P", 2)), one_of(named("y.P", 2), named("x.P", 2)), "x.P"),
    ],
)
def test_a_branch_at_another_position_of_its_union_is_told(
    written: Any, read: Any, branch: str
) -> None:
    old, new = (of_fields({"name": "u", "type": one}) for one in (written, read))
    [(path, why)] = misread(new, old)
    assert path == "u"
    assert f"{branch} was written at position " in why
    assert ("u", why) in unreadable(new, old)
    for level in (Level.BACKWARD, Level.FULL):
        assert why in [one.reason for one in breaks(json.dumps(old), json.dumps(new), level)]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (one_of("null", "P", "Q"), one_of("null", "P", "Q", "R")),
        (one_of("null", "P", "Q"), one_of("P", "null", "Q")),
        (one_of("P", "Q"), one_of("P", "Q", "null")),
        (one_of("P", "Q", "R"), one_of("P", "Q")),
        (one_of("int", "string"), one_of("long", "bytes")),
        (one_of("P", "R"), one_of(_Q_WAS_P, "R")),
        (one_of(named("x.P", 2), named("y.P", 2)), one_of(named("x.P", 2), named("y.P", 2))),
        # of one branch beside null it is the value itself
        (one_of("null", "P"), one_of("P")),
        # and of numbers of two lengths a number
        ("int", one_of("int", "long")),
        (one_of("null", "int", "long"), one_of("null", "long", "int")),
        (one_of("float", "double"), "double"),
        (one_of("null"), one_of("null", "P", "Q")),
    ],
)
def test_branches_that_stay_where_they_were_are_read_as_they_were(written: Any, read: Any) -> None:
    old, new = (of_fields({"name": "u", "type": one}) for one in (written, read))
    assert misread(new, old) == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("string", one_of("string", "int")),
        (one_of("null", "int"), one_of("null", "string", "int")),
        (one_of("P"), one_of("P", "Q")),
        (one_of("null", "P", "Q"), one_of("null", "Q")),
        (one_of("int", "string"), "string"),
        (one_of("int", "long"), one_of("int", "long", "string")),
    ],
)
def test_a_value_that_becomes_a_branch_among_several_is_told(written: Any, read: Any) -> None:
    """The column is a struct then, of which CAST(u AS STRING) makes `{5, null}`."""
    old, new = (of_fields({"name": "u", "type": one}) for one in (written, read))
    for before, after in ((old, new), (new, old)):
        [(path, why)] = misread(after, before)
        assert path == "u"
        assert why.endswith(f" is read: {ALONE}")
        assert breaks(json.dumps(before), json.dumps(after), Level.BACKWARD)


def test_a_branch_is_told_wherever_its_union_stands_and_by_the_name_of_its_type() -> None:
    def row(*branches: str) -> dict[str, Any]:
        union = {"type": "array", "items": ["null", {"type": "map", "values": list(branches)}]}
        return of_fields(
            {"name": "p", "type": named("P", 2)},
            {"name": "q", "type": named("Q", 2)},
            {"name": "in", "type": of_fields({"name": "us", "type": union}) | {"name": "In"}},
        )

    [(path, why)] = misread(row("Q", "P"), row("P", "Q"))
    assert path == "in.us[]{}"
    assert why == (
        "record P was written at position 0 of the union beside null, and is read at position 1: "
        "the same position means another branch"
    )
    assert misread(row("P", "Q"), row("P", "Q")) == []
    assert [path for path, _ in misread(["null", "int", "string"], ["string", "int"])] == [
        "the value"
    ]


def test_old_readers_are_told_of_a_branch_that_moves() -> None:
    old, new = (of_fields({"name": "u", "type": one_of(*names)}) for names in ("PQR", "QR"))
    [told] = breaks(json.dumps(old), json.dumps(new), Level.FORWARD)
    assert (told.path, told.who) == ("u", "old readers of new records")
    assert "record Q was written at position 0" in told.reason


def test_what_no_branch_is_is_told() -> None:
    old, new = (of_fields({"name": "u", "type": one}) for one in ("string", ["null", "int"]))
    assert unreadable(new, old) == [("u", "string was written, which null | int is not")]


def test_another_meaning_is_told_behind_any_number_of_other_reasons() -> None:
    many = [{"name": f"n{number}", "type": "int"} for number in range(1100)]
    old, new = (
        of_fields(*more, {"name": "at", "type": counting(unit)})
        for more, unit in (([], "millis"), (many, "micros"))
    )
    assert [path for path, _ in misread(new, old)] == ["at"]
    assert len(unreadable(new, old)) == 1000
