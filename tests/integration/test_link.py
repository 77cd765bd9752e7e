"""Links between two real clusters, driven by the keeper over a real Spark Connect server."""

from collections.abc import Iterator

import pytest

from local_platform import Endpoints
from mesh_events.facts import CopyPurged, LinkActivated, LinkStopped
from projections.links import State
from tests.links.real import RealLink, until


@pytest.fixture
def link(platform: Endpoints) -> Iterator[RealLink]:
    made = RealLink(platform)
    yield made
    made.close()


def assert_exact(link: RealLink) -> None:
    """Key, value, headers, partition and order are the source's, with the provenance behind."""
    source, copy = link.source(), link.copy()
    topic_id = link.east.topic(link.topic).id
    assert copy.keys() == source.keys()
    for partition, records in source.items():
        expected = [
            (
                key,
                value,
                (*headers, ("mesh.source", f"east/{topic_id}/{partition}/{offset}".encode())),
            )
            for offset, key, value, headers in records
        ]
        assert [record[1:] for record in copy[partition]] == expected


def test_every_kind_of_record_arrives_as_it_was(link: RealLink) -> None:
    link.produce(
        (0, b"k", b"v", None),
        (0, None, b"no key", [("one", b"1")]),
        (1, b"gone", None, [("tombstone", b"yes")]),
        (1, None, None, None),
        (2, b"", b"", [("null", None), ("empty", b""), ("twice", b"1"), ("twice", b"2")]),
        (2, b"\x00\xff", bytes(range(256)), [("mesh.source", b"some/where/else/0/1")]),
    )
    link.reconcile_until(link.caught_up)
    assert_exact(link)
    assert link.desk.link.state is State.ACTIVE
