"""Every failure of a link: what is told, what is tried again, and what stays closed."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from mesh_events.facts import Fact, LinkActivated, LinkAdvanced, LinkFailed
from processors.clusters.rights import Operation
from processors.controllers.flows import fence
from processors.controllers.flows.flows import LOST
from projections.links import State
from spark_streams.engine import CopySpec, States
from spark_streams.errors import EngineError
from tests.links.memory import MemoryLink

Spoil = Callable[[MemoryLink], None]


def source_missing(link: MemoryLink) -> None:
    del link.east.topics[link.topic]


def source_recreated(link: MemoryLink) -> None:
    source_missing(link)
    link.east.create_topic(link.topic, 2, {})
    link.produce(40)


def source_gap(link: MemoryLink) -> None:
    link.produce(10)
    for partition in link.source.partitions:
        partition.expire(partition.end - 1)


def source_truncated(link: MemoryLink) -> None:
    for partition in link.source.partitions:
        partition.end = 2


def source_unclean(link: MemoryLink) -> None:
    described = link.source.described
    config = {**described.config, "unclean.leader.election.enable": "true"}
    link.source.described = replace(described, config=config)


def destination_deleted(link: MemoryLink) -> None:
    del link.west.topics[link.topic]


def destination_recreated(link: MemoryLink) -> None:
    destination_deleted(link)
    link.west.create_topic(link.topic, 2, {})


def destination_emptied(link: MemoryLink) -> None:
    for partition in link.destination.partitions:
        partition.expire(partition.end)


def destination_cut_off(link: MemoryLink) -> None:
    partition = link.destination.partitions[0]
    partition.end -= 1
    del partition.records[partition.end]


def destination_foreign(link: MemoryLink) -> None:
    link.destination.partitions[1].append(b"not ours")


def partitions_differ(link: MemoryLink) -> None:
    link.destination.grow(3)


FATAL: list[tuple[str, Spoil]] = [
    ("source_recreated", source_recreated),
    ("source_gap", source_gap),
    ("source_truncated", source_truncated),
    ("destination_lost", destination_deleted),
    ("destination_lost", destination_recreated),
    ("destination_lost", destination_emptied),
    ("destination_lost", destination_cut_off),
    ("destination_foreign", destination_foreign),
    ("partitions_differ", partitions_differ),
]


@pytest.mark.parametrize(("code", "spoil"), FATAL, ids=[spoil.__name__ for _, spoil in FATAL])
def test_in_doubt_a_link_closes_and_waits_for_a_person(code: str, spoil: Spoil) -> None:
    link = MemoryLink()
    link.produce(10)
    link.settle()
    link.engine.die()
    spoil(link)
    before = {p: dict(one.records) for p, one in enumerate(contents(link))}
    link.settle()
    lost, fact = link.harness.said(LinkFailed)
    assert lost.reason == LOST
    assert fact.code == code
    assert not fact.retriable
    assert len(fact.reason) > 40
    assert link.harness.link.state is State.FAILED
    assert link.engine.states() == {}
    assert not [found for found in link.west.bindings if found.operation is Operation.WRITE]
    assert {p: dict(one.records) for p, one in enumerate(contents(link))} == before
    assert len(link.harness.said(LinkActivated)) == 1

    link.controller = link.new_controller()
    link.settle()
    assert len(link.harness.said(LinkFailed)) == 2


def contents(link: MemoryLink) -> list:
    found = link.west.topics.get(link.topic)
    return found.partitions if found else []


@pytest.mark.parametrize(
    ("code", "spoil"),
    [
        ("source_recreated", source_recreated),
        ("source_unclean", source_unclean),
        ("destination_lost", destination_deleted),
        ("destination_lost", destination_recreated),
        ("destination_foreign", destination_foreign),
    ],
)
def test_a_running_link_whose_topics_change_is_stopped(code: str, spoil: Spoil) -> None:
    """A producer goes on writing into whatever topic has the name."""
    link = MemoryLink()
    link.produce(10)
    link.settle()
    spoil(link)
    link.reconcile()
    assert link.harness.said(LinkFailed)[0].code == code
    assert link.engine.states() == {}
    assert not [found for found in link.west.bindings if found.operation is Operation.WRITE]


@pytest.mark.parametrize(("code", "spoil"), FATAL, ids=[spoil.__name__ for _, spoil in FATAL])
def test_a_failed_link_can_be_removed_and_made_again(code: str, spoil: Spoil) -> None:
    link = MemoryLink()
    link.produce(10)
    link.settle()
    link.engine.die()
    spoil(link)
    link.settle()
    link.harness.remove()
    link.settle()
    assert link.harness.link.state is State.DELETED
    link.west.topics.clear()
    link.harness.create()
    link.settle()
    assert link.findings() == []


@pytest.mark.parametrize("reason", ["\ud800", "x" * 3000])
def test_a_reason_that_the_log_has_in_other_words_is_told_once(reason: str) -> None:
    link = MemoryLink()
    link.settle()
    link.engine.down = True

    def states() -> States:
        raise EngineError("engine_unavailable", reason)

    link.engine.states = states  # type: ignore[method-assign]
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert fact.model_dump_json()


def test_a_failure_that_cannot_be_reported_does_not_end_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = MemoryLink()
    link.settle()
    link.engine.down = True

    def report(fact: Fact) -> None:
        raise ValueError(f"nobody has thought of {type(fact).__name__}")

    with monkeypatch.context() as patch:
        patch.setattr(link.harness, "report", report)
        link.settle()
    link.settle()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["engine_unavailable"]


def test_an_engine_whose_answer_nobody_understands_does_not_end_the_worker() -> None:
    link = MemoryLink()
    link.settle()
    answers = link.engine.states

    def states() -> States:
        raise RuntimeError("deadlock detected by _ModuleLock")

    link.engine.states = states  # type: ignore[method-assign]
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert (fact.code, "deadlock" in fact.reason) == ("engine_unavailable", False)
    link.engine.states = answers  # type: ignore[method-assign]
    link.settle()
    assert link.harness.link.failure is None


def test_a_topic_of_the_same_name_is_never_overwritten() -> None:
    link = MemoryLink()
    link.west.create_topic(link.topic, 2, {})
    link.produce(4)
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert fact.code == "destination_foreign"
    assert [len(p.records) for p in link.destination.partitions] == [0, 0]
    assert link.west.bindings == set()

    # the person does what the reason says
    link.west.topics.clear()
    link.harness.pause()
    link.settle()
    link.harness.resume()
    link.settle()
    assert link.findings() == []


def test_a_missing_source_is_waited_for() -> None:
    link = MemoryLink()
    source_missing(link)
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert (fact.code, fact.retriable) == ("source_missing", True)
    link.east.create_topic(link.topic, 2, {})
    link.produce(4)
    link.settle()
    assert link.findings() == []
    assert link.harness.link.failure is None


def test_an_engine_that_is_down_is_waited_for() -> None:
    link = MemoryLink()
    link.produce(4)
    link.engine.down = True
    link.settle()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["engine_unavailable"]
    link.engine.down = False
    link.settle()
    assert link.findings() == []


def test_a_link_that_never_ran_waits_for_its_server_and_has_not_failed() -> None:
    link = MemoryLink()
    link.produce(4)
    link.engine.starting = True
    link.settle()
    assert (link.harness.facts, link.harness.link.state) == ([], State.CREATED)
    link.engine.starting = False
    link.settle()
    assert link.findings() == []
    assert link.harness.said(LinkFailed) == []


def test_a_link_that_ran_has_failed_while_its_server_is_being_started() -> None:
    link = MemoryLink()
    link.produce(4)
    link.settle()
    assert link.harness.link.is_active
    link.engine.starting = True
    link.settle()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["engine_starting"]
    link.engine.queries.clear()
    link.engine.starting = False
    link.produce(4)
    link.settle()
    assert link.findings() == []
    assert link.harness.link.is_active


def test_a_link_ends_while_its_server_is_being_started() -> None:
    link = MemoryLink()
    link.produce(4)
    link.settle()
    link.engine.starting = True
    link.harness.remove()
    link.settle()
    assert link.harness.link.state is State.DELETED
    assert link.topic not in link.west.topics


@pytest.mark.parametrize("place", ["east", "west"])
def test_a_cluster_that_is_down_is_waited_for(place: str) -> None:
    link = MemoryLink()
    link.produce(4)
    link.clusters[place].down = True
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert (fact.code, fact.retriable) == ("cluster_unavailable", True)
    assert place in fact.reason
    link.clusters[place].down = False
    link.settle()
    assert link.findings() == []


def test_a_running_link_outlives_a_cluster_that_is_away_for_a_while() -> None:
    link = MemoryLink()
    link.produce(4)
    link.settle()
    link.west.down = True
    link.reconcile()
    link.west.down = False
    link.settle()
    assert link.harness.said(LinkFailed) == []
    assert len(link.harness.said(LinkActivated)) == 1


def test_too_few_slots_are_told_and_waited_for() -> None:
    link = MemoryLink(slots=1)
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert (fact.code, fact.retriable) == ("engine_full", True)


def test_a_query_that_fails_is_told_with_its_reason_and_started_anew() -> None:
    link = MemoryLink()
    link.produce(4)
    link.settle()
    link.engine.queries[-1].fault = "the disk is full"
    link.produce(4)
    link.reconcile()
    (fact,) = link.harness.said(LinkFailed)
    assert (fact.code, fact.retriable) == ("query_failed", True)
    assert "the disk is full" in fact.reason
    link.settle()
    assert link.findings() == []
    assert len(link.harness.said(LinkFailed)) == 1


def test_a_query_that_lives_and_does_not_copy_is_started_anew() -> None:
    link = MemoryLink()
    link.settle()
    link.produce(4, partition=0)
    for _ in range(7):
        link.reconcile()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["query_stalled"]
    link.settle()
    assert link.findings() == []


def test_a_query_that_starts_slowly_is_given_longer_each_time_until_it_gets_on() -> None:
    link = MemoryLink()
    link.settle()
    link.produce(4, partition=0)

    def looks_until_stalled() -> int:
        told = len(link.harness.said(LinkFailed))
        for looks in range(1, 2000):
            link.reconcile()
            if len(link.harness.said(LinkFailed)) > told:
                return looks
        raise AssertionError("it is never started anew")

    first, second, third = (looks_until_stalled() for _ in range(3))
    assert first < second < third
    link.settle()
    link.produce(4, partition=0)
    assert looks_until_stalled() <= first
    link.settle()
    assert link.findings() == []


def test_a_link_that_copies_slowly_is_not_stalled() -> None:
    link = MemoryLink()
    link.settle()
    link.produce(40, partition=0)
    link.engine.take()
    for _ in range(40):
        link.reconcile()
        link.engine.land(1)
    assert link.harness.said(LinkFailed) == []


def test_what_fails_again_and_again_is_tried_ever_more_seldom() -> None:
    link = MemoryLink()
    link.pace = {"retry_first": 1.0, "retry_most": 60.0}
    link.controller = link.new_controller()
    link.east.down = True
    tries: list[float] = []
    real = link.east.topic

    def counted(name: str):
        tries.append(link.time)
        return real(name)

    link.east.topic = counted
    for _ in range(400):
        link.reconcile()
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert pauses[:6] == [1, 2, 4, 8, 16, 32]
    assert set(pauses[6:]) == {60}
    assert len(link.harness.said(LinkFailed)) == 1


@pytest.mark.parametrize("made", [False, True])
def test_two_links_never_write_one_copy(made: bool) -> None:
    """Products of one topic, from before that was refused: both links took the name for free."""
    link = MemoryLink()
    other = fence.claim("mesh.link.east.people@west.0a1b2c3d", link.topic)
    if made:
        link.west.create_topic(link.topic, 2, {})
    link.west.bindings.add(other)
    link.produce(4)
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert fact.code == "destination_foreign"
    assert [len(p.records) for p in link.destination.partitions] == [0, 0]
    assert link.engine.states() == {}


def test_what_an_engine_that_did_not_answer_still_has_is_removed_later() -> None:
    link = MemoryLink()
    link.produce(2)
    link.settle()
    link.engine.down = True
    link.harness.pause()
    link.settle()
    assert link.harness.link.state is State.PAUSED
    link.engine.down = False
    # it found out by itself that it may not write any more
    link.engine.queries[-1].fault = "the login was refused"
    link.settle()
    assert link.engine.states() == {}


def test_an_engine_that_answers_and_cannot_start_is_not_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link, starts = MemoryLink(), list[CopySpec]()

    def start(spec: CopySpec) -> None:
        starts.append(spec)
        raise EngineError("engine_unavailable", "the connector did not run in 30 s")

    monkeypatch.setattr(link.engine, "start", start)
    link.pace = {"retry_first": 60, "retry_most": 60}
    link.controller = link.new_controller()
    for _ in range(20):
        link.reconcile()
    assert len(starts) == 1


def test_a_link_whose_query_is_gone_is_reported_before_it_is_started() -> None:
    """Whoever reads ACTIVE in between would believe that it runs."""
    link = MemoryLink()
    link.settle()
    link.engine.die()
    before = len(link.harness.facts)
    link.settle()
    after = [fact for fact in link.harness.facts[before:] if not isinstance(fact, LinkAdvanced)]
    assert [type(fact) for fact in after] == [LinkFailed, LinkActivated]
    assert [(fact.code, fact.reason) for fact in link.harness.said(LinkFailed)] == [
        ("query_failed", LOST)
    ]
    assert link.harness.link.state is State.ACTIVE
