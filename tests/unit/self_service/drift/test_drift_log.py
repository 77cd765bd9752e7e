"""What `sdm drift` compares a product's topic with."""

from mesh_events import intents
from mesh_events.facts import DriftFound, DriftKind, Remedy
from processors.clusters.kafka import Topic
from processors.clusters.topic_drift import TopicDrift, of_product
from projections.deciding.verdict import Accepted
from projections.rules.catalog import TOPIC_EXISTS
from self_service.cli.drift.log import read
from tests import sample_history as story
from tests.memory_log import ALL_PASS, CheckTable, Fails, MemoryLog, Passes

FOUND = {
    "subject": "domain/east",
    "cluster": "east",
    "generation": 1,
    "bindings": ["User:east may READ topic east."],
    "drift": DriftKind.UNGRANTED_RIGHT,
    "remedy": Remedy.REPAIRED,
    "principal": "",
    "topics": [],
}
HOUR_MS = 3_600_000
NOW = Topic("east.users", "id-2", 3, {})


def published() -> MemoryLog:
    """A product whose topic was made again, with more partitions, since it was published."""
    log = MemoryLog(checks=finding("id-1", "2"))
    story.published(log)
    return log


def finding(topic_id: str, partitions: str) -> CheckTable:
    evidence = {"topic_id": topic_id, "partitions": partitions}
    return {**ALL_PASS, TOPIC_EXISTS: Passes(evidence)}


def kinds(log: MemoryLog) -> list[TopicDrift]:
    found = read(log.records)
    product = found.image.catalog[story.PRODUCT]
    return [one.kind for one in of_product(product, NOW, found.evidence[story.PRODUCT])]


def test_a_replaced_topic_is_drift_until_its_owner_offers_it() -> None:
    log = published()
    both = [TopicDrift.TOPIC_RECREATED, TopicDrift.PARTITIONS_CHANGED]
    assert kinds(log) == both
    log.say(intents.ProductUpdated, "east", product=story.PRODUCT, sla=1)
    log.govern()
    assert kinds(log) == both
    log.checks = finding("id-2", "3")
    log.say(intents.ProductUpdated, "east", product=story.PRODUCT, topic_replaced=True)
    log.govern()
    assert kinds(log) == []


def test_an_offer_of_a_topic_that_does_not_exist_is_refused() -> None:
    log = published()
    log.checks = {**ALL_PASS, TOPIC_EXISTS: Fails("unknown_topic")}
    log.say(intents.ProductUpdated, "east", product=story.PRODUCT, topic_replaced=True)
    log.govern()
    assert kinds(log) == [TopicDrift.TOPIC_RECREATED, TopicDrift.PARTITIONS_CHANGED]


def test_a_copied_finding_is_told_once() -> None:
    log = published()
    offset = log.report(DriftFound, **FOUND)
    assert [one.offset for one in read(log.records).told] == [offset]
    log.put(log.records[offset])
    assert [one.offset for one in read(log.records).told] == [offset]


def test_drift_was_found_at_the_meshs_time_whatever_the_brokers_clock_showed() -> None:
    log = published()
    right = log.now
    log.append(log.make(DriftFound, "mesh", **FOUND), by="controller", time=right + HOUR_MS)
    [told] = read(log.records).told
    assert (told.time, told.appended) == (right, right + HOUR_MS)


def test_no_drift_is_later_than_the_decision_behind_it() -> None:
    """Broker and worker were ahead together when it was told, and right at the next decision."""
    log = published()
    right = log.now
    log.now += HOUR_MS
    log.report(DriftFound, **FOUND)
    log.now = right + 1000
    log.say(intents.ApplicationRegistered, "east", application="east.one")
    log.rule(log.records[-1].offset, Accepted())
    found = read(log.records)
    [told] = found.told
    assert told.time == found.image.clock == log.records[-1].time
