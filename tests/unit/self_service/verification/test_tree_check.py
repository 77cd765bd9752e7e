"""Verifying a log against its checkpoints: what was done to it, and where, by name."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.decisions import MeshRole
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.integrity.places import Found
from mesh_events.record import Record
from self_service.cli.framework.finding import Finding
from self_service.cli.verification.checkpoint_audit import Evidence, behind, is_behind, judge
from self_service.cli.verification.scope import WHOLE, Scope, Source
from self_service.cli.verification.verifier import Report, verify
from tests import sample_history as story
from tests.memory_log import MemoryLog, key
from tests.signed_log import ORIGIN, busy_log, signed_over

RECORDS = busy_log()
SIGNED = signed_over(RECORDS, 6)
LAST = RECORDS[-1].offset
HOLE = next(at for at in range(LAST) if at not in {one.offset for one in RECORDS})


def found(signed: Sequence[SignedCheckpoint], place: str = "here") -> list[Found]:
    return [Found(f"{place} {number}", 1000 + number, one) for number, one in enumerate(signed, 1)]


def report(
    records: Sequence[Record],
    signed: Sequence[SignedCheckpoint] = SIGNED,
    scope: Scope = WHOLE,
) -> Report:
    chain = judge(ORIGIN, found(signed), None).chain
    root, governor = key("root").public, key("governor").public
    return verify(records, root, governor, chain=chain, scope=scope)


def first(records: Sequence[Record], signed: Sequence[SignedCheckpoint] = SIGNED) -> Finding:
    return report(records, signed).findings[0]


def test_an_untouched_log_holds_and_its_gap_is_a_marker() -> None:
    whole = report(RECORDS)
    assert whole.findings == []
    assert (whole.gaps, whole.marked) == ([], 1)
    assert whole.tree.confirmed == SIGNED[-1].body
    assert (whole.tree.size, whole.tree.root) == (len(RECORDS), SIGNED[-1].body.root)


def test_without_checkpoints_the_gap_stays_one() -> None:
    assert [one.offset for one in report(RECORDS, []).gaps] == [HOLE + 1]


@given(st.sampled_from(RECORDS))
def test_an_edited_value_is_named_with_its_offset(record: Record) -> None:
    told = {at for one in SIGNED for a, b in one.body.unverified for at in range(a, b + 1)}
    value = (record.value or b"\0")[:-1] + b"\x7f"
    edited = [replace(one, value=value) if one is record else one for one in RECORDS]
    seen = first(edited)
    assert seen.code == "record_edited"
    if record.offset in told:
        # its signature never verified: the checkpoints say no more than between which it stands
        assert seen.offset <= record.offset <= (seen.last or -1)
    else:
        assert (seen.offset, seen.last) == (record.offset, None)


@given(st.sampled_from(RECORDS), st.sampled_from(("time", "header")))
def test_what_no_signature_covers_is_named_with_its_range(record: Record, part: str) -> None:
    changes = {"time": record.time + 1} if part == "time" else {}
    if part == "header":
        changes = {"headers": {**record.headers, "ce_source": b"mesh/elsewhere"}}  # type: ignore[dict-item]
    edited = [replace(one, **changes) if one is record else one for one in RECORDS]  # type: ignore[arg-type]
    seen = first(edited)
    assert seen.code == "record_edited"
    assert seen.offset <= record.offset <= (seen.last or seen.offset)


def test_a_deleted_record_is_named() -> None:
    offset = SIGNED[-3].body.offset - 1
    left = [one for one in RECORDS if one.offset != offset]
    seen = next(one for one in report(left).findings if one.code == "record_deleted")
    assert (seen.offset, seen.last) == (offset, None)
    assert first(left).offset <= offset


def test_a_cut_tail_is_named() -> None:
    cut = RECORDS[: SIGNED[-2].body.size - 1]
    seen = first(cut)
    assert (seen.offset, seen.code, seen.last) == (
        cut[-1].offset + 1,
        "tail_cut",
        SIGNED[-2].body.offset,
    )


def test_a_cut_tail_is_named_though_only_the_beginning_is_read() -> None:
    chain = judge(ORIGIN, found(SIGNED), None).chain
    keys = key("root").public, key("governor").public
    whole = verify(RECORDS, *keys, chain=chain, scope=Scope(0, 36), source=Source(LAST + 1))
    assert whole.findings == []
    assert whole.last < LAST
    cut = verify(RECORDS, *keys, chain=chain, scope=Scope(0, 36), source=Source(LAST - 1))
    assert [(one.offset, one.code) for one in cut.findings] == [(LAST - 1, "tail_cut")]


def test_what_came_after_the_last_checkpoint_may_be_missing() -> None:
    assert report(RECORDS[: SIGNED[-2].body.size], SIGNED[:-1]).findings == []


def test_a_checkpoint_of_nobody_is_named_and_the_log_is_not() -> None:
    body = SIGNED[-3].body
    foreign = replace(body, root=bytes(32), size=body.size - 1).sign(key("governor"))
    seen = report(RECORDS, [*SIGNED[:-2], foreign, *SIGNED[-2:]])
    assert [one.code for one in seen.findings] == ["checkpoint_foreign"]
    assert seen.tree.confirmed == SIGNED[-1].body


def test_an_edited_checkpoint_is_told_from_a_foreign_one() -> None:
    edited = replace(SIGNED[-1], body=replace(SIGNED[-1].body, root=bytes(32)))
    edited = replace(edited, note=replace(edited.note, text=edited.body.text))
    assert [one.code for one in report(RECORDS, [*SIGNED[:-1], edited]).findings] == [
        "checkpoint_edited"
    ]


def test_a_checkpoint_that_is_wrong_about_signatures_is_named() -> None:
    at = next(number for number, one in enumerate(SIGNED) if one.body.unverified)
    lies, offset = [*SIGNED[:at]], SIGNED[at].body.unverified[0][0]
    previous = SIGNED[at].body.previous
    for one in SIGNED[at:]:
        unverified = () if one is SIGNED[at] else one.body.unverified
        lies.append(
            replace(one.body, previous=previous, unverified=unverified).sign(key("controller"))
        )
        previous = lies[-1].note.digest
    seen = first(RECORDS, lies)
    assert (seen.offset, seen.code) == (offset, "checkpoint_false")


@given(st.integers(0, LAST), st.integers(0, 20))
def test_in_a_scope_only_its_signatures_are_checked(start: int, count: int) -> None:
    scope = Scope(start, start + count)
    seen = report(RECORDS, scope=scope)
    assert seen.findings == []
    inside = sum(scope.holds(one.offset) for one in RECORDS)
    rooted = sum(one.headers.get("mesh_key") == key("root").public.encode() for one in RECORDS)
    assert seen.signatures <= inside + rooted
    assert seen.last >= min(scope.last or 0, LAST)


def test_a_key_that_counts_behind_the_scope_is_no_stranger() -> None:
    log = MemoryLog()
    story.published(log)
    changed = log.introduce_key(MeshRole.CONTROLLER, "controller 2")
    story.granted(log)
    story.settle(log)
    signed = [
        one if one.body.offset < changed else one.body.sign(key("controller 2"))
        for one in signed_over(log.records, 6)
    ]
    chain = judge(ORIGIN, found(signed), None).chain
    root, governor = key("root").public, key("governor").public
    for last in range(changed - 8, len(log.records)):
        seen = verify(
            log.records,
            root,
            governor,
            chain=chain,
            scope=Scope(0, last),
            source=Source(len(log.records)),
        )
        assert seen.findings == []


@given(st.sampled_from(RECORDS))
def test_an_edit_before_the_scope_is_found_by_hashes(record: Record) -> None:
    edited = [replace(one, time=one.time + 1) if one is record else one for one in RECORDS]
    codes = [one.code for one in report(edited, scope=Scope(LAST)).findings]
    assert codes == ["record_edited"]


def test_what_no_checkpoint_covers_is_checked_outside_the_scope_too() -> None:
    last = RECORDS[-1]
    forged = [*RECORDS[:-1], replace(last, headers={**last.headers, "mesh_signature": bytes(64)})]
    seen = report(forged, SIGNED[:-1], Scope(0, 3))
    assert seen.last < LAST
    assert report(forged, SIGNED[:-1], Scope(LAST, LAST)).signatures < len(RECORDS)


def codes(evidence: Evidence) -> list[str]:
    return [one.code for one in evidence.findings]


def test_two_equal_places_are_whole() -> None:
    both = judge(ORIGIN, found(SIGNED), found(SIGNED, "file"))
    assert both.findings == []
    assert both.chain.path() == SIGNED
    assert both.time_of(SIGNED[0]) == 1001


@pytest.mark.parametrize("at", [0, 3, len(SIGNED) - 1])
def test_what_one_place_lacks_is_named(at: int) -> None:
    left = [*SIGNED[:at], *SIGNED[at + 1 :]]
    lacking = judge(ORIGIN, found(left), found(SIGNED))
    assert set(codes(lacking)) == {"checkpoint_missing"}
    assert lacking.chain.path() == SIGNED
    assert is_behind(found(left), found(SIGNED))
    other = judge(ORIGIN, found(SIGNED), found(left))
    # a file may end earlier: it is another machine's
    assert set(codes(other)) == (set() if at == len(SIGNED) - 1 else {"checkpoint_missing"})
    assert other.chain.path() == SIGNED


def test_one_that_both_places_lack_is_named_with_the_offsets_it_covered() -> None:
    left = [*SIGNED[:2], *SIGNED[3:]]
    both = judge(ORIGIN, found(left), found(left))
    seen = both.findings[0]
    assert (seen.code, seen.offset) == ("checkpoint_missing", SIGNED[1].body.offset + 1)
    assert both.chain.path() == []
    assert [one.code for one in report(RECORDS, left).findings] == []


def test_bytes_that_are_no_note_are_named_with_their_place() -> None:
    notes = found(SIGNED)
    notes[2] = Found("mesh.checkpoints, offset 2", 0, None, "no base64")
    seen = judge(ORIGIN, notes, found(SIGNED))
    assert codes(seen)[0] in {"checkpoint_edited", "checkpoint_missing"}
    assert "checkpoint_edited" in codes(seen)
    assert any("mesh.checkpoints, offset 2" in one.text for one in seen.findings)


def test_a_signature_that_was_changed_in_one_place_is_named() -> None:
    bad = [*SIGNED[:2], SIGNED[2].body.sign(key("stranger")), *SIGNED[3:]]
    [seen] = judge(ORIGIN, found(SIGNED), found(bad, "file")).findings
    assert (seen.code, seen.offset) == ("checkpoint_edited", SIGNED[2].body.offset)


def test_the_end_that_a_file_lacks_is_counted() -> None:
    assert behind(found(SIGNED), found(SIGNED)) == 0
    assert behind(found(SIGNED), found(SIGNED[:-2])) == 2
    assert behind(found(SIGNED), []) == len(SIGNED)
    assert behind(found(SIGNED), None) == 0


def test_two_trees_under_one_key_are_named() -> None:
    other = replace(SIGNED[-1].body, root=bytes(32)).sign(key("controller"))
    assert "checkpoints_differ" in codes(judge(ORIGIN, found([*SIGNED, other]), None))


def test_a_governors_start_in_the_place_of_signed_records_may_follow_a_cut() -> None:
    log = MemoryLog()
    story.domains(log)
    signed = signed_over(log.records, 6)
    lost = log.records.pop()
    assert log.start_governor() == lost.offset

    finding = first(log.records, signed)

    assert finding.code == "record_edited"
    assert f"truncated (tail_cut) before offset {lost.offset}, where" in finding.text
