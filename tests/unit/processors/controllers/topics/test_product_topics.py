"""A product's topic that somebody deleted: told on the log once, shown, and ended."""

import json

import pytest

from mesh_events.facts import DriftFound, DriftKind, Fact, Remedy
from processors.clusters import drift
from processors.clusters.drift import Finding
from processors.clusters.rights import Acl
from processors.controllers.rights import unexpected
from processors.controllers.topics import product_topics
from processors.controllers.topics.drift_reporter import MOST, WINDOW_S, DriftReporter
from processors.controllers.topics.product_topics import ProductTopics
from self_service.cli.mesh.failures import failures, missing_topics
from tests import sample_history as story
from tests.connectors.memory import MemoryLeadership
from tests.links.memory import MemoryCluster
from tests.memory_log import MemoryLog

PRODUCT, TOPIC = "east.users", "east.users"


class World:
    """East in memory, and the look over a log in memory; `time` in seconds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.log, self.time = MemoryLog(), 1000.0
        story.published(self.log)
        self.east, self.leadership = MemoryCluster("east"), MemoryLeadership(self.log)
        self.east.create_topic(TOPIC, 1, {})
        patch.setattr(product_topics.time, "monotonic", lambda: self.time)
        self.topics = ProductTopics()
        self.reporter = DriftReporter("east", self.log.image, self.leadership)

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.time += unexpected.LOOK_S + 1
            self.reporter.begin(self.log.image, self.leadership)
            self.topics.look(self.east, self.reporter)

    def told(self) -> list[Fact]:
        """What was told since the last call."""
        facts = list(self.leadership.facts)
        self.leadership.facts.clear()
        return facts


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_topic_that_is_there_is_nothing_to_tell(world: World) -> None:
    world.look(5)
    assert world.told() == []
    assert missing_topics(world.log.image) == []


def test_a_deleted_topic_is_told_once_and_listed_with_code_and_next_step(world: World) -> None:
    world.look(2)
    world.east.delete_topic(TOPIC)
    world.look()
    assert world.told() == []
    before = world.log.image
    world.look(5)
    [fact] = world.told()
    assert isinstance(fact, DriftFound)
    assert (fact.drift, fact.remedy) == (DriftKind.TOPIC_MISSING, Remedy.LEFT)
    assert (fact.subject, fact.cluster, fact.topics) == (f"product/{PRODUCT}", "east", [TOPIC])
    [listed] = failures(world.log.image)
    assert (listed["kind"], listed["name"], listed["code"]) == ("product", PRODUCT, "TOPIC_MISSING")
    assert f"sdm product update {PRODUCT} --topic-replaced" in listed["next"]
    json.dumps(listed)
    # as of a moment before
    assert failures(before) == []
    assert missing_topics(world.log.image, PRODUCT) == [listed]
    assert missing_topics(world.log.image, "east.other") == []


def test_a_topic_that_is_there_again_ends_it_also_for_another_worker(world: World) -> None:
    world.east.delete_topic(TOPIC)
    world.look(3)
    assert len(world.told()) == 1
    world.topics = ProductTopics()
    world.look(3)
    assert world.told() == []
    world.east.create_topic(TOPIC, 1, {})
    world.look(3)
    [fact] = world.told()
    assert isinstance(fact, DriftFound)
    assert fact.remedy is Remedy.ENDED
    assert failures(world.log.image) == []


def of_topics(domain: str, count: int) -> list[Finding]:
    return [
        Finding(
            *(DriftKind.TOPIC_MISSING, "east", f"product/{domain}.p{at}", 1, ""),
            *(frozenset(), (f"{domain}.p{at}",)),
        )
        for at in range(count)
    ]


def test_a_domain_that_deletes_its_topics_hides_no_right_and_no_topic_of_others(
    world: World,
) -> None:
    """Thirty facts on a cluster were told in ten minutes, whoever caused them."""
    deleted = [*of_topics("east", MOST + 10), *of_topics("north", 1)]
    world.reporter.left(deleted, drift.TOPICS)
    told = [str(one.subject) for one in world.told() if isinstance(one, DriftFound)]
    assert len(told) == MOST + 1
    assert told[-1] == "product/north.p0"
    acl = Acl("mallory", "read", "topic", TOPIC)
    foreign = Finding(
        *(DriftKind.FOREIGN_RIGHT, "east", "principal/mallory", -1, "mallory"),
        *(frozenset({acl}), (TOPIC,)),
    )
    world.reporter.begin(world.log.image, world.leadership)
    world.reporter.left([foreign], drift.STRANGE)
    [fact] = world.told()
    assert isinstance(fact, DriftFound)
    assert fact.subject == "principal/mallory"
    # the others follow when there is room
    world.time += WINDOW_S + 1
    world.reporter.begin(world.log.image, world.leadership)
    world.reporter.left(deleted, drift.TOPICS)
    assert len(world.told()) == 10


def test_a_topic_of_another_cluster_is_not_looked_for(world: World) -> None:
    world.reporter = DriftReporter("west", world.log.image, world.leadership)
    world.look(3)
    assert world.told() == []
