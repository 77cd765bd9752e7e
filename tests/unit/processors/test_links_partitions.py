"""Partitions that are added at the source of a link, over clusters and an engine in memory."""

import pytest

from mesh_events.facts import LinkActivated, LinkFailed
from mesh_events.intents import Engine
from processors.clusters.rights import Operation
from processors.controllers.flows import starting
from projections.links import State
from tests.links.memory import MemoryLink
from tests.unit.processors.controllers.flows.test_links_crashes import Crashes, look

PLACES = ["link-after-fence", "link-after-tail", "link-after-grant", "link-after-start"]


@pytest.fixture
def link() -> MemoryLink:
    made = MemoryLink()
    made.produce(6)
    made.settle()
    return made


def test_partitions_added_at_the_source_are_added_to_the_copy_and_copied(link: MemoryLink) -> None:
    link.source.grow(4)
    link.produce(12)
    link.settle()
    assert link.destination.described.partitions == 4
    assert link.findings() == []
    assert link.harness.link.state is State.ACTIVE
    assert link.harness.said(LinkFailed) == []
    first, second = link.harness.said(LinkActivated)
    assert second.positions == {"0": 3, "1": 3, "2": 0, "3": 0}
    assert second.destination_topic_id == first.destination_topic_id


def test_a_link_is_restarted_once_for_added_partitions(link: MemoryLink) -> None:
    link.source.grow(3)
    link.settle()
    link.controller = link.new_controller()
    link.settle()
    assert len(link.harness.said(LinkActivated)) == 2


def test_a_query_that_finds_added_partitions_by_itself_doubles_nothing(link: MemoryLink) -> None:
    link.source.grow(3)
    link.produce(6)
    link.engine.discover()
    link.engine.move()
    link.settle()
    assert link.findings() == []

    # the copy has grown, and the query reads on before the controller looks again
    link.source.grow(4)
    link.destination.grow(4)
    link.produce(8)
    link.engine.discover()
    link.engine.take()
    link.engine.land(3)
    link.settle()
    assert link.findings() == []


@pytest.mark.parametrize("place", PLACES)
def test_a_restart_for_added_partitions_that_was_cut_off_is_made_up_for(
    place: str, link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = Crashes()
    monkeypatch.setattr(starting, "crash_point", crashes)
    link.source.grow(4)
    link.produce(8)
    crashes.place = place
    look(link)
    assert crashes.passed[-1] == place
    link.engine.discover()
    link.engine.take()
    link.engine.land(2)
    link.settle()
    assert link.findings() == []
    assert link.harness.link.state is State.ACTIVE


def test_added_partitions_of_a_paused_link_are_copied_when_it_goes_on(link: MemoryLink) -> None:
    link.harness.pause()
    link.settle()
    link.source.grow(3)
    link.produce(6)
    link.settle()
    assert link.destination.described.partitions == 2
    link.harness.resume()
    link.settle()
    assert link.findings() == []


def test_added_partitions_whose_first_records_are_gone_are_a_gap(link: MemoryLink) -> None:
    link.harness.pause()
    link.settle()
    link.source.grow(3)
    link.produce(6)
    link.source.partitions[2].expire(1)
    link.harness.resume()
    link.settle()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["source_gap"]
    assert "partition 2" in link.harness.link.failure


def test_too_few_slots_for_added_partitions_are_reported_and_waited_for() -> None:
    link = MemoryLink(partitions=2, slots=3)
    link.settle()
    link.source.grow(4)
    link.produce(8)
    link.settle()
    assert {fact.code for fact in link.harness.said(LinkFailed)} == {"engine_full"}
    assert link.harness.link.state is State.FAILED


def test_without_free_slots_neither_topic_nor_right_is_changed() -> None:
    link = MemoryLink(partitions=2, slots=3)
    link.settle()
    before = set(link.west.bindings), set(link.east.bindings)
    link.source.grow(4)
    link.settle()
    assert link.destination.described.partitions == 2
    assert (link.west.bindings, link.east.bindings) == before

    first = MemoryLink(partitions=4, slots=3)
    first.settle()
    assert first.topic not in first.west.topics
    assert first.harness.link.failure_code == "engine_full"
    assert (first.west.bindings, first.west.logins) == (set(), {})


@pytest.mark.parametrize("engine", [Engine.SPARK, Engine.MIRRORMAKER])
def test_a_source_above_the_limit_is_never_copied(engine: Engine) -> None:
    link = MemoryLink(partitions=4, most=3, by=engine)
    link.settle()
    (fault,) = link.harness.said(LinkFailed)
    assert (fault.code, fault.retriable) == ("too_many_partitions", False)
    for part in (link.topic, "4 partitions", "at most 3", "SDM_LINK_PARTITIONS"):
        assert part in fault.reason
    assert link.topic not in link.west.topics
    assert link.engine.queries == []


def test_a_source_that_grows_above_the_limit_stops_its_link_and_leaves_the_copy(
    link: MemoryLink,
) -> None:
    link.controller = link.new_controller(3)
    link.source.grow(4)
    link.produce(8)
    link.settle()
    (fault,) = link.harness.said(LinkFailed)
    assert (fault.code, fault.retriable) == ("too_many_partitions", False)
    assert link.destination.described.partitions == 2
    assert all(query.stopped for query in link.engine.queries)
    assert not any(found.operation is Operation.WRITE for found in link.west.bindings)
    assert [one.end for one in link.destination.partitions] == [3, 3]


@pytest.mark.parametrize("again", ["worker", "owner"])
def test_a_link_goes_on_when_the_limit_is_raised(link: MemoryLink, again: str) -> None:
    link.controller = link.new_controller(3)
    link.source.grow(4)
    link.produce(8)
    link.settle()
    link.controller = link.new_controller(4)
    if again == "owner":
        link.harness.pause()
        link.settle()
        link.harness.resume()
    link.settle()
    assert link.harness.link.state is State.ACTIVE
    assert link.destination.described.partitions == 4
    assert link.findings() == []


def test_a_cluster_that_refuses_more_partitions_is_reported(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mesh_events.errors import RefusedError

    def refuse(name: str, partitions: int) -> None:
        raise RefusedError("kafka_denied", f"{name} may not have {partitions} partitions")

    monkeypatch.setattr(link.west, "add_partitions", refuse)
    link.source.grow(3)
    link.settle()
    fault = link.harness.said(LinkFailed)[0]
    assert (fault.code, fault.retriable) == ("cluster_unavailable", True)
    assert "3 partitions" in fault.reason
    monkeypatch.undo()
    link.settle()
    assert link.findings() == []
