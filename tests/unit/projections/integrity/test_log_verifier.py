"""The verifier: grown at once or resumed, and the narrowest word for what differs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.integrity.checkpoint import Checkpoint
from mesh_events.integrity.leaf import leaf_hash
from mesh_events.record import Record
from projections.integrity.log_verifier import LogVerifier, MismatchError
from projections.integrity.tree import root_of

ORIGIN = "paper/mesh.governance"
# offset 13 is a marker of a transaction
RECORDS = [
    Record(offset, 1000 + offset, b"k", b"%d" % offset, {}) for offset in range(41) if offset != 13
]
BAD = {3, 4, 5, 17, 40}


def taken(records: list[Record], expected: list[Checkpoint] | None = None) -> LogVerifier:
    verifier = LogVerifier()
    verifier.expect(expected or [])
    for record in records:
        verifier.take(record, verified=record.offset not in BAD)
    return verifier


def signed(verifier: LogVerifier, most: int) -> list[Checkpoint]:
    """What a controller signs, piece by piece, to the end."""
    found: list[Checkpoint] = []
    while verifier.unconfirmed:
        found.append(verifier.head(ORIGIN, most))
        verifier.confirm(found[-1])
    return found


EVERY_SEVEN = signed(taken(RECORDS), 7)


def test_a_checkpoint_holds_size_root_offset_and_what_did_not_verify() -> None:
    leaves = [leaf_hash(record) for record in RECORDS]
    assert [one.size for one in EVERY_SEVEN] == [7, 14, 21, 28, 35, 40]
    assert [one.root for one in EVERY_SEVEN] == [root_of(leaves[: one.size]) for one in EVERY_SEVEN]
    assert [one.offset for one in EVERY_SEVEN] == [6, 14, 21, 28, 35, 40]
    told = [one.unverified for one in EVERY_SEVEN]
    assert told == [((3, 5),), (), ((17, 17),), (), (), ((40, 40),)]
    for before, after in zip([None, *EVERY_SEVEN], EVERY_SEVEN, strict=False):
        assert after.previous == (before.digest if before else "")


@given(cut=st.integers(0, len(RECORDS)), known=st.integers(0, 6), late=st.booleans())
def test_a_resumed_controller_signs_what_one_that_never_stopped_signs(
    cut: int, known: int, late: bool
) -> None:
    """Whether it learns of the earlier checkpoints before it reads the log or in the middle."""
    verifier = taken([]) if late else taken([], EVERY_SEVEN[:known])
    for number, record in enumerate(RECORDS):
        if late and number == cut:
            verifier.expect(EVERY_SEVEN[:known])
        verifier.take(record, verified=record.offset not in BAD)
    if late and cut == len(RECORDS):
        verifier.expect(EVERY_SEVEN[:known])
    assert verifier.expected is None
    assert signed(verifier, 7) == EVERY_SEVEN[known:]


def test_only_what_no_checkpoint_covers_yet_is_kept() -> None:
    verifier = taken(RECORDS[:30], EVERY_SEVEN)
    assert (verifier.size, verifier.unconfirmed, verifier.offset) == (30, 2, 30)
    assert verifier.root == root_of([leaf_hash(record) for record in RECORDS[:30]])


def test_nothing_is_signed_over_nothing() -> None:
    with pytest.raises(ValueError, match="no record"):
        LogVerifier().head(ORIGIN, 1)


def mismatch(records: list[Record]) -> tuple[str, int, int]:
    with pytest.raises(MismatchError) as found:
        taken(records, EVERY_SEVEN)
    return found.value.code, found.value.first, found.value.last


@given(st.sampled_from(RECORDS))
def test_an_edited_record_is_found_between_its_checkpoints(record: Record) -> None:
    edited = [replace(one, time=one.time + 1) if one is record else one for one in RECORDS]
    first = max((one.offset + 1 for one in EVERY_SEVEN if one.offset < record.offset), default=0)
    last = min(one.offset for one in EVERY_SEVEN if one.offset >= record.offset)
    assert mismatch(edited) == ("record_edited", first, last)


@given(st.sampled_from([one for one in RECORDS if not 7 <= one.offset <= 14]))
def test_a_deleted_record_is_found_exactly(record: Record) -> None:
    left = [one for one in RECORDS if one is not record]
    if record is RECORDS[-1]:
        assert taken(left, EVERY_SEVEN).expected == EVERY_SEVEN[-1]
    else:
        assert mismatch(left) == ("record_deleted", record.offset, record.offset)


def test_beside_a_marker_a_deleted_record_is_one_of_two() -> None:
    left = [one for one in RECORDS if one.offset != 10]
    assert mismatch(left) == ("record_deleted", 10, 13)


def test_an_inserted_record_is_found() -> None:
    more = [*RECORDS[:13], Record(13, 0, None, None, {}), *RECORDS[13:]]
    assert mismatch(more) == ("record_inserted", 7, 14)


def test_a_checkpoint_that_is_passed_over_is_not_compared() -> None:
    wrong = replace(EVERY_SEVEN[0], root=bytes(32))
    verifier = taken(RECORDS[:6], [wrong])
    with pytest.raises(MismatchError):
        verifier.take(RECORDS[6])
    verifier.pass_over()
    verifier.take(RECORDS[7])
    assert verifier.root == root_of([leaf_hash(record) for record in RECORDS[:8]])
