"""Undecided records, their checks, and the ids that were seen."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events import facts, intents
from mesh_events.record import Entry, Fault, FaultCode
from projections.deciding import intents as pending
from projections.deciding.intents import AHEAD_MS, REMEMBERED_MS, WINDOW_MS, Intents
from tests.memory_log import MemoryLog, at

LOG = MemoryLog(founded=False)
PAUSE = LOG.make(intents.LinkPaused, "east", product="east.users", cluster="two")
ID = PAUSE.meta.id
MADE = round(PAUSE.meta.time.timestamp() * 1000)
FRESH_MS = WINDOW_MS + AHEAD_MS
"""How long after its arrival a copy of an intent need not be stale."""


def entry(offset: int, time: int = MADE, signer: str = "S") -> Entry:
    return Entry(offset, time, signer, PAUSE, None)


def other() -> intents.Intent:
    return LOG.make(intents.LinkResumed, "east", product="east.users", cluster="two")


def arrived(intents: Intents, entry: Entry) -> Intents:
    return pending.arrived(pending.expired(intents, entry.time, str), entry, entry.time)


ONE = arrived(pending.EMPTY, entry(5))


def check(offset: int, name: str = "room", *, passes: bool = True) -> facts.Check:
    if passes:
        return LOG.make(facts.CheckPassed, "mesh", offset=offset, check=name)
    return LOG.make(facts.CheckFailed, "mesh", offset=offset, check=name, code="c", reason="r")


def test_what_arrives_waits_for_a_decision() -> None:
    assert dict(ONE.undecided) == {5: entry(5)}
    assert ONE.first_offset("S", ID) == 5


def test_what_cannot_be_read_waits_too_and_has_no_id() -> None:
    garbage = Entry(5, 0, None, None, Fault(FaultCode.GARBAGE, "?"))
    after = arrived(pending.EMPTY, garbage)
    assert dict(after.undecided) == {5: garbage}
    assert not after.seen


def test_a_decided_record_takes_its_checks_along() -> None:
    after = pending.decided(pending.checked(ONE, check(5)), 5)
    assert (len(after.undecided), len(after.checks)) == (0, 0)
    assert after.first_offset("S", ID) == 5


def test_checks_are_kept_by_offset_and_name() -> None:
    room, schema = check(5, "room"), check(5, "schema", passes=False)
    after = pending.checked(pending.checked(ONE, room), schema)
    assert dict(after.checks[5]) == {"room": room, "schema": schema}


def test_the_first_outcome_of_a_check_counts() -> None:
    after = pending.checked(ONE, check(5))
    assert pending.checked(after, check(5, passes=False)) is after


@pytest.mark.parametrize("state", [ONE, pending.decided(ONE, 5)])
def test_a_check_of_what_does_not_wait_changes_nothing(state: Intents) -> None:
    assert pending.checked(state, check(6)) is state


def test_the_same_id_is_known_by_its_first_offset() -> None:
    again = arrived(ONE, entry(9))
    assert again.first_offset("S", ID) == 5
    assert sorted(again.undecided) == [5, 9]


def test_an_id_belongs_to_its_signer() -> None:
    """Otherwise anybody could use up an id that the governor derives, and its intent is lost."""
    both = arrived(ONE, entry(9, signer="other"))
    assert (both.first_offset("S", ID), both.first_offset("other", ID)) == (5, 9)
    assert both.first_offset(None, ID) is None


@pytest.mark.parametrize("since", [0, 1, FRESH_MS // 2, WINDOW_MS, FRESH_MS])
def test_an_id_is_remembered_as_long_as_a_copy_is_not_stale(since: int) -> None:
    """Whatever happens in between, and wherever in a window the first one arrived."""
    state = arrived(pending.EMPTY, Entry(1, 0, "S", other(), None))
    state = arrived(state, entry(5, time=since))
    between = Entry(6, since + 1, "S", other(), None)
    state = arrived(state, between)
    state = arrived(state, entry(9, time=since + FRESH_MS))
    assert state.first_offset("S", ID) == 5


def test_ids_are_forgotten_in_the_end() -> None:
    state = pending.decided(ONE, 5)
    for window in (1, 2):
        later = Entry(5 + window, MADE + window * (FRESH_MS + 1), "S", other(), None)
        state = arrived(state, later)
    assert state.first_offset("S", ID) is None


def test_who_was_ahead_is_remembered_until_a_copy_would_be_stale() -> None:
    hours = 10 * WINDOW_MS
    state = pending.decided(arrived(pending.EMPTY, entry(5, MADE - hours)), 5)
    at = MADE - hours
    while at + FRESH_MS + 1 < MADE + WINDOW_MS:
        at += FRESH_MS + 1
        state = arrived(state, Entry(6, at, "S", other(), None))
        assert state.first_offset("S", ID) == 5
    for _ in range(3):
        at += FRESH_MS + 1
        state = arrived(state, Entry(7, at, "S", other(), None))
    assert state.first_offset("S", ID) is None
    assert all(one.id != ID for one in state.line.values())


def test_the_id_of_an_undecided_intent_is_never_forgotten() -> None:
    state = ONE
    for hours in range(1, 5):
        at = MADE + hours * 2 * FRESH_MS
        state = arrived(state, Entry(5 + hours, at, "S", other(), None))
    assert state.first_offset("S", ID) == 5


def test_no_id_is_forgotten_while_clocks_disagree() -> None:
    state = pending.decided(ONE, 5)
    for hours in range(1, 5):
        at = MADE + hours * 2 * FRESH_MS
        later = Entry(5 + hours, at, "S", other(), None)
        state = pending.arrived(state, later, at)
    assert state.first_offset("S", ID) == 5


def test_nothing_is_taken_for_a_copy_where_no_id_was_forgotten() -> None:
    """Both clocks were a day ahead for a moment, and an intent from before it comes late."""
    late = Entry(9, MADE, "S", replace_time(other(), at(MADE)), None)
    state = pending.expired(ONE, MADE + 26 * 60 * 60_000, str)
    assert pending.repeated(state, late, MADE + 26 * 60 * 60_000) is None


def test_ids_of_a_revoked_key_are_forgotten_however_far_ahead_they_were() -> None:
    """Else a key that was stolen once would fill the bound of its domain for good."""
    state, far, clock = pending.EMPTY, at(MADE + 1000 * FRESH_MS), MADE
    for offset, signer in enumerate(["gone", "here"]):
        one = Entry(offset, clock, signer, replace_time(other(), far), None)
        state = pending.decided(pending.arrived(state, one, clock), offset)
    before = state.horizon
    for _ in range(3):
        clock += 2 * FRESH_MS
        state = pending.expired(state, clock, str, lambda signer: signer == "here")
    assert dict(state.remembered) == {"here": 1}
    assert {one.signer for one in state.line.values()} == {"here"}
    assert before <= state.horizon <= clock - WINDOW_MS


MINUTES = st.integers(-3 * 60, 3 * 60)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 1, 4, 5, 6, 30, 61, 65, 66, 130, 600]),  # the clock goes on by
            MINUTES.map(lambda ahead: ahead // 5 * 5),  # how far its maker's clock is ahead
            st.booleans(),  # whether clocks agree
            st.booleans(),  # whether it is decided at once
        ),
        max_size=12,
    )
)
def test_a_copy_is_remembered_or_too_old_however_the_clock_goes(
    story: list[tuple[int, int, bool, bool]],
) -> None:
    """Nothing that stood on the log is neither; and nothing is too old that is not stale."""
    state, clock, made = pending.EMPTY, MADE, list[Entry]()
    for offset, (minutes, ahead, agree, at_once) in enumerate(story):
        clock += minutes * 60_000
        event = other()
        time = at(clock + ahead * 60_000)
        entry = Entry(offset, clock, "S", replace_time(event, time), None)
        if agree:
            state = pending.expired(state, clock, str)
        assert state.horizon <= max(clock - WINDOW_MS, AHEAD_MS)
        faults = [pending.repeated(state, replace(one, offset=offset), clock) for one in made]
        assert None not in faults
        if pending.repeated(state, entry, clock) is None:
            state = pending.arrived(state, entry, clock)
            made.append(entry)
            if at_once:
                state = pending.decided(state, offset)


def replace_time(event: intents.Intent, time: object) -> intents.Intent:
    return event.model_copy(update={"meta": event.meta.model_copy(update={"time": time})})


def test_a_copy_of_what_is_remembered_names_the_first_one() -> None:
    fault = pending.repeated(ONE, entry(9), MADE)
    assert fault == Fault(
        FaultCode.DUPLICATE_INTENT, "the same intent stands at offset 5; that one counts"
    )
    assert pending.repeated(ONE, entry(9, signer="other"), MADE) is None


def test_what_came_too_late_and_was_never_there_is_for_the_rules() -> None:
    """Clocks may disagree by the time of its decision; a record that is no copy is no flood."""
    clock = MADE + WINDOW_MS + 1
    late = Entry(9, clock, "S", other(), None)
    assert pending.repeated(pending.expired(ONE, clock, str), late, clock) is None


def crowd(count: int) -> Intents:
    """So many decided intents of two signers that arrived at once."""
    state = pending.EMPTY
    for offset in range(count):
        one = Entry(offset, MADE, "even" if offset % 2 == 0 else "odd", other(), None)
        state = pending.decided(pending.arrived(state, one, MADE), offset)
    return state


def counted(state: Intents) -> dict[str, int]:
    return dict(Counter(str(signer) for signer, _ in state.seen))


def test_a_record_forgets_a_bounded_number_of_ids_and_the_next_ones_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A million at once stopped the fold for seconds, and a lease is three."""
    monkeypatch.setattr(pending, "MOST_FORGOTTEN", 20)
    state, looked = crowd(50), list[str | None]()
    clock = MADE + REMEMBERED_MS + 1
    for left in (30, 10, 0, 0):
        looked.clear()
        state = pending.expired(state, clock, str, lambda signer: looked.append(signer) is None)
        assert len(looked) <= 20
        assert sorted(state.seen.values()) == list(range(50 - left, 50))
        assert len(state.line) == len(state.seen) == state.line_next - state.line_first
        assert dict(state.remembered) == counted(state)
    assert not state.remembered


