"""What a link tells of how far it has to come until its copy has all that its source holds."""

import pytest

from mesh_events.facts import LinkActivated, LinkAdvanced
from mesh_events.intents import Engine
from processors.controllers.links.links import CopyPlan
from projections.links import State
from spark_streams.log import Ahead, Bounds
from tests.links.memory import MemoryLink


@pytest.fixture(params=[Engine.SPARK, Engine.MIRRORMAKER])
def link(request: pytest.FixtureRequest) -> MemoryLink:
    return made(by=request.param)


def made(**more: object) -> MemoryLink:
    """A link whose floor is put on the log seldom."""
    found = MemoryLink(**more)  # type: ignore[arg-type]
    found.pace = {"advance": 1e9}
    found.controller = found.new_controller()
    return found


def test_a_start_tells_the_sources_last_records_and_not_its_markers(link: MemoryLink) -> None:
    link.produce(10)
    for partition in link.source.partitions:
        partition.mark()
    link.reconcile()
    (fact,) = link.harness.said(LinkActivated)
    assert fact.source_ends == {"0": 5, "1": 5}
    assert not link.harness.link.is_filled


def test_an_empty_source_is_filled_at_once(link: MemoryLink) -> None:
    link.source.partitions[0].mark()
    link.reconcile()
    assert link.harness.link.is_filled


def test_it_is_told_at_once_that_the_copy_is_filled_and_only_once(link: MemoryLink) -> None:
    link.produce(10)
    link.reconcile()
    link.reconcile()
    first = len(link.harness.said(LinkAdvanced))
    assert not link.harness.link.is_filled
    link.engine.take()
    link.produce(10)
    link.engine.land()
    link.reconcile()
    # the source has more by now: what it held at the start is there
    assert link.harness.link.is_filled
    assert len(link.harness.said(LinkAdvanced)) == first + 1
    link.settle()
    assert len(link.harness.said(LinkAdvanced)) == first + 1


def test_a_pause_before_it_is_filled_leaves_it_so_and_the_next_start_has_other_ends(
    link: MemoryLink,
) -> None:
    link.produce(10)
    link.reconcile()
    link.harness.pause()
    link.reconcile()
    assert not link.harness.link.is_filled
    link.produce(2)
    link.harness.resume()
    link.reconcile()
    assert dict(link.harness.link.source_ends) == {"0": 6, "1": 6}
    link.settle()
    assert link.harness.link.is_filled


def test_a_worker_that_takes_over_goes_by_the_ends_on_the_log(link: MemoryLink) -> None:
    link.produce(10)
    link.reconcile()
    link.controller = link.new_controller()
    link.reconcile()
    assert not link.harness.link.is_filled
    link.engine.move()
    link.reconcile()
    assert link.harness.link.is_filled
    assert len(link.harness.said(LinkActivated)) == 1


def test_records_that_are_gone_from_the_source_before_they_were_copied_are_not_waited_for(
    link: MemoryLink,
) -> None:
    link.produce(10)
    link.reconcile()
    for partition in link.source.partitions:
        # compaction took the last ones, and nothing came behind them
        for offset in (3, 4):
            del partition.records[offset]
    link.settle()
    assert link.harness.link.is_filled
    assert dict(link.harness.link.source_ends) == {"0": 3, "1": 3}


def test_of_a_link_that_an_earlier_version_started_the_ends_are_told_later(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CopyPlan, "more", lambda _: {})
    link.produce(10)
    link.reconcile()
    assert not link.harness.link.source_ends
    link.reconcile()
    assert dict(link.harness.link.source_ends) == {"0": 5, "1": 5}
    assert not link.harness.link.is_filled
    link.settle()
    assert link.harness.link.is_filled
    assert len(link.harness.said(LinkActivated)) == 1


def test_partitions_that_are_added_are_to_be_filled_too(link: MemoryLink) -> None:
    link.produce(10)
    link.settle()
    assert link.harness.link.is_filled
    link.source.grow(3)
    link.produce(4, partition=2)
    link.reconcile()
    assert dict(link.harness.link.source_ends) == {"0": 5, "1": 5, "2": 4}
    assert not link.harness.link.is_filled
    link.settle()
    assert link.harness.link.is_filled


def test_ends_of_transactions_that_were_passed_are_not_read_again(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each look: a domain writes millions of them, which count in no quota of bytes."""
    link.produce(10)
    link.settle()
    asked = list[dict[int, tuple[int, int]]]()
    first = link.east.first

    def counted(topic: str, within: Bounds, most_s: float) -> dict[int, Ahead]:
        asked.append(dict(within))
        return first(topic, within, most_s)

    monkeypatch.setattr(link.east, "first", counted)
    for partition in link.source.partitions:
        partition.mark()
        partition.mark()
    link.reconcile()
    link.reconcile()
    assert asked == [{0: (5, 7), 1: (5, 7)}, {0: (7, 7), 1: (7, 7)}]
    link.produce(2)
    link.reconcile()
    link.settle()
    assert all(len(one.records) == 6 for one in link.destination.partitions)
    assert link.harness.link.state is State.ACTIVE


def test_a_copy_is_not_filled_while_it_is_not_known_what_is_ahead(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    link.produce(10)
    for partition in link.source.partitions:
        partition.mark()

    def searching(_: str, within: Bounds, __: float) -> dict[int, Ahead]:
        return {p: Ahead(low, is_record=False, is_known=False) for p, (low, _) in within.items()}

    link.reconcile()
    for partition in link.source.partitions:
        partition.expire(6)
    with monkeypatch.context() as patch:
        patch.setattr(link.east, "first", searching)
        link.reconcile()
        assert not link.harness.link.is_filled
    link.reconcile()
    assert link.harness.link.is_filled
