"""Records that are small on the wire and larger than a server's heap once they are unpacked."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from local_platform import Endpoints
from local_platform.settings import PlatformSettings
from mesh_events.facts import LinkFailed
from tests.links.real import RealLink, assert_exact
from tests.mesh_fixtures import pid_of

MOST = 1_000_000_000
"""The largest message that the client sends."""


@pytest.fixture
def links(platform: Endpoints) -> Iterator[list[RealLink]]:
    made = [RealLink(platform, 1), RealLink(platform, 1)]
    yield made
    for one in made:
        one.close()


def write_zeros(link: RealLink, size: int) -> None:
    """One record of so many zeros; Kafka counts what it takes when packed, a thousandth."""
    login = link.east.login.config(compression_type="gzip", message_max_bytes=MOST)
    producer = Producer(login)
    producer.produce(link.topic, bytes(size), b"k", 0)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("size", [900_000_000, 300_000_000], ids=["all", "half"])
def test_a_record_that_no_heap_holds_stops_no_other_link(
    links: list[RealLink], settings: PlatformSettings, size: int
) -> None:
    """A heap of a gigabyte has no room for it, or none for a second copy of it."""
    large, other = links
    other.produce((0, b"k", b"1", None))
    other.reconcile_until(other.caught_up)
    before = pid_of(settings, "spark")
    write_zeros(large, size)
    large.reconcile_until(lambda: bool(large.desk.said(LinkFailed)))
    other.produce((0, b"k", b"2", None))
    other.reconcile_until(other.caught_up)
    assert_exact(other)
    assert pid_of(settings, "spark") == before, "the server ended"
    [fault, *_] = large.desk.said(LinkFailed)
    assert fault.code == "query_failed"
