"""A statement with three JOINs, as a domain adds it, held against dicts."""

import io
import json
from typing import Any

import fastavro
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from mesh_events.statements import StatementStarted
from tests.integration.sql.join_oracle import Join, results
from tests.integration.sql.records import bare, record
from tests.integration.statements.conftest import Stage, framed
from tests.kafka_client import registrar

pytestmark = [pytest.mark.platform, pytest.mark.slow]

SHOP = record("Shop", place=["null", "string"], number="long")
PLACE = record("Place", number="int", country="string")
TEXT = """
SELECT c.number, u.name, s.place, p.country
FROM clicks c
LEFT JOIN users u ON c.userid = u.userid
JOIN shops s ON s.number = c.number % 7
LEFT JOIN places p ON p._key = s.place"""


def fill(stage: Stage, topic: str, key: Any, row: Any, rows: dict[Any, dict[str, Any]]) -> None:
    """A compacted topic of the domain with these rows."""
    config = {"cleanup.policy": "compact"}
    stage.admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(15)
    key_id, row_id = stage.register(f"{topic}-key", key), stage.register(f"{topic}-value", row)
    for number, one in rows.items():
        value = {"number": number} if isinstance(key, dict) else number
        stage.producer.produce(
            topic, framed(row_id, bare(row, one)), framed(key_id, bare(key, value))
        )
    assert stage.producer.flush(20) == 0


def test_a_statement_with_three_joins_gives_each_tables_own_rows(stage: Stage) -> None:
    users = {userid: {"name": f"user {userid}"} for userid in range(0, 20, 2)}
    shops = {
        number: {"number": number, "place": None if number == 3 else f"place-{number}"}
        for number in range(5)
    }
    places = {f"place-{n}": {"number": n, "country": f"country-{n}"} for n in (0, 1, 4)}
    tables = {"shops": f"{stage.name}-shops", "places": f"{stage.name}-places"}
    fill(stage, tables["shops"], record("ShopKey", number="long"), SHOP, shops)
    fill(stage, tables["places"], "string", PLACE, places)
    stage.know({userid: row["name"] for userid, row in users.items()})
    stage.click(range(50), list(range(20)))

    names = {"clicks": stage.clicks, "users": stage.users, **tables}
    stage.add(TEXT, tables=[stage.users, *tables.values()], names=names)

    joins = [
        Join("u", users, lambda rows: rows["c"]["userid"], outer=True),
        Join("s", shops, lambda rows: rows["c"]["number"] % 7, outer=False),
        Join("p", places, lambda rows: rows["s"]["place"], outer=True),
    ]
    columns = [("number", "c", "number"), ("name", "u", "name")]
    columns += [("place", "s", "place"), ("country", "p", "country")]
    clicks = [{"number": number, "userid": userid} for number, userid, _ in stage.clicked]
    expected = results(clicks, joins, columns)
    stage.until_landed(len(expected))
    stage.stop()
    latest = registrar(stage.kit.endpoints).get_latest_version(f"{stage.out}-value")
    schema = fastavro.parse_schema(json.loads(latest.schema.schema_str))
    found = [
        fastavro.schemaless_reader(io.BytesIO(one.value[5:]), schema)
        for one in stage.landed(stage.out)
    ]
    assert sorted(found, key=lambda one: one["number"]) == expected


def test_a_table_that_has_lost_its_first_records_is_not_joined(stage: Stage) -> None:
    """Its rows would be missing, as if they had never been there; a compacted one has them."""
    stage.know({1: "one", 2: "two"})
    stage.click(range(3), [1])
    text = "SELECT c.number, u.name FROM clicks c LEFT JOIN users u ON c.userid = u.userid"
    names = {"clicks": stage.clicks, "users": stage.users}
    stage.add(text, tables=[stage.users], names=names)
    stage.until_landed(3)
    stage.stop()
    resource = ConfigResource(ConfigResource.Type.TOPIC, stage.users)
    resource.add_incremental_config(
        ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    )
    stage.admin.incremental_alter_configs([resource])[resource].result(15)
    place = TopicPartition(stage.users, 0, 1)
    stage.admin.delete_records([place])[place].result(15)
    stage.click(range(3, 6), [1])
    stage.say(StatementStarted)
    failed = stage.wait_for(lambda one: one.failure_code is not None, "it does not start")
    assert failed.failure_code == "table_gap"
    assert f"the table {stage.users} does not have its first records" in (failed.failure or "")
    assert sum(stage.ends(stage.out).values()) == 3
