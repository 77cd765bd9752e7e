"""What of the mesh's own topics is less durable than it is to be."""

from dataclasses import replace

import pytest

from mesh_events.errors import ConfigurationError
from mesh_events.topics import CHECKPOINTS, GOVERNANCE, LINEAGE
from processors.own_topics.findings import Code, Described, Finding, findings
from processors.own_topics.wanted import MIN_INSYNC, TOPICS, UNCLEAN, Durability
from processors.settings import WorkerSettings

DURABLE, LOCAL = Durability(3, 2), Durability(1, 1)


def cluster(durability: Durability) -> dict[str, Described]:
    """The topics as they were created."""
    return {name: Described(durability.replicas, durability.config(name)) for name in TOPICS}


def changed(topic: str, setting: str, value: str) -> list[Finding]:
    found = cluster(DURABLE)
    found[topic] = replace(found[topic], config={**found[topic].config, setting: value})
    return list(findings(DURABLE, found))


@pytest.mark.parametrize("durability", [DURABLE, LOCAL], ids=str)
def test_topics_as_they_were_created_have_no_finding(durability: Durability) -> None:
    assert not list(findings(durability, cluster(durability)))


def test_topics_that_are_more_durable_have_no_finding() -> None:
    assert not list(findings(LOCAL, cluster(DURABLE)))


def test_topics_of_a_single_broker_are_refused_where_three_are_to_hold_them() -> None:
    found = list(findings(DURABLE, cluster(LOCAL)))
    assert {one.topic for one in found} == set(TOPICS)
    assert {one.code for one in found} == {Code.NOT_DURABLE}
    assert all(one.refuses for one in found)
    texts = [str(one) for one in found if one.topic == GOVERNANCE]
    assert "replication.factor is 1, it is to be 3" in texts[0]
    assert "kafka-reassign-partitions" in texts[0]
    assert texts[1].endswith("--entity-name mesh.governance --add-config min.insync.replicas=2")


@pytest.mark.parametrize(("setting", "value"), [(MIN_INSYNC, "1"), (UNCLEAN, "true")])
@pytest.mark.parametrize("topic", list(TOPICS))
def test_a_topic_that_may_lose_acknowledged_records_is_refused(
    topic: str, setting: str, value: str
) -> None:
    [one] = changed(topic, setting, value)
    assert (one.topic, one.code, one.refuses) == (topic, Code.NOT_DURABLE, True)


@pytest.mark.parametrize(
    ("topic", "setting", "value"),
    [
        (GOVERNANCE, "cleanup.policy", "compact"),
        (GOVERNANCE, "retention.ms", "604800000"),
        (GOVERNANCE, "message.timestamp.type", "CreateTime"),
        (CHECKPOINTS, "retention.bytes", "1000000"),
    ],
)
def test_another_setting_of_what_is_kept_for_ever_is_refused(
    topic: str, setting: str, value: str
) -> None:
    [one] = changed(topic, setting, value)
    assert (one.code, one.refuses) == (Code.SETTINGS_DIFFER, True)
    assert value in one.detail


def test_another_retention_of_lineage_is_told_and_left() -> None:
    [one] = changed(LINEAGE, "retention.ms", "604800000")
    assert (one.code, one.refuses) == (Code.SETTINGS_DIFFER, False)


def test_a_topic_that_is_missing_is_refused() -> None:
    found = cluster(DURABLE)
    del found[GOVERNANCE]
    [one] = findings(DURABLE, found)
    assert (one.topic, one.code, one.refuses) == (GOVERNANCE, Code.MISSING, True)


def test_fewer_replicas_than_must_acknowledge_a_record_are_refused() -> None:
    wrong = WorkerSettings.model_construct(replication_factor=1, min_insync_replicas=2)
    with pytest.raises(ConfigurationError, match="SDM_MIN_INSYNC_REPLICAS is 2"):
        _ = wrong.durability