def test_what_is_not_forgotten_yet_is_a_copy_and_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "MOST_FORGOTTEN", 1)
    state = arrived(crowd(10), entry(20))
    clock = MADE + REMEMBERED_MS + 1
    state = pending.expired(pending.decided(state, 20), clock, str)
    fault = pending.repeated(state, entry(21), clock)
    assert fault is not None
    assert fault.code is FaultCode.DUPLICATE_INTENT
    again = pending.arrived(state, entry(21), clock)
    assert dict(again.remembered) == counted(again) == dict(state.remembered)
    assert again.line == state.line


def test_undecided_ids_are_passed_over_within_the_same_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "MOST_FORGOTTEN", 5)
    state = pending.EMPTY
    for offset in range(20):
        state = pending.arrived(state, Entry(offset, MADE, "S", other(), None), MADE)
    kept, clock = state, MADE + REMEMBERED_MS + 1
    for count in (5, 10, 15, 20, 20):
        state = pending.expired(state, clock, str)
        assert (state.line_first, state.line_next) == (count, 20 + count)
    assert (state.seen, state.remembered, state.horizon) == (kept.seen, kept.remembered, 0)
    for offset in range(20):
        state = pending.decided(state, offset)
    for _ in range(4):
        state = pending.expired(state, clock + REMEMBERED_MS + 1, str)
    assert not state.seen
    assert not state.line
