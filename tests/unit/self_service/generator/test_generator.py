"""Made-up records: repeatable, as their schemas say, as often and as fast as asked."""

import io
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import fastavro
import pytest

from mesh_events.errors import InvalidValueError
from self_service.generator.chance import Skewed, of_record
from self_service.generator.from_schema import maker
from self_service.generator.kinds import KINDS, Kind, Options
from self_service.generator.pace import due

TIMED = [
    kind for kind in KINDS.values() if any(one["name"] == "time" for one in kind.value["fields"])
]
"""Those whose times go on with the number of the record."""
OPTIONS = Options(seed=7, users=20, skew=0, start=1_760_000_000_000, rate=4)


def through(schema: Any, datum: Any) -> Any:
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, datum, strict=True)
    return fastavro.schemaless_reader(io.BytesIO(out.getvalue()), parsed)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_record_n_is_the_same_whatever_was_made_before_it(kind: Kind) -> None:
    first, second = kind.maker(OPTIONS), kind.maker(OPTIONS)
    made = [first(number) for number in range(50)]
    assert [second(number) for number in reversed(range(50))] == made[::-1]
    assert kind.maker(replace(OPTIONS, seed=8))(3) != made[3]
    for key, value in made:
        assert through(kind.key, key) == key
        through(kind.value, value)


def test_clicks_have_the_fields_of_a_web_servers_log_and_go_on_in_time() -> None:
    kind = KINDS["clickstream"]
    names = [field["name"] for field in kind.value["fields"]]
    assert " ".join(names) == (
        "ip userid remote_user time _time request status bytes referrer agent"
    )
    make = kind.maker(OPTIONS)
    values = [make(number)[1] for number in range(9)]
    assert [value["_time"] - OPTIONS.start for value in values] == [250 * n for n in range(9)]
    assert values[0]["time"] == "09/Oct/2025:08:53:20 +0000"
    assert all(1 <= value["userid"] <= 20 for value in values)
    assert all(make(n)[0] == {"userid": make(n)[1]["userid"]} for n in range(9))


@pytest.mark.parametrize("kind", TIMED, ids=lambda kind: kind.name)
@pytest.mark.parametrize("number", [1, 10**18, 2**63 - 1])
def test_a_time_beyond_the_year_9999_is_refused(kind: Kind, number: int) -> None:
    late = replace(OPTIONS, start=253_402_300_799_999, rate=1e-300)
    make = kind.maker(late)
    make(0)
    with pytest.raises(InvalidValueError, match=f"record {number} is beyond the year 9999"):
        make(number)


def test_a_year_of_a_web_servers_log_has_four_digits() -> None:
    make = KINDS["clickstream"].maker(replace(OPTIONS, start=-62_135_596_800_000))
    assert make(0)[1]["time"] == "01/Jan/0001:00:00:00 +0000"


def test_a_skew_draws_the_first_ones_more_often_and_none_draws_all_alike() -> None:
    def drawn(skew: float) -> Counter[int]:
        found = Skewed(10, skew)
        return Counter(found.draw(of_record(1, number)) for number in range(5000))

    even, steep = drawn(0), drawn(1)
    assert set(even) == set(steep) == set(range(1, 11))
    assert max(even.values()) < 1.3 * min(even.values())
    # by Zipf's law the first is drawn ten times as often as the tenth
    assert 7 < steep[1] / steep[10] < 14


def test_records_are_written_when_they_are_due_and_never_in_a_burst() -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        now[0] += seconds

    numbers = due(8, 2.0, None, clock=lambda: now[0], sleep=sleep)
    assert [next(numbers) for _ in range(3)] == [0, 1, 2]
    assert slept == [0.5, 0.5]
    # 10 s without a chance to write: it goes on from there, at the same rate
    now[0] += 10
    assert [next(numbers) for _ in range(3)] == [3, 4, 5]
    assert slept == [0.5, 0.5, 0.5, 0.5]
    assert list(numbers) == [6, 7]


def test_writing_ends_after_its_time() -> None:
    now = [0.0]
    numbers = due(
        None, 10.0, 1.0, clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
    )
    # the last one may be due at the very end
    assert list(numbers) in (list(range(10)), list(range(11)))


def field(name: str, kind: Any, **properties: Any) -> dict[str, Any]:
    told = {"arg.properties": properties} if properties else {}
    return {"name": name, "type": kind, **told}


SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        field("id", {"type": "long", "arg.properties": {"iteration": {"start": 10, "step": 2}}}),
        field("state", {"type": "string", "arg.properties": {"options": ["new", "paid"]}}),
        field("count", {"type": "int", "arg.properties": {"range": {"min": 3, "max": 5}}}),
        field("code", "string", length=4),
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        field("day", {"type": "int", "logicalType": "date"}),
        field("at", {"type": "long", "logicalType": "timestamp-millis"}),
        field("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
        field("clock", {"type": "int", "logicalType": "time-millis"}),
        field("uid", {"type": "string", "logicalType": "uuid"}),
        field("tags", {"type": "array", "items": "string"}),
        field("by", {"type": "map", "values": "double"}),
        field("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
        field("hash", {"type": "fixed", "name": "Hash", "size": 4}),
        field("raw", "bytes"),
        field("flag", "boolean"),
        field("ratio", "float"),
        field("note", ["null", "string"]),
        field("next", ["null", "Order"]),
    ],
}


def test_a_record_of_any_schema_is_made_as_its_properties_say() -> None:
    make = maker(SCHEMA, OPTIONS)
    made = [make(number) for number in range(200)]
    assert made == [maker(SCHEMA, OPTIONS)(number) for number in range(200)]
    assert [one["id"] for one in made[:3]] == [10, 12, 14]
    assert {one["state"] for one in made} == {"new", "paid"}
    assert {one["count"] for one in made} == {3, 4}
    assert {len(one["code"]) for one in made} == {4}
    assert None in {one["note"] for one in made}
    for one in made:
        through(SCHEMA, one)


def test_properties_that_nobody_knows_are_told_with_their_field() -> None:
    odd = {
        **SCHEMA,
        "fields": [field("code", {"type": "string", "arg.properties": {"regex": "x"}})],
    }
    with pytest.raises(InvalidValueError, match=r"code: arg\.properties has regex: known are"):
        maker(odd, OPTIONS)
