"""A statement over topics whose schemas streaming SQL cannot read."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mesh_events.errors import RefusedError
from processors.clusters.kafka import Topic
from spark_streams.sql.errors import SqlError
from spark_streams.sql.plan import MOST_TYPES, planned, require_keys_in_place, require_no_table
from spark_streams.sql.text.parse import parse

USER = '{"type": "record", "name": "User", "fields": [{"name": "userid", "type": "long"}]}'
TEXT = """INSERT INTO w.out
SELECT c.userid AS userid
FROM w.clicks c JOIN w.users u ON c.userid = u.userid"""


class Schemas:
    """A registry that has Avro, but for one subject."""

    def __init__(self, odd: str, code: str = "unsupported_schema") -> None:
        self._odd, self._code = odd, code

    def versions(self, subject: str) -> Mapping[int, str]:
        if subject == self._odd:
            raise RefusedError(self._code, "values of it are PROTOBUF")
        return {1: USER}


class Versions(Schemas):
    """A registry in which one subject has these versions."""

    def __init__(self, subject: str, versions: Mapping[int, str]) -> None:
        super().__init__("none")
        self._subject, self._versions = subject, versions

    def versions(self, subject: str) -> Mapping[int, str]:
        return self._versions if subject == self._subject else super().versions(subject)


def user_with(field: dict[str, Any]) -> str:
    """The schema of users, with one more field."""
    user = json.loads(USER)
    return json.dumps({**user, "fields": [*user["fields"], field]})


@pytest.mark.parametrize(
    ("subject", "place"),
    [
        ("w.clicks-value", "line 3, column 6"),
        ("w.users-value", "line 3, column 22"),
        ("w.users-key", "line 3, column 22"),
    ],
)
def test_a_source_that_is_not_avro_is_refused_at_its_place(subject: str, place: str) -> None:
    assert planned(parse(TEXT), {}, Schemas("none"))
    with pytest.raises(SqlError) as told:
        planned(parse(TEXT), {}, Schemas(subject))
    assert told.value.code == "unsupported_schema"
    said = str(told.value)
    assert said.startswith(f"{place}: values of it are PROTOBUF: streaming SQL reads Avro; ")


def test_a_statement_over_more_types_than_spark_analyses_in_time_is_refused() -> None:
    """One union, one null and one string for each column, and the column of the result."""
    nullable = [
        {"name": f"c{number}", "type": ["null", "string"], "default": None}
        for number in range(MOST_TYPES // 4)
    ]
    user = json.loads(USER)
    text = TEXT.replace("c.userid AS userid", "c.*")

    def plan(count: int) -> None:
        wide = json.dumps({**user, "fields": [*user["fields"], *nullable[:count]]})
        planned(parse(text), {}, Versions("w.clicks-value", {7: wide}))

    # the records of both and their keys have some types of their own
    plan(MOST_TYPES // 4 - 3)
    with pytest.raises(SqlError) as refused:
        plan(MOST_TYPES // 4)
    assert refused.value.code == "schema_too_large"
    assert str(refused.value).startswith("line 3, column 6: ")


def refusal(versions: Mapping[int, str]) -> str:
    """Why a stream whose values have these versions is refused: one is read as another."""
    with pytest.raises(SqlError) as refused:
        planned(parse(TEXT), {}, Versions("w.clicks-value", versions))
    assert refused.value.code == "incompatible_schema"
    return str(refused.value)


def test_a_time_that_was_counted_in_another_unit_is_refused_not_misread() -> None:
    versions = {
        number: user_with(
            {"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}}
        )
        for number, unit in ((7, "millis"), (8, "micros"))
    }

    said = refusal(versions)
    assert said.startswith("line 3, column 6: at of w.clicks-value changed its meaning")
    assert "schema 7" in said
    del versions[7]
    assert planned(parse(TEXT), {}, Versions("w.clicks-value", versions))


def test_a_branch_of_a_union_that_moved_is_refused_not_misread() -> None:
    """A text names a branch by its position: `u.member0`."""
    unions = (["null", "string", "int"], ["null", "string", "int", "bytes"], ["int", "string"])
    versions = {
        number: user_with({"name": "u", "type": one}) for number, one in enumerate(unions, 7)
    }

    said = refusal(versions)
    assert said.startswith("line 3, column 6: u of w.clicks-value changed its meaning")
    assert "schema 7" in said
    assert "string was written at position 0 of the union" in said
    del versions[9]
    assert planned(parse(TEXT), {}, Versions("w.clicks-value", versions))


@pytest.mark.parametrize("types", [("int", ["int", "string"]), (["int", "string"], "string")])
def test_a_value_that_became_a_branch_among_several_is_refused(types: Sequence[Any]) -> None:
    """CAST(u AS STRING) would give `5` of one and `{5, null}` of the other."""
    versions = {
        number: user_with({"name": "u", "type": one}) for number, one in enumerate(types, 7)
    }

    said = refusal(versions)
    assert "u of w.clicks-value changed its meaning from the schema 7" in said
    assert "a value by itself is no branch among several" in said


def test_a_symbol_that_was_dropped_is_refused_not_misread() -> None:
    side = {"type": "enum", "name": "Side", "default": "A"}
    versions = {
        number: user_with({"name": "side", "type": {**side, "symbols": list(symbols)}})
        for number, symbols in ((7, "AB"), (8, "ABC"), (9, "AB"))
    }

    said = refusal(versions)
    assert said.startswith("line 3, column 6: side of w.clicks-value changed its meaning")
    assert "schema 8" in said
    assert "the symbols C are missing and the default is A" in said
    del versions[9]
    assert planned(parse(TEXT), {}, Versions("w.clicks-value", versions))


def test_long_defaults_of_the_items_of_a_list_are_refused() -> None:
    """A record of 200 KB, whose items lack a text of 100 KB, would be 20 GB when it is read."""

    def listed(*more: Any) -> str:
        item = {"type": "record", "name": "Item", "fields": [{"name": "a", "type": "int"}, *more]}
        return user_with({"name": "list", "type": {"type": "array", "items": item}})

    long = {"name": "b", "type": "string", "default": "x" * 1000}
    registry = Versions("w.clicks-value", {7: listed(), 8: listed(long)})
    with pytest.raises(SqlError) as told:
        planned(parse(TEXT), {}, registry)
    assert told.value.code == "schema_too_large"
    assert "that the schema 7 wrote" in str(told.value)
    short = {**long, "default": "x" * 100}
    assert planned(parse(TEXT), {}, Versions("w.clicks-value", {7: listed(), 8: listed(short)}))


def keyed(*types: Any) -> Versions:
    """A registry whose subject `w.users-key` has a version for each type of `userid`."""
    fields = [[{"name": "userid", "type": one}] for one in types]
    versions = {
        number: json.dumps({"type": "record", "name": f"Key{number}", "fields": one})
        for number, one in enumerate(fields, 11)
    }

    return Versions("w.users-key", versions)


def test_a_table_whose_key_has_several_types_is_refused() -> None:
    with pytest.raises(RefusedError, match="a key of several types") as refused:
        planned(parse(TEXT), {}, keyed(["null", "int", "string"]))
    assert refused.value.code == "schema_not_usable"


NULLABLE = ["null", "long"]
MILLIS, MICROS = (
    {"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros")
)

DEBEZIUMS_MILLIS, DEBEZIUMS_MICROS = (
    {"type": "long", "connect.name": f"io.debezium.time.{unit}Timestamp"} for unit in ("", "Micro")
)


@pytest.mark.parametrize(
    "types",
    [("long", NULLABLE), (NULLABLE, "long"), ("long", NULLABLE, "long"), (MILLIS, MICROS),
     (DEBEZIUMS_MILLIS, DEBEZIUMS_MICROS), (NULLABLE, ["long", "null"]), ("int", "string")],
)  # fmt: skip
def test_a_table_whose_keys_are_encoded_in_two_ways_is_refused(types: Sequence[Any]) -> None:
    with pytest.raises(SqlError) as refused:
        planned(parse(TEXT), {}, keyed(*types))
    assert refused.value.code == "incompatible_schema"
    assert str(refused.value).startswith("line 3, column 22: the schemas 11 and ") or len(types) > 2
    assert "w.users-key encode the same key differently" in str(refused.value)


@pytest.mark.parametrize("types", [("int", "long"), ("long", {"type": "long", "doc": "x"})])
def test_a_table_whose_keys_have_the_same_bytes_under_each_schema_is_taken(
    types: Sequence[Any],
) -> None:
    assert planned(parse(TEXT), {}, keyed(*types)).tables["u"].shape.key_writers.keys() == {11, 12}


@pytest.mark.parametrize(
    ("types", "partitions", "cleanup", "refused"),
    [
        (("int", "long"), 2, "delete", True),
        (("int", "long"), 1, "delete", False),
        (("int", "long"), 1, "compact", True),
        (("int", "long"), 1, "delete, compact", True),
        (("long",), 2, "compact", False),
    ],
)
def test_a_table_that_mixes_keys_is_refused_where_these_have_two_schemas(
    types: Sequence[Any], partitions: int, cleanup: str, refused: bool
) -> None:
    """The id of the schema is a part of a key's bytes: Kafka spreads and compacts by these."""
    plan = planned(parse(TEXT), {}, keyed(*types))
    users = Topic("w.users", "id", partitions, {"cleanup.policy": cleanup})
    spread = {"w.clicks": "", "w.users": users.mixes_keys}
    if not refused:
        require_keys_in_place(plan, spread)
        return
    with pytest.raises(SqlError, match="have the schemas 11, 12") as told:
        require_keys_in_place(plan, spread)
    assert told.value.code == "keys_moved"


