"""Which type a name means, where several have one short name."""

from typing import Any

import pytest

from mesh_events.schema.full_names import named_types, with_full_names


def record(name: str, *types: Any, **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": one} for number, one in enumerate(types)]
    return {"type": "record", "name": name, **more, "fields": fields}


def types(schema: Any) -> list[Any]:
    return [one["type"] for one in with_full_names(schema)["fields"]]


def test_a_short_name_is_that_of_the_namespace_around_it() -> None:
    inner = record("T", "T", "b.T", namespace="b")
    found = types(record("R", record("T"), "T", inner, "T", "a.T", namespace="a"))
    assert [found[0]["name"], *found[1:2], *found[3:]] == ["a.T", "a.T", "a.T", "a.T"]
    assert found[2] == record("b.T", "b.T", "b.T")
    assert types(record("x.y.R", record("T", "R"), "T"))[1] == "x.y.T"


def test_a_name_of_no_namespace_is_meant_where_the_one_around_has_none_of_it_yet() -> None:
    """As Avro's readers do, who read a schema from its beginning to its end."""
    plain, other = record("T"), record("T", namespace="a")
    inside = record("In", "T", other, "T", namespace="a")
    in_a = types(record("R", plain, inside))[1]
    assert [in_a["fields"][0]["type"], in_a["fields"][2]["type"]] == ["T", "a.T"]
    assert (
        types(record("R", record("In", "T", namespace="a"), plain))[0]["fields"][0]["type"] == "T"
    )
    given = record("T", namespace=None)
    assert types(record("R", given, "T", namespace="a")) == [record("a.T"), "a.T"]
    empty = record("T", "T", namespace="")
    assert types(record("R", empty, "b.U", namespace="a")) == [record("T", "T"), "b.U"]


def test_aliases_have_full_names_and_fields_keep_theirs() -> None:
    schema = record("New", "int", namespace="a", aliases=["Old", "b.Old"])
    schema["fields"][0]["aliases"] = ["old"]
    found = with_full_names(schema)
    assert found["aliases"] == ["a.Old", "b.Old"]
    assert found["fields"][0]["aliases"] == ["old"]


@pytest.mark.parametrize(
    ("braces", "meant"),
    [
        ({"type": "T"}, "a.T"),
        ({"type": ["null", "T"]}, ["null", "a.T"]),
        ({"type": {"type": "array", "items": "T"}}, {"type": "array", "items": "a.T"}),
        (
            {"type": {"type": "bytes", "scale": 2}, "scale": 4},
            {"type": "bytes", "scale": 4},
        ),
        ({"type": {"type": "map", "values": {"type": "T"}}}, {"type": "map", "values": "a.T"}),
        ({"type": "long"}, {"type": "long"}),
    ],
)
def test_a_type_in_braces_stands_as_itself(braces: Any, meant: Any) -> None:
    assert types(record("R", record("T"), braces, namespace="a"))[1] == meant


def test_types_are_listed_by_their_full_names() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 2, "namespace": "b"}
    schema = record("R", record("T"), ["null", record("T", fixed, namespace="b")], namespace="a")
    assert list(named_types(schema)) == ["a.R", "a.T", "b.T", "b.F"]
