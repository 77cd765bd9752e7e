"""A source grows while MirrorMaker copies it between two real clusters, and after a handover."""

from collections.abc import Iterator

import pytest

from local_platform import Endpoints
from mesh_events.facts import LinkActivated, LinkFailed
from mesh_events.intents import Engine
from processors.clusters.rights import Operation
from projections.links import State
from tests.integration.partitions.owner import add_partitions, numbered, partitions_of
from tests.links.real import RealMirror, assert_exact


@pytest.fixture
def link(platform: Endpoints) -> Iterator[RealMirror]:
    made = RealMirror(platform)
    yield made
    made.close()


def test_partitions_added_under_load_reach_the_copy_in_order(link: RealMirror) -> None:
    link.produce(*numbered(0, 3_000, 3))
    link.reconcile_until(link.caught_up, 90)
    add_partitions(link.east.login, link.topic, 5)
    link.produce(*numbered(3_000, 5_000, 5))
    link.reconcile_until(lambda: partitions_of(link) == 5 and link.caught_up(), 90)
    link.produce(*numbered(8_000, 500, 5))
    link.reconcile_until(link.caught_up, 90)
    assert_exact(link)
    assert link.harness.said(LinkFailed) == []
    assert [len(fact.positions) for fact in link.harness.said(LinkActivated)] == [3, 5]


def test_a_source_above_the_limit_stops_its_link_until_it_is_raised(
    link: RealMirror,
) -> None:
    link.produce(*numbered(0, 300, 3))
    link.reconcile_until(link.caught_up, 90)
    link.controller.close()
    link.most_partitions = 3
    link.controller = link.new_controller()
    add_partitions(link.east.login, link.topic, 4)
    link.produce(*numbered(300, 400, 4))
    link.reconcile_until(lambda: link.harness.link.failure_code == "too_many_partitions", 90)
    assert partitions_of(link) == 3
    rights = link.west.rights(topic=link.topic)
    assert not [one for one in rights if one.operation is Operation.WRITE]
    link.controller.close()
    link.most_partitions = 4
    link.controller = link.new_controller()
    link.reconcile_until(lambda: partitions_of(link) == 4 and link.caught_up(), 90)
    assert_exact(link)
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["too_many_partitions"]


def test_spark_goes_on_with_partitions_that_were_added_while_the_link_was_paused(
    link: RealMirror,
) -> None:
    link.produce(*numbered(0, 300, 3))
    link.reconcile_until(link.caught_up, 90)
    link.harness.pause()
    link.reconcile_until(lambda: link.harness.link.state is State.PAUSED)
    add_partitions(link.east.login, link.topic, 4)
    link.produce(*numbered(300, 400, 4))
    link.harness.resume(Engine.SPARK)
    link.reconcile_until(link.caught_up)
    assert_exact(link)
    assert link.harness.said(LinkFailed) == []
