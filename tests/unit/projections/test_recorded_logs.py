"""Old logs keep their meaning: each recorded log still gives the rows that it gave."""

import pytest

from mesh_events.record import Record
from projections.checksum import checksum
from projections.replay import replay
from tests.fixtures import recording

AFRESH = (
    "an old log must keep its meaning; if the vocabulary was never released, delete the files of "
    "{name} in tests/fixtures and run `python -m tests.fixtures.record`"
)


@pytest.fixture(params=recording.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def without(records: list[Record], offset: int) -> list[Record]:
    return [record for record in records if record.offset != offset]


def test_there_is_a_recorded_log() -> None:
    assert "first-story" in recording.names()


def test_a_recorded_log_gives_the_rows_and_the_checksum_of_its_day(name: str) -> None:
    found, expected = recording.summary(replay(recording.load(name))), recording.expected(name)
    hint = AFRESH.format(name=name)
    assert found["rows"] == expected["rows"], hint
    assert found["checksum"] == expected["checksum"], hint


def test_the_checksum_notices_a_missing_record() -> None:
    records = recording.load("first-story")
    image = replay(records)
    decision = max(product.generation for product in image.catalog.values())
    assert checksum(replay(without(records, decision))) != checksum(image)


def test_the_first_story_holds_what_must_not_count() -> None:
    image = replay(recording.load("first-story"))
    assert image.ignored >= 2
    assert len(image.intents.undecided) == 1
    assert any(found.revoked for found in image.identity.keys.values())
