"""Replay: at an offset, as of a time, from the middle, with and without verification."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events import intents
from mesh_events.record import Record
from projections.checksum import checksum
from projections.image import EMPTY, Image
from projections.replay import fold, replay
from tests import sample_history as story
from tests.memory_log import FOUNDATION_RECORDS, MemoryLog


def whole_story() -> list[Record]:
    """Publish, request, grant, read, pause, resume, revoke, purge."""
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log)
    story.granted(log, "north")
    story.settle(log)
    for kind in (intents.LinkPaused, intents.LinkResumed):
        log.say(kind, "west", product=story.PRODUCT, cluster="west")
        story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    story.settle(log)
    return log.records


RECORDS = whole_story()
IMAGES = list(fold(RECORDS))
LAST = len(RECORDS) - 1


def at_times(*times: int) -> list[Record]:
    """The founded log, and after it intents with these append times."""
    log = MemoryLog()
    for time in times:
        event = log.make(intents.ClusterRegistered, "mesh", **story.cluster("east"))
        log.append(event, by="operator", time=log.now + time)
    return log.records


def replayed(records: list[Record], image: Image = EMPTY, **bounds: int) -> Image:
    """Without verification, which has a test of its own: these tests replay very often."""
    return replay(records, image, verify=False, **bounds)


def test_the_whole_log_gives_the_last_image() -> None:
    assert replay(RECORDS) == IMAGES[-1]
    assert replay([]) is EMPTY


def test_any_cut_gives_the_same_image() -> None:
    for cut in range(LAST + 1):
        assert replayed(RECORDS[cut + 1 :], IMAGES[cut]) == IMAGES[-1]


@given(cuts=st.lists(st.integers(0, LAST + 1), max_size=5))
def test_any_batches_give_the_same_image(cuts: list[int]) -> None:
    image, last = EMPTY, 0
    for cut in [*sorted(cuts), LAST + 1]:
        image, last = replayed(RECORDS[last:cut], image), cut
    assert image == IMAGES[-1]
    assert checksum(image) == checksum(IMAGES[-1])


def test_trusting_replay_equals_verified_replay_on_an_honest_log() -> None:
    assert list(fold(RECORDS, verify=False)) == IMAGES


@pytest.mark.parametrize("offset", [0, FOUNDATION_RECORDS, LAST - 3, LAST, LAST + 100])
def test_at_an_offset_that_record_is_the_last_to_count(offset: int) -> None:
    assert replay(RECORDS, at_offset=offset) == IMAGES[min(offset, LAST)]


def test_before_the_first_offset_nothing_counts() -> None:
    assert replay(RECORDS, at_offset=-1) is EMPTY
    assert replay(RECORDS, as_of=RECORDS[0].time - 1) is EMPTY


def test_as_of_a_records_time_it_counts_and_just_before_it_does_not() -> None:
    for offset in range(FOUNDATION_RECORDS, LAST + 1, 4):
        record = RECORDS[offset]
        assert replayed(RECORDS, as_of=record.time).offset == offset
        assert replayed(RECORDS, as_of=record.time - 1).offset == offset - 1


def test_the_image_has_the_running_maximum_of_append_times() -> None:
    records = at_times(0, 50_000, 10_000, 60_000)
    first = records[FOUNDATION_RECORDS].time
    times = [image.time - first for image in fold(records)][FOUNDATION_RECORDS:]
    assert times == [0, 51_000, 51_000, 63_000]


@pytest.mark.parametrize(
    ("as_of", "counted"),
    [(0, 1), (50_999, 1), (12_000, 1), (51_000, 3), (62_999, 3), (63_000, 4)],
)
def test_a_record_behind_a_later_one_counts_with_it(as_of: int, counted: int) -> None:
    """The third record's clock went back: by its own time it would count before the second."""
    records = at_times(0, 50_000, 10_000, 60_000)
    first = records[FOUNDATION_RECORDS].time
    image = replay(records, as_of=first + as_of)
    assert image.offset == FOUNDATION_RECORDS - 1 + counted


def test_as_of_a_time_goes_on_from_an_image_in_the_middle() -> None:
    records = at_times(0, 50_000, 10_000, 60_000)
    start = replay(records[: FOUNDATION_RECORDS + 2])
    rest = records[FOUNDATION_RECORDS + 2 :]
    assert replay(rest, start, as_of=start.time).offset == FOUNDATION_RECORDS + 2


def test_an_image_later_than_what_is_asked_for_is_refused() -> None:
    whole = replay(RECORDS)
    with pytest.raises(ValueError, match="later than what was asked for"):
        replay([], whole, as_of=whole.time - 1)
    with pytest.raises(ValueError, match="later than what was asked for"):
        replay([], whole, at_offset=whole.offset - 1)


def test_offset_and_time_both_bound_what_counts() -> None:
    time = RECORDS[FOUNDATION_RECORDS].time
    bounded = replay(RECORDS, at_offset=LAST, as_of=time)
    assert bounded.offset == FOUNDATION_RECORDS
    assert replay(RECORDS, at_offset=5, as_of=time).offset == 5
