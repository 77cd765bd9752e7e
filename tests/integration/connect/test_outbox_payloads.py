"""Payloads of an outbox of which a record would lack something."""

import json
import re
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.connect.test_whole_rows import NOUN, schema
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.kafka_client import PATIENCE_S, seen_within

__all__ = ["owner", "schema", "sdm"]
COLUMNS = "id uuid PRIMARY KEY, aggregatetype text, aggregateid text, type text, payload jsonb"
WHOLE: dict[str, Any] = {
    "n": 1,
    "items": [{"sku": "x"}, {"sku": "y", "price": "5.00"}],
    "to": {"city": "z"},
    "none": [],
    "nothing": None,
}


# Debezium takes the fields of either
@pytest.mark.parametrize(
    "payload",
    [
        {"items": [{"lines": [{"a": "x"}]}, {"lines": [{"b": "5"}]}]},
        {"items": [{"to": {"a": "x"}}, {"to": {"b": "5"}}]},
    ],
)
def test_a_member_that_its_record_would_lack_is_told(
    sdm: Sdm, owner: Party, schema: tuple[str, Any], payload: Any
) -> None:
    place, database = schema
    table, name = f"{place}.outbox", f"{place}-outbox".replace("_", "-")
    connector, kind = f"{owner.name}.{name}", f"paid_{uuid4().hex[:8]}"
    database.execute(f"CREATE TABLE {table} ({COLUMNS})")
    adding = (*NOUN, "add", name, "--type", "debezium-outbox", "--table", table)
    sdm(*adding, "-d", owner.name)

    def write(number: int, content: Any) -> None:
        row = (str(uuid4()), kind, str(number), "Paid", json.dumps(content))
        database.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", row)

    reading = ("topic", "consume", f"{owner.name}.{kind}", "-d", owner.name, "--follow")
    try:
        write(1, WHOLE)
        [first] = sdm(*reading, "--timeout", "120", "--max", "1").lines
        assert first["value"]["items"][1] == {"sku": "y", "price": "5.00"}
        assert first["value"]["to"] == {"city": "z"}
        write(2, payload)

        def failure() -> str:
            return str(sdm(*NOUN, "describe", connector).document["failure"])

        told = re.compile("payload_not_exact: [ab]; the schema that")
        seen_within(PATIENCE_S, lambda: told.search(failure()))
        assert told.search(failure())
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)


def test_an_event_whose_topic_kafka_does_not_allow_goes_to_the_nearest_that_it_does(
    sdm: Sdm, owner: Party, schema: tuple[str, Any]
) -> None:
    """It ended the connector, and the events of other topics behind it did not arrive."""
    place, database = schema
    table, name = f"{place}.outbox", f"{place}-outbox".replace("_", "-")
    connector, kind = f"{owner.name}.{name}", uuid4().hex[:8]
    database.execute(f"CREATE TABLE {table} ({COLUMNS})")
    adding = (*NOUN, "add", name, "--type", "debezium-outbox", "--table", table)
    sdm(*adding, "-d", owner.name)
    topics = {f"{kind} a/é": f"{kind}_a__", kind: kind}
    try:
        for number, routed in enumerate(topics):
            row = (str(uuid4()), routed, str(number), "Paid", json.dumps({"n": number}))
            database.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", row)
        for number, topic in enumerate(topics.values()):
            reading = ("topic", "consume", f"{owner.name}.{topic}", "-d", owner.name, "--follow")
            [found] = sdm(*reading, "--timeout", "120", "--max", "1").lines
            assert found["value"] == {"n": number}
        assert sdm(*NOUN, "describe", connector).document["state"] == "ACTIVE"
    finally:
        sdm(*NOUN, "delete", connector, "-d", owner.name)
