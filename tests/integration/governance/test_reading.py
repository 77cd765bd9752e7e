"""Reading the log piece by piece: whoever stops in the middle goes on there."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mesh_events.errors import LoginRefusedError
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.kafka.raw_fetch import RawPartition
from mesh_events.read import LogReader
from mesh_events.topics import GOVERNANCE
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import Mesh

FIRST = range(20)
"""The log begins with more records than these: the schemas."""


@pytest.fixture
def log(kit: Mesh) -> Iterator[LogReader]:
    with LogReader(kit.login("mesh.operator")) as reader:
        yield reader


def test_who_stops_following_misses_nothing_when_following_again(log: LogReader) -> None:
    """A batch of records was once lost behind the one at which a reader stopped."""
    found = [next(iter(log.follow(20))).offset for _ in FIRST]

    assert found == [*FIRST]
    assert log.partition.position == len(FIRST)


def test_who_stops_before_the_end_is_given_the_rest(kit: Mesh, log: LogReader) -> None:
    with LogReader(kit.login("mesh.operator")) as another:
        # not every offset: other tests write in transactions, whose ends are no records
        everything = [record.offset for record in another.to_end()]
    first = next(iter(log.to_end())).offset

    rest = [record.offset for record in log.to_end()]

    assert [first, *rest][: len(everything)] == everything


def test_what_a_poll_found_is_there_for_the_next_one(kit: Mesh) -> None:
    with PartitionReader(kit.login("mesh.operator"), GOVERNANCE) as reader:
        for _ in range(50):
            reader.poll(0.2)
        assert reader.position == 0
        assert next(reader.poll(20)).offset() == 0


def test_a_seek_forgets_what_was_not_taken(kit: Mesh) -> None:
    with PartitionReader(kit.login("mesh.operator"), GOVERNANCE) as reader:
        next(reader.poll(20))
        reader.seek(5)
        assert next(reader.poll(20)).offset() == 5


def test_a_part_of_the_log_is_read_again_and_nothing_behind_it(kit: Mesh) -> None:
    with LogReader(kit.login("mesh.operator"), start=None) as reader:
        for first, last in ((3, 9), (2, 2), (5, 12)):
            found = [record.offset for record in reader.between(first, last)]
            assert found == [*range(first, last + 1)]


def test_who_reads_by_bytes_is_told_of_a_changed_password(scene: Scene) -> None:
    """The client stays logged in; the one that reads bytes was refused, and told nobody."""
    name = scene.owner.name
    login = scene.kit.login(name)
    with PartitionReader(login, GOVERNANCE, None, gapless=True) as reader:
        reader.bounds()
        scene.owner.rotate(name)
        reader.seek(5)
        with pytest.raises(LoginRefusedError, match=f"as {name}: the login was refused"):
            list(reader.poll(5))


def test_who_reads_by_bytes_is_told_of_a_wrong_password(kit: Mesh) -> None:
    login = replace(kit.login("mesh.operator"), password="wrong")
    raw = RawPartition(login, GOVERNANCE)
    try:
        with pytest.raises(LoginRefusedError, match=r"as mesh\.operator: the login was refused"):
            raw.fetch(0, 1000)
    finally:
        raw.close()
