"""A source grows while Spark copies it between two real clusters."""

from collections.abc import Iterator
from threading import Thread

import pytest

from local_platform import Endpoints
from mesh_events.facts import LinkActivated, LinkFailed
from processors.clusters.rights import Operation
from processors.controllers.flows.ends import ClusterLogs
from projections.links import State
from tests.integration.partitions.owner import add_partitions, numbered, partitions_of
from tests.links.real import RealLink, assert_exact


@pytest.fixture
def link(platform: Endpoints) -> Iterator[RealLink]:
    made = RealLink(platform)
    yield made
    made.close()


def test_partitions_added_under_load_reach_the_copy_in_order(link: RealLink) -> None:
    link.produce(*numbered(0, 3_000, 3))
    link.reconcile_until(link.caught_up)
    add_partitions(link.east.login, link.topic, 5)
    link.produce(*numbered(3_000, 5_000, 5))
    link.reconcile_until(lambda: partitions_of(link) == 5 and link.caught_up())
    link.produce(*numbered(8_000, 500, 5))
    link.reconcile_until(link.caught_up)
    assert_exact(link)
    assert link.harness.said(LinkFailed) == []
    assert [set(fact.positions) for fact in link.harness.said(LinkActivated)] == [
        {"0", "1", "2"},
        {"0", "1", "2", "3", "4"},
    ]


def test_a_source_above_the_limit_stops_its_link_until_it_is_raised(link: RealLink) -> None:
    link.produce(*numbered(0, 300, 3))
    link.reconcile_until(link.caught_up)
    link.controller.close()
    link.most_partitions = 3
    link.controller = link.new_controller()
    add_partitions(link.east.login, link.topic, 4)
    link.produce(*numbered(300, 400, 4))
    link.reconcile_until(lambda: link.harness.link.failure_code == "too_many_partitions")
    assert partitions_of(link) == 3
    rights = link.west.rights(topic=link.topic)
    assert not [one for one in rights if one.operation is Operation.WRITE]
    link.controller.close()
    link.most_partitions = 4
    link.controller = link.new_controller()
    link.reconcile_until(lambda: partitions_of(link) == 4 and link.caught_up())
    assert_exact(link)
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["too_many_partitions"]


def test_partitions_added_while_a_link_is_paused_are_copied_when_it_goes_on(
    link: RealLink,
) -> None:
    link.produce(*numbered(0, 30, 3))
    link.reconcile_until(link.caught_up)
    link.harness.pause()
    link.reconcile_until(lambda: link.harness.link.state is State.PAUSED)
    add_partitions(link.east.login, link.topic, 4)
    link.produce(*numbered(30, 400, 4))
    link.reconcile()
    assert partitions_of(link) == 3
    link.harness.resume()
    link.reconcile_until(link.caught_up)
    assert_exact(link)
    assert link.harness.said(LinkFailed) == []


def test_a_link_whose_source_grows_does_not_hold_up_another_one(
    platform: Endpoints, link: RealLink
) -> None:
    logs, other = ClusterLogs(platform.tls), RealLink(platform)
    try:
        for one in (link, other):
            one.logs = logs
            one.controller.close()
            one.controller = one.new_controller()
            one.produce(*numbered(0, 30, 3))
            one.reconcile_until(one.caught_up)
        add_partitions(link.east.login, link.topic, 6)
        grown = Thread(target=link.reconcile_until, args=(lambda: partitions_of(link) == 6,))
        grown.start()
        looks = 0
        while grown.is_alive():
            other.reconcile()
            looks += 1
        grown.join()
        # the first one's start takes many of them
        assert looks > 2
        link.reconcile_until(link.caught_up)
        assert_exact(link)
        assert_exact(other)
    finally:
        other.close()
