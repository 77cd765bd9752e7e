"""What a statement does to each record, on a real Spark Connect server, batch by batch."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException

from mesh_events.errors import RefusedError
from processors.controllers.flows.partition_limit import MOST_PARTITIONS
from spark_streams.sql.running.again import Again, stands
from spark_streams.sql.running.frame import LONGEST_REASON
from spark_streams.sql.running.work import SETTINGS
from tests.integration.sql.records import AT, Statement, record, wire

pytestmark = pytest.mark.platform

CLICK = record("Click", ip="string", userid="int", status=["null", "int"])
CLICK_2 = {
    **CLICK,
    "fields": [*CLICK["fields"], {"name": "agent", "type": "string", "default": "none"}],
}


def click(number: int, ip: str, userid: int, status: int | None, **more: Any) -> bytes:
    schema = CLICK_2 if more else CLICK
    return wire(number, schema, {"ip": ip, "userid": userid, "status": status, **more})


def statement(spark: Any, text: str, schema: Any = CLICK, **more: Any) -> Statement:
    return Statement(spark, text, {"c": {7: schema}}, {}, **more)


def test_a_filter_and_a_projection_keep_key_partition_and_headers(spark: Any) -> None:
    found = statement(
        spark, "SELECT upper(ip) AS ip, status + 1 AS next FROM x c WHERE status > 1"
    ).run(
        [
            (b"k1", click(7, "a", 1, 1), 0, 10),
            (b"k2", click(7, "b", 2, 2), 1, 20, [("trace", b"t"), ("mesh.source", b"w/i/0/1")]),
            (None, click(7, "c", 3, 3), 1, 21),
            (b"k4", click(7, "d", 4, None), 1, 22),
        ]
    )
    assert [(one.key, one.value, one.partition) for one in found] == [
        (b"k2", {"ip": "B", "next": 3}, 1),
        (None, {"ip": "C", "next": 4}, 1),
    ]
    assert found[0].headers == (
        ("trace", b"t"),
        ("mesh.source", b"w/i/0/1"),
        ("mesh.source", b"east/topic-id/1/20"),
    )
    assert found[1].headers == (("mesh.source", b"east/topic-id/1/21"),)
    assert {one.topic for one in found} == {"east.out"}


def test_no_header_of_the_streams_record_says_by_which_schema_a_result_is_read(spark: Any) -> None:
    """Clients of the registries take it from there before that at the begin of the bytes."""
    schemas = [
        ("__value_schema_id", b"\0\0\0\0\1"),
        ("__key_schema_id", b"\0\0\0\0\1"),
        ("apicurio.value.globalId", b"\0" * 8),
    ]
    headers = [("trace", b"t"), *schemas]
    rows = [(b"k", click(7, "a", 1, 1), 0, 10, headers), (b"k", b"poison", 0, 11, headers)]
    out, dead = statement(spark, "SELECT ip FROM x c").run(rows)
    assert [name for name, _ in out.headers] == ["trace", "mesh.source"]
    assert list(dead.headers)[: len(headers)] == headers, "a dead letter is as the record was"


def test_a_field_may_have_the_name_of_the_mark_of_what_was_read(spark: Any) -> None:
    schema = record("Odd", __READ="boolean", __read_="int")
    sent = wire(7, schema, {"__READ": False, "__read_": 3})
    found = statement(spark, "SELECT __READ AS a, __read_ AS b FROM x c", schema).run(
        [(b"k", sent, 0, 1), (b"k", b"poison", 0, 2)]
    )
    assert [(one.topic, one.value) for one in found if one.topic == "east.out"] == [
        ("east.out", {"a": False, "b": 3})
    ]
    assert len(found) == 2, "what cannot be read goes to the dead letters"


def test_a_field_of_an_earlier_schema_is_not_taken_for_that_mark(spark: Any) -> None:
    before, now = record("Odd", __read="boolean", a="int"), record("Odd", a="int")
    made = Statement(spark, "SELECT a FROM x c", {"c": {6: before, 7: now}}, {})
    rows = [
        (b"k", wire(6, before, {"__read": False, "a": 1}), 0, 1),
        (b"k", wire(7, now, {"a": 2}), 0, 2),
    ]
    assert [one.topic for one in made.run(rows)] == ["east.out", "east.out"]


def test_what_every_record_has_is_a_column_too(spark: Any) -> None:
    [found] = statement(
        spark, "SELECT _key AS k, _partition AS p, _offset AS o, _timestamp AS t FROM x c"
    ).values([(b"key", click(7, "a", 1, 1), 3, 10)])
    assert found == {"k": b"key", "p": 3, "o": 10, "t": AT}


def test_values_of_an_older_and_a_newer_schema_are_read_with_one(spark: Any) -> None:
    made = Statement(spark, "SELECT ip, agent FROM x c", {"c": {7: CLICK, 9: CLICK_2}}, {})
    assert made.values(
        [
            (b"k", click(7, "old", 1, 1), 0, 0),
            (b"k", click(9, "new", 1, 1, agent="curl"), 0, 1),
        ]
    ) == [{"ip": "old", "agent": "none"}, {"ip": "new", "agent": "curl"}]


def test_what_cannot_be_read_goes_to_the_dead_letters_as_it_was_once(spark: Any) -> None:
    good = click(7, "a", 1, 1)
    rows = [
        (b"k", b"garbage", 0, 0),
        (b"k", b"", 0, 1),
        (b"k", click(8, "unknown schema", 1, 1), 0, 2, [("trace", b"t")]),
        (b"k", good[:-3], 0, 3),
        (b"k", good, 0, 4),
        (b"k", None, 0, 5),
    ]
    found = statement(spark, "SELECT ip FROM x c WHERE status = 1").run(rows)
    dead = [one for one in found if one.topic == "east.out.dead"]
    assert [one.value for one in dead] == [value for _, value, *_ in rows[:4]]
    assert [one.value for one in found if one not in dead] == [{"ip": "a"}]
    assert [name for name, _ in dead[2].headers] == ["trace", "mesh.reason", "mesh.source"]
    assert dead[2].headers[-1] == ("mesh.source", b"east/topic-id/0/2")

    again = statement(spark, "SELECT ip FROM x c", dead_from={0: 3, 1: 0}).run(rows)
    assert [one.headers[-1][1] for one in again if one.topic == "east.out.dead"] == [
        b"east/topic-id/0/3"
    ]


def test_a_stream_may_have_as_many_partitions_as_a_statement_takes(spark: Any) -> None:
    """One condition for each partition, each within the next, once was too deep for Spark."""
    starts = dict.fromkeys(range(MOST_PARTITIONS), 5)
    unknown, last = click(8, "unknown schema", 1, 1), MOST_PARTITIONS - 1
    rows = [
        (b"k", click(7, "a", 1, 1), last, 7),
        (b"k", unknown, last, 4),
        (b"k", b"garbage", last, 4),
        (b"k", b"garbage", last, 5),
        (b"k", b"garbage", MOST_PARTITIONS, 0),
    ]
    made = statement(spark, "SELECT ip FROM x c", asked_at=starts, dead_from=starts)
    found = made.run(rows)
    places = [(one.topic, one.headers[-1][1]) for one in found]
    assert places == [
        ("east.out", b"east/topic-id/%d/7" % last),
        ("east.out.dead", b"east/topic-id/%d/5" % last),
        ("east.out.dead", b"east/topic-id/%d/0" % MOST_PARTITIONS),
    ]
    with pytest.raises(PySparkException, match="has the schema 8, which is new to it"):
        made.run([(b"k", unknown, last, 5)])


def test_what_is_read_again_is_written_where_it_stands_in_neither_topic(spark: Any) -> None:
    """Its own place decides: what becomes of it may be another thing than before."""
    last = MOST_PARTITIONS - 1
    floor, known, until = ({0: 0, last: place} for place in (1, 3, 18))
    there = Again(floor, known, until, {last: bytes([0b00100100, 0b1, 0])})
    good = [(b"k", click(7, "a", 1, 1), last, offset) for offset in range(20)]
    dead = [(b"k", b"poison", last, offset) for offset in range(20)]
    starts = {"out_from": {last: 6}, "dead_from": {last: 2}, "again": there}
    made = statement(spark, "SELECT ip FROM x c WHERE status = 1", **starts)

    def places(rows: list[Any]) -> list[tuple[str, int]]:
        return [(one.topic[5:], int(one.headers[-1][1].split(b"/")[-1])) for one in made.run(rows)]

    # known from 3 on: 3, 6 and 9 stand somewhere; before 6 the result's place has passed
    passed = [("out.dead", 4), ("out.dead", 5)]
    fresh = [7, 8, *range(10, 20)]
    assert places(good) == [*passed, *[("out", offset) for offset in fresh]]
    assert places(dead) == [("out.dead", offset) for offset in (2, 4, 5, *fresh)]
    assert places([(b"k", click(7, "a", 1, 2), last, offset) for offset in range(20)]) == []
    # partitions of which nothing is read again
    others = [(key, value, other, 0) for other in (0, last + 1) for key, value, *_ in good[:1]]
    assert places(others) == [("out", 0), ("out", 0)]

    late, early = made.run([good[4], dead[18]])
    reason = b"it was read again after a restart, when its place in the result had passed"
    assert late.value == good[4][1]
    assert late.headers[:2] == (("mesh.reason", reason), ("mesh.again", b"18"))
    assert [name for name, _ in early.headers] == ["mesh.reason", "mesh.source"]


def test_a_row_that_is_no_more_is_a_dead_letter_where_its_place_has_passed(spark: Any) -> None:
    there = Again({0: 0}, {0: 0}, {0: 2}, {0: bytes([0b10])})
    starts = {"out_from": {0: 2}, "again": there}
    made = statement(spark, "SELECT ip FROM TABLE(x) c", **starts)
    (found,) = made.run([(b"k", None, 0, 0), (b"k", None, 0, 1)])
    assert (found.topic, found.key, found.value) == ("east.out.dead", b"k", None)


def test_a_plan_as_a_text_does_not_show_what_stands_in_the_topics(spark: Any) -> None:
    """Spark keeps such texts of each batch; there is a bit for each record of the last minute."""
    rows = spark.createDataFrame([(0, 0)], "partition int, offset bigint")
    found = Again({0: 0}, {0: 0}, {0: 8_000_000}, {0: bytes(1_000_000)})
    text = rows.where(~stands(found))._explain_string(mode="formatted")
    assert len(text) < 10_000


def keyed(spark: Any, text: str) -> tuple[Statement, bytes, bytes]:
    """A statement that knows the schema 3 of keys up to offset 2; a key of it, and of schema 4."""
    key = record("Key", id="int")
    made = Statement(spark, text, {"c": {7: CLICK}}, {"c": key})
    made.key_ids, made.asked_at = [3], {0: 2}
    return made, wire(3, key, {"id": 1}), wire(4, key, {"id": 1})


def test_a_row_has_a_key_of_its_topics_schema(spark: Any) -> None:
    """Under another id the same key is another one, and the earlier row would stay."""
    made, known, other = keyed(spark, "SELECT ip FROM TABLE(x) c")
    value = click(7, "a", 1, 1)
    rows = [(known, value, 0, 0), (other, value, 0, 1), (b"plain", value, 0, 2)]
    found = made.run(rows)
    assert [(one.topic, one.key) for one in found] == [
        ("east.out", known), ("east.out.dead", other), ("east.out", b"plain"),
    ]  # fmt: skip
    with pytest.raises(PySparkException, match="has the schema 4, which is new to it"):
        made.run([(other, None, 0, 2)])


def test_a_row_has_a_key_of_the_bytes_that_writers_give_it(spark: Any) -> None:
    """By others a row would be another one, and the earlier one would stay."""
    made, known, _ = keyed(spark, "SELECT ip FROM TABLE(x) c")
    last = known[-1]
    spare = known[:-1] + bytes((last | 0x80, 0))
    value = click(7, "a", 1, 1)
    rows = [(known, value, 0, 0), (spare, value, 0, 1), (known + b"\0", None, 0, 2)]
    found = made.run([*rows, (known[:5], None, 0, 3)])
    assert [one.topic for one in found] == ["east.out", *["east.out.dead"] * 3]
    reason = dict(found[1].headers)["mesh.reason"]
    assert reason == b"its key has other bytes than Avro's writers give it"


def test_a_new_schema_of_a_streams_keys_ends_the_query(spark: Any) -> None:
    """The result has its keys: the subject of these is told the schema before it is in a record."""
    made, known, other = keyed(spark, "SELECT ip FROM x c")
    value = click(7, "a", 1, 1)
    rows = [(known, value, 0, 2), (other, value, 0, 1), (b"plain", value, 0, 3)]
    assert [one.key for one in made.run(rows)] == [known, other, b"plain"]
    with pytest.raises(PySparkException, match="has the schema 4, which is new to it"):
        made.run([(other, value, 0, 2)])


@pytest.mark.parametrize("levels", [11, 12])
def test_a_pattern_lies_as_deep_as_spark_compares_or_is_refused(spark: Any, levels: int) -> None:
    kind: Any = {"type": "string", "logicalType": "validatedString", "pattern": "[a-z]"}
    value, bad = "a", "1"
    for level in range(levels):
        inner = record(f"R{level}", f=kind)
        kind, value, bad = {"type": "array", "items": inner}, [{"f": value}], [{"f": bad}]  # type: ignore[assignment]
    schema = record("Top", ip="string", f=kind)
    made = statement(spark, "SELECT ip FROM x c", schema)
    rows = [
        (b"k", wire(7, schema, {"ip": "a", "f": one}), 0, at) for at, one in enumerate((value, bad))
    ]
    if levels == 12:
        with pytest.raises(RefusedError, match="lies too deep to be compared"):
            made.run(rows)
        return
    assert [one.topic for one in made.run(rows)] == ["east.out", "east.out.dead"]


def test_an_expression_that_has_no_answer_is_null_and_stops_nothing(spark: Any) -> None:
    found = statement(
        spark, "SELECT cast(ip AS INT) AS n, status / 0 AS d, userid + 2147483647 AS s FROM x c"
    ).values([(b"k", click(7, "no number", 1, 1), 0, 0)])
    assert found == [{"n": None, "d": None, "s": -2147483648}]


ADDRESS = record("Address", city="string", zip=["null", "string"])
WIDE = record(
    "Wide",
    flag="boolean",
    small="int",
    big="long",
    ratio="double",
    price={"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    raw="bytes",
    day={"type": "int", "logicalType": "date"},
    at={"type": "long", "logicalType": "timestamp-micros"},
    at_ms={"type": "long", "logicalType": "timestamp-millis"},
    local={"type": "long", "logicalType": "local-timestamp-micros"},
    tags={"type": "array", "items": ["null", "string"]},
    counts={"type": "map", "values": "long"},
    address=["null", ADDRESS],
    past={"type": "array", "items": "shop.Address"},
    kind={"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
    nothing=["null", "string"],
)
VALUE = {
    "flag": True,
    "small": -3,
    "big": 2**60,
    "ratio": 0.1,
    "price": Decimal("1234567890.12"),
    "raw": b"\0\xff",
    "day": date(1969, 12, 31),
    "at": datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC),
    "at_ms": datetime(2026, 11, 21, 12, 0, 0, 123000, tzinfo=UTC),
    "local": datetime.fromisoformat("1900-01-01T00:00:00.000001"),
    "tags": ["a", None, "ä"],
    "counts": {"x": 1},
    "address": {"city": "Oslo", "zip": None},
    "past": [{"city": "Rome", "zip": "00100"}],
    "kind": "B",
    "nothing": None,
}


def test_every_type_survives(spark: Any) -> None:
    found = statement(spark, "SELECT * FROM x c", WIDE).values([(b"k", wire(7, WIDE, VALUE), 0, 0)])
    assert found == [VALUE]
    [nested] = statement(spark, "SELECT address.city, past[0].zip AS zip FROM x c", WIDE).values(
        [(b"k", wire(7, WIDE, VALUE), 0, 0)]
    )
    assert nested == {"city": "Oslo", "zip": "00100"}


def named(kind: str, name: str) -> Any:
    return ["null", {"type": kind, "connect.version": 1, "connect.name": name}]


def test_types_of_a_captured_table_are_what_they_mean(spark: Any) -> None:
    row = record(
        "Value",
        id="int",
        born=named("int", "io.debezium.time.Date"),
        made=named("long", "io.debezium.time.MicroTimestamp"),
        old=named("long", "io.debezium.time.Timestamp"),
        seen=named("string", "io.debezium.time.ZonedTimestamp"),
        doc=named("string", "io.debezium.data.Json"),
    )
    value = {
        "id": 1,
        "born": -1,
        "made": 1_700_000_000_123_456,
        "old": 1_700_000_000_123,
        "seen": "2026-11-21T13:00:00.123456+01:00",
        "doc": '{"a": 1}',
    }
    [found] = statement(spark, "SELECT * FROM x c", row).values([(b"k", wire(7, row, value), 0, 0)])
    assert found == {
        "id": 1,
        "born": date(1969, 12, 31),
        "made": datetime.fromisoformat("2023-11-14T22:13:20.123456"),
        "old": datetime.fromisoformat("2023-11-14T22:13:20.123000"),
        "seen": datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC),
        "doc": '{"a": 1}',
    }
    [nulls] = statement(spark, "SELECT * FROM x c", row).values(
        [(b"k", wire(7, row, {**dict.fromkeys(value), "id": 1}), 0, 0)]
    )
    assert nulls == {**dict.fromkeys(value), "id": 1}


@pytest.mark.parametrize(
    ("nanos", "expected"),
    [
        (-1, "1969-12-31T23:59:59.999999"),
        (-1500, "1969-12-31T23:59:59.999998"),
        (-2000, "1969-12-31T23:59:59.999998"),
        (1999, "1970-01-01T00:00:00.000001"),
        (-(2**63), "1677-09-21T00:12:43.145224"),
    ],
)
def test_nanoseconds_are_cut_to_the_microsecond_that_they_are_in(
    spark: Any, nanos: int, expected: str
) -> None:
    row = record("Value", at=named("long", "io.debezium.time.NanoTimestamp"))
    value = wire(7, row, {"at": nanos})
    [found] = statement(spark, "SELECT at FROM x c", row).values([(b"k", value, 0, 0)])
    assert found == {"at": datetime.fromisoformat(expected)}


def test_a_time_of_another_type_is_what_it_is_without_its_name(spark: Any) -> None:
    """Spark would take the last 32 bits of a long for days, and a number for a time with a zone."""
    row = record(
        "Value",
        day=named("long", "io.debezium.time.Date"),
        text=named("string", "io.debezium.time.Date"),
        zoned=named("long", "io.debezium.time.ZonedTimestamp"),
    )
    value = {"day": 2**32 + 20_000, "text": "20000.9", "zoned": 1}
    assert statement(spark, "SELECT * FROM x c", row).values(
        [(b"k", wire(7, row, value), 0, 0)]
    ) == [value]


def test_a_text_that_is_no_time_with_a_zone_goes_to_the_dead_letters(spark: Any) -> None:
    row = record("Value", at=named("string", "io.debezium.time.ZonedTimestamp"))
    at = datetime(2026, 11, 21, 12, 0, 0, 123400, tzinfo=UTC)
    good: dict[str, Any] = {
        "2026-11-21T12:00:00.1234Z": at,
        "2026-11-21T14:00:00.123400000+02:00": at,
        "2026-11-21T12:00:00Z": at.replace(microsecond=0),
        "infinity": None,
        "-infinity": None,
    }
    bad = ["abc", "12:30", "", "2026-11-21T12:00:00.1234567Z", "2026-13-21T12:00:00Z", "2026-11-21"]
    rows = [
        (b"k", wire(7, row, {"at": one}), 0, offset) for offset, one in enumerate([*good, *bad])
    ]
    found = statement(spark, "SELECT at FROM x c", row).run(rows)
    assert [one.value["at"] for one in found if one.topic == "east.out"] == list(good.values())
    dead = [dict(one.headers)["mesh.reason"] for one in found if one.topic == "east.out.dead"]
    assert dead == [b"at holds a text that is no time with a zone in Spark"] * len(bad)


@pytest.mark.parametrize("op", ["d", "t", "c", "x", "D", ""])
def test_a_change_that_contradicts_itself_is_no_row_of_a_table(spark: Any, op: str) -> None:
    """Sinks go by what the change says that it is."""
    row = record("Value", id="int")
    change = record("Envelope", before=["null", row], after=["null", "shop.Value"], op="string")
    made = statement(spark, "SELECT id FROM TABLE(x) AS c", change)
    before = None if op == "c" else {"id": 1}
    after = None if op == "c" else {"id": 2}
    rows = [(b"k", wire(7, change, {"before": before, "after": after, "op": op}), 0, 0)]
    rows += [(b"k", wire(7, change, {"before": None, "after": {"id": 3}, "op": "u"}), 0, 1)]
    dead, kept = made.run(rows)
    assert b"contradict" in dict(dead.headers)["mesh.reason"]
    assert (dead.topic, kept.value) == ("east.out.dead", {"id": 3})


def test_the_changes_of_a_table_can_be_read_as_a_stream_of_them(spark: Any) -> None:
    row = record("Value", id="int", name="string")
    change = record("Envelope", before=["null", row], after=["null", "shop.Value"], op="string")
    made = statement(spark, "SELECT op, after.name AS name, before.id AS was FROM x c", change)
    assert made.values(
        [
            (
                b"k",
                wire(7, change, {"before": None, "after": {"id": 1, "name": "a"}, "op": "c"}),
                0,
                0,
            ),
            (
                b"k",
                wire(7, change, {"before": {"id": 1, "name": "a"}, "after": None, "op": "d"}),
                0,
                1,
            ),
            (b"k", None, 0, 2),
        ]
    ) == [{"op": "c", "name": "a", "was": None}, {"op": "d", "name": None, "was": 1}]


def test_each_change_of_a_table_gives_the_results_row_or_its_end(spark: Any) -> None:
    row = record("Value", id="int", name=["null", "string"])
    change = record("Envelope", before=["null", row], after=["null", "shop.Value"], op="string")

    def to(op: str, before: Any, after: Any) -> bytes:
        return wire(7, change, {"before": before, "after": after, "op": op})

    one, other = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    made = statement(spark, "SELECT upper(name) AS n FROM TABLE(x) AS c WHERE name <> 'b'", change)
    found = made.run(
        [
            (b"1", to("c", None, one), 0, 0),
            # it does not meet the condition any more, then again
            (b"1", to("u", one, other), 0, 1),
            (b"1", to("u", other, one), 0, 2),
            (b"1", to("u", one, {"id": 1, "name": None}), 0, 3),
            (b"1", to("d", one, None), 0, 4),
            (b"1", None, 0, 5),
            (b"2", b"poison", 0, 6),
            (None, to("c", None, one), 0, 7),
        ]
    )
    rows = [(one.key, one.value) for one in found if one.topic == "east.out"]
    assert rows == [
        (b"1", {"n": "A"}),
        (b"1", None),
        (b"1", {"n": "A"}),
        (b"1", None),
        (b"1", None),
        (b"1", None),
    ]
    dead = [dict(one.headers)["mesh.reason"] for one in found if one.topic != "east.out"]
    assert [text.split(b" ")[0] for text in dead] == [b"the", b"a"]


def test_a_plain_topic_is_a_table_of_its_values(spark: Any) -> None:
    found = statement(spark, "SELECT * FROM TABLE(x) AS c WHERE status > 1").run(
        [
            (b"k", click(7, "a", 1, 2), 0, 0),
            (b"k", click(7, "a", 1, 1), 0, 1),
            (b"k", None, 0, 2),
        ]
    )
    assert [one.value for one in found] == [{"ip": "a", "userid": 1, "status": 2}, None, None]


def test_a_text_does_not_read_the_servers_settings_and_environment(spark: Any) -> None:
    """Spark would put them in where a text says ${env:...}; statements' sessions do not."""
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    [row] = spark.sql("SELECT '${env:PATH} ${spark.master}' AS a").collect()
    assert row.a == "${env:PATH} ${spark.master}"


