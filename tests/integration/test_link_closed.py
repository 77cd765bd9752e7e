"""In doubt a link between real clusters closes; so told by the topics themselves."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from local_platform import Endpoints
from mesh_events.facts import LinkFailed
from processors.clusters.rights import Operation
from processors.controllers.flows.fence import bindings_of
from projections.links import State
from tests.links.real import RealLink, count


@pytest.fixture
def link(platform: Endpoints) -> Iterator[RealLink]:
    made = RealLink(platform, partitions=2)
    yield made
    made.close()


@pytest.fixture
def paused(link: RealLink) -> RealLink:
    """A link that copied 20 records and stands still."""
    link.produce(*[(n % 2, None, b"v", None) for n in range(20)])
    link.reconcile_until(link.caught_up)
    link.harness.pause()
    link.reconcile_until(lambda: link.harness.link.state is State.PAUSED)
    return link


def assert_closed(link: RealLink, code: str) -> None:
    link.reconcile_until(
        lambda: any(not fault.retriable for fault in link.harness.said(LinkFailed))
    )
    # on a busy machine the copy may have stalled before
    final = [fault.code for fault in link.harness.said(LinkFailed) if not fault.retriable]
    assert final == [code]
    engine = link.new_engine()
    assert engine.states().get(link.harness.name, ()) == ()
    engine.close()
    rights = bindings_of(link.west, link.topic, link.harness.name)
    assert not [found for found in rights if found.operation is Operation.WRITE]


def empty(link: RealLink, admin, partitions: int = 2) -> None:
    client = AdminClient(admin.login.config())
    wanted = [TopicPartition(link.topic, partition, -1) for partition in range(partitions)]
    for answer in client.delete_records(wanted).values():
        answer.result(10)


def test_an_emptied_copy_is_lost(paused: RealLink) -> None:
    empty(paused, paused.west)
    paused.harness.resume()
    assert_closed(paused, "destination_lost")


def test_a_link_goes_on_where_its_source_was_emptied_as_well(paused: RealLink) -> None:
    empty(paused, paused.east)
    empty(paused, paused.west)
    paused.harness.resume()
    paused.reconcile_until(lambda: paused.harness.link.state is State.ACTIVE)
    paused.produce(*[(n % 2, None, b"new", None) for n in range(4)])
    paused.reconcile_until(lambda: count(paused.copy()) == 4)
    assert not paused.harness.said(LinkFailed)


def test_a_copy_that_was_made_anew_is_lost(paused: RealLink) -> None:
    paused.recreate(paused.west)
    paused.harness.resume()
    assert_closed(paused, "destination_lost")
    assert count(paused.copy()) == 0


def test_a_strangers_record_at_the_end_closes_the_link(paused: RealLink) -> None:
    producer = Producer(paused.west.login.config())
    producer.produce(paused.topic, b"not ours", partition=1)
    assert producer.flush(10) == 0
    paused.harness.resume()
    assert_closed(paused, "destination_foreign")
    assert count(paused.copy()) == 21


def test_a_strangers_topic_is_never_written(link: RealLink) -> None:
    link.west.create_topic(link.topic, 2, {})
    link.produce((0, None, b"v", None))
    assert_closed(link, "destination_foreign")
    assert count(link.copy()) == 0


def test_a_source_that_was_made_anew_closes_the_link(paused: RealLink) -> None:
    paused.recreate(paused.east)
    paused.harness.resume()
    assert_closed(paused, "source_recreated")


def test_records_that_the_source_lost_before_they_were_copied_close_the_link(
    paused: RealLink,
) -> None:
    paused.produce(*[(n % 2, None, b"v", None) for n in range(20)])
    empty(paused, paused.east)
    paused.produce(*[(n % 2, None, b"v", None) for n in range(20)])
    paused.harness.resume()
    assert_closed(paused, "source_gap")


def test_a_running_link_notices_that_its_copy_was_made_anew(link: RealLink) -> None:
    link.produce((0, None, b"v", None))
    link.reconcile_until(link.caught_up)
    link.recreate(link.west)
    assert_closed(link, "destination_lost")
