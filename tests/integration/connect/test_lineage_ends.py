"""The ends of runs that stand on the lineage topic, as a worker that takes over reads them."""

import pytest
from openlineage.client.event_v2 import RunState

from local_platform import Endpoints
from mesh_events.meta import new_id
from processors.clusters.kafka import KafkaAdmin
from processors.lineage.events import JobRun, LineageTopic
from processors.lineage.reader import recent
from tests.kafka_client import RawProducer, eventually, fresh

pytestmark = pytest.mark.platform


def test_each_end_on_the_topic_is_found_and_nothing_else(platform: Endpoints) -> None:
    connection, topic = platform.administration("east"), fresh("lineage")
    admin = KafkaAdmin("east", connection)
    admin.create_topic(topic, 1, {})
    eventually(lambda: admin.topic(topic), "the topic is there")
    assert (recent(connection, topic).since, recent(connection, topic).ended) == (None, frozenset())
    lineage, runs = LineageTopic(connection, topic), {kind: new_id() for kind in RunState}
    RawProducer(connection).write(b"garbage", topic=topic)
    for kind, run in runs.items():
        lineage.tell(kind, JobRun("n", "j", run, "LINK", (), (), {}), "gone")
    ends = {runs[kind] for kind in (RunState.COMPLETE, RunState.ABORT, RunState.FAIL)}
    found = recent(connection, topic)
    assert (found.since, found.ended) == (None, ends)