PHONE = {"type": "string", "logicalType": "validatedString", "pattern": "[+]?[0-9 ]{3,10}"}
PERSON = record(
    "Person",
    name="string",
    phone=["null", PHONE],
    others={"type": "array", "items": PHONE},
    home=["null", record("Home", code={**PHONE, "pattern": "[A-Z]{2}"})],
)


def test_a_string_that_does_not_match_its_pattern_goes_to_the_dead_letters(spark: Any) -> None:
    def person(phone: str | None, others: list[str] = [], code: str | None = None) -> bytes:  # noqa: B006
        home = None if code is None else {"code": code}
        value = {"name": "Ada", "phone": phone, "others": others, "home": home}
        return wire(7, PERSON, value)

    rows = [
        (b"k", person("+49 555", ["123", "456"], "DE"), 0, 0),
        (b"k", person(None), 0, 1),
        (b"k", person("+49 555 "), 0, 2),
        (b"k", person("+49 555\n"), 0, 3),
        (b"k", person("call me on 123"), 0, 4),
        (b"k", person("123", ["123", "x"]), 0, 5),
        (b"k", person("123", [], "de"), 0, 6),
    ]
    found = statement(spark, "SELECT name, phone FROM x c", PERSON).run(rows)
    out = [one for one in found if one.topic == "east.out"]
    assert [one.value["phone"] for one in out] == ["+49 555", None, "+49 555 "]
    dead = {
        one.headers[-1][1]: dict(one.headers)["mesh.reason"].decode()
        for one in found
        if one.topic != "east.out"
    }
    pattern = "[+]?[0-9 ]{3,10}"
    assert list(dead.values()) == [
        f"phone does not match its pattern {pattern}",
        f"phone does not match its pattern {pattern}",
        f"others[] does not match its pattern {pattern}",
        "home.code does not match its pattern [A-Z]{2}",
    ]
    assert "call me" not in str(dead)