@pytest.mark.parametrize(("types", "refused"), [(("int", "long"), True), (("long",), False)])
def test_rows_of_a_table_have_keys_of_one_schema(types: Sequence[Any], refused: bool) -> None:
    plan = planned(parse("SELECT u.userid FROM TABLE(w.users) u"), {}, keyed(*types))
    if not refused:
        require_keys_in_place(plan, {})
        return
    with pytest.raises(SqlError, match="would stay as it was") as told:
        require_keys_in_place(plan, {})
    assert told.value.code == "keys_moved"


def test_keys_of_the_stream_may_be_encoded_in_two_ways() -> None:
    text = "INSERT INTO w.out SELECT u.userid FROM w.users u"
    assert planned(parse(text), {}, keyed("long", NULLABLE))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT id FROM u", "SELECT id FROM TABLE(u)"),
        ("SELECT id FROM TABLE(u)", "SELECT id FROM u"),
        ("SELECT id FROM TABLE(u)", "SELECT id FROM TABLE(u) WHERE id > 1"),
    ],
)
def test_a_table_is_made_by_one_text_only(before: str, after: str) -> None:
    with pytest.raises(SqlError, match="delete the statement"):
        require_no_table(parse(before), parse(after))
    require_no_table(parse("SELECT id FROM u"), parse("SELECT id AS x FROM u"))


