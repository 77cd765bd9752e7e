"""A column that had another SQL type by an earlier schema of its topic."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spark_streams.sql.errors import SqlError
from spark_streams.sql.plan import planned
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.kinds import sql_type

DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def named(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "connect.name": name}


def decimal(precision: int, scale: int = 2) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


def record(*fields: dict[str, Any], name: str = "Row") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def value(kind: Any, **more: Any) -> dict[str, Any]:
    return record(field("id", "long"), field("x", kind, **more))


def change(kind: Any) -> dict[str, Any]:
    """What Debezium writes of a row with this column."""
    row = ["null", record(field("id", "long"), field("x", kind), name="Value")]
    return record(field("before", row), field("after", ["null", "Value"]), field("op", "string"))


class Registry:
    """Each topic has these values, with the first schema of them as 7, and keys of one schema."""

    def __init__(self, *schemas: Any) -> None:
        self._schemas = dict(enumerate(map(json.dumps, schemas), 7))

    def versions(self, subject: str) -> Mapping[int, str]:
        return {1: '"long"'} if subject.endswith("-key") else self._schemas


def plan(text: str, *schemas: Any) -> Any:
    return planned(parse(text), {}, Registry(*schemas))


def refusal(text: str, *schemas: Any) -> str:
    with pytest.raises(SqlError) as told:
        plan(text, *schemas)
    assert told.value.code == "incompatible_schema"
    return str(told.value)


PLAIN, COMPUTED = "SELECT id, x FROM w.t", "SELECT id FROM w.t WHERE CAST(x AS string) <> ''"
TABLE, JOIN = (
    "SELECT id, coalesce(x, x) AS y FROM TABLE(w.t)",
    "SELECT s.id FROM w.s s JOIN w.t t ON s.id = t._key AND t.x = t.x",
)
CHANGES = "SELECT c.after.x = c.after.x AS y FROM w.t c"
OF_TIMES: list[tuple[Any, Any, str, str]] = [
    (logical("long", "time-micros"), named("long", f"{DEBEZIUM}MicroTime"), "TIME", "BIGINT"),
    (named("long", f"{DEBEZIUM}MicroTime"), logical("long", "time-micros"), "BIGINT", "TIME"),
    (
        named("long", f"{CONNECT}Timestamp"),
        logical("long", "timestamp-millis"),
        "BIGINT",
        "TIMESTAMP",
    ),
    (named("int", f"{CONNECT}Date"), logical("int", "date"), "INT", "DATE"),
    (named("int", f"{DEBEZIUM}Date"), named("int", f"{CONNECT}Date"), "DATE", "INT"),
    (
        named("long", f"{DEBEZIUM}NanoTimestamp"),
        logical("long", "timestamp-nanos"),
        "TIMESTAMP_NTZ",
        "BIGINT",
    ),
    (
        named("long", f"{DEBEZIUM}MicroTimestamp"),
        logical("long", "timestamp-micros"),
        "TIMESTAMP_NTZ",
        "TIMESTAMP",
    ),
    (named("string", f"{DEBEZIUM}ZonedTimestamp"), "string", "TIMESTAMP", "STRING"),
]
"""(Then, now) that count the same, and what SQL makes of them."""
OF_PROMOTIONS: list[tuple[Any, Any, str, str]] = [
    ("int", "double", "INT", "DOUBLE"),
    ("float", "double", "FLOAT", "DOUBLE"),
    ("float", ["float", "double"], "FLOAT", "DOUBLE"),
    ("string", "bytes", "STRING", "BINARY"),
    ("bytes", "string", "BINARY", "STRING"),
    (decimal(10), decimal(12), "DECIMAL(10,2)", "DECIMAL(12,2)"),
]


@pytest.mark.parametrize("text", [PLAIN, COMPUTED])
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(("then", "now", "was", "is_now"), OF_TIMES)
def test_a_column_that_was_another_type_to_sql_is_refused_though_it_counts_the_same(
    then: Any, now: Any, was: str, is_now: str, nullable: bool, text: str
) -> None:
    kinds = [["null", one] if nullable else one for one in (then, now)]
    said = refusal(text, *map(value, kinds))
    assert f": x of w.t is {was} by the schema 7 of its values and {is_now} by the latest" in said
    assert "sdm schema register --major" in said
    assert plan(text, value(kinds[1])), "a schema that has one version alone is taken"
    assert plan("SELECT id FROM w.t", *map(value, kinds)), "who does not read it goes on"


@pytest.mark.parametrize(("then", "now", "was", "is_now"), OF_PROMOTIONS)
def test_a_promoted_column_is_refused_where_something_is_computed_with_it(
    then: Any, now: Any, was: str, is_now: str
) -> None:
    said = refusal(COMPUTED, value(then), value(now))
    assert f"x of w.t is {was} by the schema 7 of its values and {is_now} by the latest, 8" in said
    assert plan(PLAIN, value(then), value(now)), "the result's schema tells of it"
    said = refusal(f"{PLAIN} WHERE x = x", value(then), value(now))
    assert said.startswith("line 1, column 29: x of w.t"), "it is computed, too"


@pytest.mark.parametrize(("text", "of"), [(TABLE, value), (TABLE, change), (JOIN, value),
                                          (JOIN, change), (CHANGES, change)])  # fmt: skip
def test_columns_of_tables_and_of_changes_are_compared_as_well(text: str, of: Any) -> None:
    text = text.replace("s.id", "s.after.id") if of is change else text
    said = refusal(text, of("int"), of("int"), of("double"))
    assert (
        "x of w.t is INT by the schema 7" in said
        or "x of t is INT by the schema 7" in said
        or ("x of w.t is INT" in said)
    )
    assert plan(text, of("int"), of("int"))


@pytest.mark.parametrize("text", [PLAIN, COMPUTED])
@pytest.mark.parametrize(
    ("then", "now"),
    [
        (value("int"), value("long")),
        (value("long"), value(["int", "long"])),
        (value("double"), value(["float", "double"])),
        (value("string"), value(["null", "string"])),
        (value(["null", "string"]), value("string")),
        (value("string"), value(logical("string", "uuid"))),
        (record(field("id", "long")), value(logical("int", "date"), default=0)),
        (
            value(named("long", f"{DEBEZIUM}Timestamp")),
            value(logical("long", "local-timestamp-millis")),
        ),
        (value(named("int", f"{DEBEZIUM}Time")), value(logical("int", "time-millis"))),
        (
            value({"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}),
            value({"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}),
        ),
        (value(["null", "int", "string"]), value(["null", "int", "string", "bytes"])),
    ],
)  # fmt: skip
def test_a_column_of_one_type_to_sql_is_taken_whatever_it_was_called(
    then: Any, now: Any, text: str
) -> None:
    assert plan(text, then, now)


@pytest.mark.parametrize("text", [PLAIN, COMPUTED])
@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("int", "string"),
        ("string", "int"),
        (named("string", f"{DEBEZIUM}ZonedTimestamp"), "int"),
        ("string", named("int", f"{DEBEZIUM}Date")),
        (record(name="Inner"), "string"),
    ],
)
def test_a_type_that_earlier_records_are_not_read_as_changes_no_value(
    then: Any, now: Any, text: str
) -> None:
    """They go to the dead letters, and a text that keeps what came out goes on."""
    assert plan(text, value(then), value(now))


def nested(kind: Any, **more: Any) -> dict[str, Any]:
    inner = record(field("zip", kind), field("city", "string"), name="Home")
    return record(field("id", "long"), field("home", inner), field("x", "Home"), **more)


@pytest.mark.parametrize(
    ("form", "path"),
    [
        (lambda one: record(field("zip", one), name="Home"), "x.zip"),
        (lambda one: {"type": "array", "items": one}, "x[]"),
        (lambda one: {"type": "map", "values": one}, "x{}"),
        (lambda one: ["string", {"type": "array", "items": ["null", one]}], "x[]"),
    ],
)
def test_types_are_compared_at_every_depth(form: Any, path: str) -> None:
    said = refusal(
        "SELECT to_json(x) AS y FROM w.t", *(value(form(one)) for one in ("int", "double"))
    )
    assert f": {path} of w.t is INT" in said
    # Debezium's names mean something in columns alone
    times = named("long", f"{DEBEZIUM}MicroTimestamp"), logical("long", "local-timestamp-micros")
    said = refusal("SELECT to_json(x) AS y FROM w.t", *(value(form(one)) for one in times))
    assert f"{path} of w.t is BIGINT by the schema 7 of its values and TIMESTAMP_NTZ" in said


def test_a_type_with_a_name_is_compared_wherever_it_is_read() -> None:
    versions = nested("int"), nested("double")
    assert "x.ZIP of w.t is INT" in refusal("SELECT t.X.ZIP + 1 AS y FROM w.t t", *versions)
    assert "x.zip of w.t is INT" in refusal("SELECT x = x AS y FROM w.t", *versions)
    assert plan("SELECT upper(t.x.city) AS y FROM w.t t", *versions), "the rest of it may be read"
    # Debezium's names mean something in columns alone
    times = named("long", f"{DEBEZIUM}MicroTimestamp"), logical("long", "local-timestamp-micros")
    said = refusal("SELECT t.x.zip AS y FROM w.t t", *map(nested, times))
    assert "x.zip of w.t is BIGINT by the schema 7 of its values and TIMESTAMP_NTZ" in said


def test_a_record_that_was_called_otherwise_is_compared() -> None:
    said = refusal(COMPUTED, {**value("int"), "name": "Old"}, value("double"))
    assert "x of w.t is INT" in said


def test_a_field_is_compared_with_the_one_that_it_was_by_an_alias() -> None:
    before = record(field("id", "long"), field("old", "int"))
    assert "x of w.t is INT" in refusal(COMPUTED, before, value("double", aliases=["old"]))


def test_every_earlier_version_counts() -> None:
    said = refusal(COMPUTED, value("int"), value("double"), value("double"))
    assert "INT by the schema 7 of its values and DOUBLE by the latest, 9" in said


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (logical("int", "timestamp-millis"), "INT"),
        (logical("long", "local-timestamp-nanos"), "BIGINT"),
        (logical("long", "custom-decimal", precision=9, scale=1), "DECIMAL(9,1)"),
        ({"type": "long", "spark.sql.catalyst.type": "time(3)"}, "TIME(3)"),
        (logical("long", "timestamp-micros", **{"spark.sql.catalyst.type": "x"}), "TIMESTAMP"),
        ({"type": "int", "logicalType": []}, "INT"),
    ],
)
def test_a_type_is_called_as_spark_calls_it(schema: Any, kind: str) -> None:
    assert sql_type(schema) == kind


@pytest.mark.parametrize(
    ("sql", "is_taken"),
    [
        ("SELECT x AS y FROM w.t t", True),
        ("SELECT id FROM w.t t WHERE x > 5 AND x IN (7, 8) AND x BETWEEN 1 AND 9", True),
        ("SELECT id FROM w.t t WHERE x IS NOT NULL", True),
        ("SELECT hash(x) AS y FROM w.t t", False),
        ("SELECT md5(CAST(x AS BINARY)) AS y FROM w.t t", False),
        ("SELECT x * 1000000 AS y FROM w.t t", False),
        ("SELECT id FROM w.t t WHERE x + 1 > 5", False),
    ],
)
def test_a_whole_number_may_become_a_larger_one_where_it_is_compared(
    sql: str, is_taken: bool
) -> None:
    versions = value("int"), value("long")
    if is_taken:
        assert plan(sql, *versions)
    else:
        assert "x of w.t is INT by the schema 7" in refusal(sql, *versions)
