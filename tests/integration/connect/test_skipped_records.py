"""Records that were deleted before a connector had read them."""

from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from local_platform import Endpoints
from tests.integration.connect.test_sink_values import (
    NOUN,
    Sinking,
    produce,
    rows,
    sink,
    table,
    write,
)
from tests.integration.connect_owner import owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import PATIENCE_S, eventually, seen_within

__all__ = ["owner", "sdm", "sink", "table"]
pytestmark = pytest.mark.slow
FIELDS = {"id": "int"}


def test_a_sink_passes_over_no_record_that_was_deleted(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    topic, connector = f"{owner.name}.{name}", f"{owner.name}.{name}-position"
    written = f"{name}_position"
    produce(sdm, owner, mesh, topic, FIELDS, [{"id": 1}, {"id": 2}])
    sink("position")
    eventually(lambda: rows(database, written, "id, id") == [(1, 1), (2, 2)], "both rows")
    admin = AdminClient(mesh.administration("east").config())
    group = f"connect-{connector}"

    def position() -> int | None:
        [asked] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        found = asked.result(30).topic_partitions
        return found[0].offset if found else None

    eventually(lambda: position() == 2, "its position is in Kafka")
    of = ("-d", owner.name)
    sdm(*NOUN, "stop", connector, *of, "--timeout", "120")
    write(mesh, topic, FIELDS, [{"id": 3}, {"id": 4}])
    place = TopicPartition(topic, 0, 3)
    admin.delete_records([place])[place].result(30)
    sdm(*NOUN, "start", connector, *of, "--no-wait")

    def failure() -> str:
        return str(sdm(*NOUN, "describe", connector).document["failure"])

    told = f"source_gap: {topic}-0 at offset 2"
    seen_within(PATIENCE_S, lambda: told in failure())
    assert told in failure()
    assert rows(database, written, "id, id") == [(1, 1), (2, 2)]
    # one that has no position begins where the topic does
    sink("anew")
    eventually(lambda: rows(database, f"{name}_anew", "id, id") == [(4, 4)], "what is left")