def test_what_else_a_registry_refuses_keeps_its_code() -> None:
    with pytest.raises(RefusedError, match="values of it") as told:
        planned(parse(TEXT), {}, Schemas("w.clicks-value", "other"))
    assert told.value.code == "other"


def test_a_number_that_had_another_scale_is_refused_not_misread() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9}
    versions = {
        number: user_with({"name": "amount", "type": {**decimal, "scale": scale}})
        for number, scale in ((7, 2), (8, 4))
    }

    said = refusal(versions)
    assert "line 3, column 6: amount of w.clicks-value changed its meaning" in said


def test_a_number_that_would_lose_digits_is_refused_not_misread() -> None:
    versions = {
        number: user_with({"name": "n", "type": kind})
        for number, kind in ((7, "int"), (8, "long"), (9, "double"))
    }

    said = refusal(versions)
    assert "n of w.clicks-value changed its meaning from the schema 8 to the latest" in said
    assert "long was written, double is read: large numbers lose digits" in said
    del versions[8]
    assert planned(parse(TEXT), {}, Versions("w.clicks-value", versions))


def test_an_alias_that_would_take_another_fields_values_is_refused() -> None:
    versions = {
        7: USER,
        8: user_with({"name": "x", "type": "long", "default": 9, "aliases": ["userid"]}),
    }

    said = refusal(versions)
    assert "User.x of the latest schema of w.clicks-value has the alias userid" in said


def test_a_topic_that_is_joined_many_times_is_planned_once() -> None:
    asked: list[str] = []

    class Asked(Schemas):
        def versions(self, subject: str) -> Mapping[int, str]:
            asked.append(subject)
            return super().versions(subject)

    more = " ".join(f"JOIN w.users u{n} ON c.userid = u{n}.userid" for n in range(5))
    plan = planned(parse(f"{TEXT} {more}"), {}, Asked("none"))
    assert set(plan.tables) == {"u", *(f"u{n}" for n in range(5))}
    assert len(asked) == len(set(asked)) == 4


def test_the_schemas_of_all_topics_of_a_statement_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_streams.sql.plan.MOST_TOGETHER", 4 * len(USER))
    assert planned(parse(TEXT), {}, Schemas("none"))
    monkeypatch.setattr("spark_streams.sql.plan.MOST_TOGETHER", 4 * len(USER) - 1)
    with pytest.raises(RefusedError, match=r"with w\.users-key the schemas of the topics") as told:
        planned(parse(TEXT), {}, Schemas("none"))
    assert told.value.code == "too_many_versions"
