"""Believing what a checkpoint covers gives the same image, or none at all."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_events import codec
from mesh_events.record import Record
from projections.integrity.trusted_prefix import IntegrityError
from projections.replay import fold, replay, walk
from tests.memory_log import FOUNDATION_RECORDS
from tests.signed_log import busy_log, signed_over, trusting

RECORDS = busy_log()
SIGNED = signed_over(RECORDS, 6)
COVERED = SIGNED[-2].body.offset
"""The last offset that the checkpoints of these tests cover; some records stand behind it."""
TRUSTED = trusting(SIGNED[:-1])
FOUNDED = FOUNDATION_RECORDS // 6 + 1
"""Number of the first checkpoint that stands wholly behind the foundation."""
IMAGES = {image.offset: image for image in fold(RECORDS)}
LAST = RECORDS[-1].offset


def test_the_log_holds_what_must_not_be_believed() -> None:
    assert any(one.body.unverified for one in SIGNED)
    assert replay(RECORDS, verify=False) != IMAGES[LAST]
    assert COVERED < LAST


def test_a_trusting_replay_gives_the_image_of_one_that_checks_everything() -> None:
    assert replay(RECORDS, trusted=TRUSTED) == IMAGES[LAST]
    checked = [entry for entry, _ in walk(RECORDS)]
    assert [entry for entry, _ in walk(RECORDS, trusted=TRUSTED)] == checked


def test_signatures_are_checked_behind_the_checkpoint_and_of_the_root_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = 0

    def counted(*given: bytes) -> bool:
        nonlocal checked
        checked += 1
        return real(*given)

    real = codec.signing.verifies
    monkeypatch.setattr(codec.signing, "verifies", counted)
    replay(RECORDS, trusted=TRUSTED)
    behind = sum(record.offset > COVERED for record in RECORDS)
    unverified = sum(len(range(*one)) + 1 for each in SIGNED for one in each.body.unverified)
    rooted = sum(record.headers.get("mesh_key") == TRUSTED.root_key.encode() for record in RECORDS)
    assert checked <= behind + unverified + rooted < len(RECORDS)


@given(st.sampled_from([record.offset for record in RECORDS]))
def test_at_every_offset_and_time_too(offset: int) -> None:
    assert replay(RECORDS, at_offset=offset, trusted=TRUSTED) == IMAGES[offset]
    time = IMAGES[offset].time
    assert replay(RECORDS, as_of=time, trusted=TRUSTED) == replay(RECORDS, as_of=time)


def edited(record: Record, part: str) -> Record:
    match part:
        case "time":
            return replace(record, time=record.time + 1)
        case "key":
            return replace(record, key=(record.key or b"") + b"x")
        case "value":
            return replace(record, value=(record.value or b"") + b"x")
        case _:
            return replace(record, headers={**record.headers, "more": b""})


@settings(max_examples=60)
@given(st.sampled_from(RECORDS), st.sampled_from(("time", "key", "value", "headers", "gone")))
def test_an_altered_log_is_never_believed(record: Record, part: str) -> None:
    altered = [one for one in RECORDS if one is not record]
    if part != "gone":
        altered = [edited(one, part) if one is record else one for one in RECORDS]
    if record.offset <= COVERED:
        with pytest.raises(IntegrityError):
            list(walk(altered, trusted=TRUSTED))
    elif part == "time":
        list(walk(altered, trusted=TRUSTED))


@pytest.mark.parametrize("before", [1, 2, 6, 9])
def test_a_stop_before_the_checkpoint_is_proven_by_the_next_one(before: int) -> None:
    """What comes behind the wanted offset is hashed up to a checkpoint, and not folded."""
    offset = RECORDS[SIGNED[-2].body.size - 1 - before].offset
    after = next(one.body.offset for one in SIGNED if one.body.offset >= offset)
    altered = [edited(one, "time") if one.offset == after else one for one in RECORDS]
    if after > offset:
        with pytest.raises(IntegrityError):
            replay(altered, at_offset=offset, trusted=TRUSTED)
    later = [edited(one, "time") if one.offset == after + 1 else one for one in RECORDS]
    assert replay(later, at_offset=offset, trusted=TRUSTED) == IMAGES[offset]


def test_a_log_that_ends_before_the_checkpoint_is_not_believed() -> None:
    cut = [one for one in RECORDS if one.offset < COVERED]
    with pytest.raises(IntegrityError) as found:
        replay(cut, trusted=TRUSTED)
    assert (found.value.code, found.value.last) == ("tail_cut", COVERED)


def test_a_checkpoint_of_another_key_is_not_believed() -> None:
    with pytest.raises(IntegrityError) as found:
        replay(RECORDS, trusted=trusting(signed_over(RECORDS, 6, by="governor")))
    assert found.value.code == "checkpoint_foreign"


@pytest.mark.parametrize("number", [FOUNDED, FOUNDED + 2])
def test_a_stop_at_a_checkpoint_of_another_key_is_not_believed_either(number: int) -> None:
    offset = SIGNED[number].body.offset
    with pytest.raises(IntegrityError) as found:
        replay(RECORDS, at_offset=offset, trusted=trusting(signed_over(RECORDS, 6, by="governor")))
    assert found.value.code == "checkpoint_foreign"


def test_a_log_under_another_root_is_not_believed() -> None:
    with pytest.raises(IntegrityError) as found:
        replay(RECORDS, trusted=trusting(SIGNED, root="stranger"))
    assert found.value.code == "foreign_root"


def test_without_checkpoints_every_signature_is_checked() -> None:
    assert replay(RECORDS, trusted=trusting([])) == IMAGES[LAST]
    assert replay(RECORDS, trusted=TRUSTED.until(-1)) == IMAGES[LAST]
    assert TRUSTED.until(COVERED - 1).offset < COVERED