def test_a_number_that_its_type_has_not_goes_to_the_dead_letters(spark: Any) -> None:
    """Avro's library for Java takes the last 32 bits of an int, and false for the byte 2."""
    read = record("Row", number="int", more={"type": "array", "items": "int"}, flag="boolean")
    # an int is written as a long is, a boolean as one byte
    wide = record("Row", number="long", more={"type": "array", "items": "long"}, flag="int")

    def row(number: int, more: int, flag: int) -> bytes:
        return wire(7, wide, {"number": number, "more": [more], "flag": flag})

    ends = -(2**31), 2**31 - 1
    rows = [
        (b"k", row(*ends, -1), 0, 0),
        (b"k", row(2**32 + 5, 1, 0), 0, 1),
        (b"k", row(-(2**31) - 1, 1, 0), 0, 2),
        (b"k", row(1, 2**31, 0), 0, 3),
        (b"k", row(1, 1, 1), 0, 4),
        (b"k", row(2**63 - 1, 1, 0), 0, 5),
    ]
    found = statement(spark, "SELECT number, more[0] AS more, flag FROM x c", read).run(rows)
    [kept] = [one.value for one in found if one.topic == "east.out"]
    assert kept == {"number": ends[0], "more": ends[1], "flag": True}
    dead = [one.headers[-1][1] for one in found if one.topic != "east.out"]
    assert dead == [f"east/topic-id/0/{offset}".encode() for offset in range(1, 6)]


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}


def test_columns_beside_one_that_spark_has_no_type_for_are_read(spark: Any) -> None:
    pay = record("Pay", id="int", cash=["null", MONEY], note="string")
    made = statement(spark, "SELECT id, note FROM x c", pay)
    rows = [(b"k", wire(7, pay, {"id": 1, "cash": Decimal("12.34"), "note": "a"}), 0, 0)]
    assert made.values(rows) == [{"id": 1, "note": "a"}]
    change = record("Envelope", before=["null", pay], after=["null", "shop.Pay"], op="string")
    made = statement(spark, "SELECT id, note FROM TABLE(x) AS c", change)
    after = {"id": 1, "cash": Decimal("12.34"), "note": "a"}
    rows = [(b"k", wire(7, change, {"before": None, "after": after, "op": "c"}), 0, 0)]
    assert made.values(rows) == [{"id": 1, "note": "a"}]


def test_a_result_that_its_topic_does_not_take_is_a_dead_letter(spark: Any) -> None:
    """Kafka's producer throws for it, and each start would come to it again."""
    row = record("Row", s="string", a={"type": "array", "items": "double"})

    def of(length: int, items: int = 0) -> bytes:
        return wire(7, row, {"s": "a" * length, "a": [0.0] * items})

    long, key = [("trace", b"t" * 4_000)], b"k" * 4_000
    rows: list[Any] = [(b"k", of(4_000), 0, 0, long), (b"k", of(4_000), 0, 1)]
    rows += [(b"k", of(10), 0, 2, long), (key, of(4_000), 0, 3)]
    rows += [(b"k", of(0, 700), 0, 4), (b"k", of(0, 500), 0, 5)]
    text = "SELECT s, s AS t, a, a AS b FROM x c"
    found = statement(spark, text, row, most_bytes=10_000).run(rows)
    names = [(int(one.headers[-1][1].split(b"/")[-1]), one.topic[5:]) for one in found]
    dead, out = "out.dead", "out"
    assert names == [(0, dead), (1, out), (2, out), (3, dead), (4, dead), (5, out)]
    assert found[0].value == rows[0][1], "the record as it was"
    assert b"larger than" in dict(found[0].headers)["mesh.reason"]


def test_a_long_reason_is_cut_so_that_the_dead_letter_is_taken(spark: Any) -> None:
    kind: Any = {"type": "string", "logicalType": "validatedString", "pattern": "[a-z]"}
    value: Any = "1"
    for level in range(4):
        name = f"f{level}" + "x" * 400
        kind, value = record(f"R{level}", **{name: kind}), {name: value}
    rows = [(b"k", wire(7, kind, value), 0, 0)]
    [found] = statement(spark, f"SELECT {name}.f2{'x' * 400} AS v FROM x c", kind).run(rows)
    reason = dict(found.headers)["mesh.reason"]
    assert found.topic == "east.out.dead"
    assert len(reason) == LONGEST_REASON
    assert 4 * LONGEST_REASON + 300 < 4_096
