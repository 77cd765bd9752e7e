"""Unusable records without a decision: runs, what ends them, and what they cost."""

from dataclasses import replace
from typing import Any

import pytest
from immutables import Map

from mesh_events import intents
from mesh_events.decisions import IntentQuarantined, RecordsSetAside
from mesh_events.record import Entry, Fault, FaultCode
from processors.governor.decision import Basis, set_aside
from projections import offsets
from projections.deciding import unusable
from projections.deciding.unusable import MOST_EXCEPTIONS, Run, Unusable
from projections.deciding.verdict import Accepted, Rejected
from projections.fold import apply
from projections.image import Image
from projections.table import OverlayMap
from tests import sample_history as story
from tests.memory_log import MemoryLog, key
from tests.selection import draws

GARBAGE = Fault(FaultCode.GARBAGE, "no Avro")


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def garbage(log: MemoryLog) -> int:
    return log.put(replace(log.records[-1], value=b"?", headers={}))


def application(log: MemoryLog, name: str, domain: str = "east", by: str = "") -> int:
    event = log.make(intents.ApplicationRegistered, domain, application=f"{domain}.{name}")
    return log.append(event, by=by or domain)


def runs(log: MemoryLog) -> list[Run]:
    return log.image.intents.unusable.in_order()


def flooded(image: Image, count: int) -> Image:
    for offset in range(image.offset + 1, image.offset + 1 + count):
        image = apply(image, Entry(offset, image.time, None, None, GARBAGE))
    return image


def test_a_hundred_thousand_garbage_records_are_one_run(log: MemoryLog) -> None:
    before = log.image
    image = flooded(before, 100_000)
    (run,) = image.intents.unusable.runs.values()
    assert run == Run(before.offset + 1, image.offset, (), run.counts, GARBAGE)
    assert dict(run.counts) == {"garbage": 100_000}
    assert image.intents._replace(unusable=before.intents.unusable) == before.intents


def test_a_hundred_thousand_garbage_records_are_settled_by_one_decision(log: MemoryLog) -> None:
    image = flooded(log.image, 100_000)
    (run,) = image.intents.unusable.runs.values()
    event = set_aside(run, Basis(log.epoch, image.offset, image.clock, image.last_decision))
    assert isinstance(event, RecordsSetAside)
    after = apply(image, Entry(image.offset + 1, image.time, key("governor").public, event, None))
    assert not after.intents.open_count
    assert after.intents == log.image.intents


def test_a_single_unusable_record_is_decided_with_its_reason(log: MemoryLog) -> None:
    offset = garbage(log)
    (run,) = runs(log)
    event = set_aside(run, Basis(log.epoch, offset, log.now, log.image.last_decision))
    assert isinstance(event, IntentQuarantined)
    assert (event.offset, event.code) == (offset, "garbage")
    assert event.reason == run.fault.reason
    log.set_aside(run)
    assert not log.image.intents.open_count


def test_garbage_and_good_records_that_alternate_are_one_run_with_exceptions(
    log: MemoryLog,
) -> None:
    good = []
    first = garbage(log)
    for number in range(5):
        good.append(application(log, f"a{number}"))
        last = garbage(log)
    (run,) = runs(log)
    assert (run.first, run.last, run.exceptions) == (first, last, tuple(good))
    log.set_aside(run)
    assert sorted(log.image.intents.undecided) == good
    assert not runs(log)
    log.govern()
    assert {f"east.a{number}" for number in range(5)} <= set(log.image.identity.applications)


def test_a_new_run_begins_where_the_exceptions_would_be_too_many(log: MemoryLog) -> None:
    first = garbage(log)
    for number in range(MOST_EXCEPTIONS):
        application(log, f"a{number}")
    last = garbage(log)
    assert [(run.first, run.last, len(run.exceptions)) for run in runs(log)] == [
        (first, last, MOST_EXCEPTIONS)
    ]
    application(log, "more")
    second = garbage(log)
    assert [(run.first, run.last) for run in runs(log)] == [(first, last), (second, second)]
    garbage(log)
    assert [len(run.exceptions) for run in runs(log)] == [MOST_EXCEPTIONS, 0]
    log.govern()
    assert not log.image.intents.open_count


def test_a_run_ends_where_too_many_other_records_follow_it(log: MemoryLog) -> None:
    first = garbage(log)
    for number in range(MOST_EXCEPTIONS + 1):
        application(log, f"a{number}")
    assert log.image.intents.unusable.newest == -1
    assert log.image.intents.unusable.between == ()
    second = garbage(log)
    assert [(run.first, run.last) for run in runs(log)] == [(first, first), (second, second)]


def test_facts_and_decisions_between_are_exceptions(log: MemoryLog) -> None:
    first = garbage(log)
    start = log.start_governor()
    decided = log.rule(application(log, "one"), Accepted())
    last = garbage(log)
    (run,) = runs(log)
    assert run.exceptions == (start, decided - 1, decided)
    assert [run.holds(one) for one in (first, start, decided, last)] == [True, False, False, True]


def test_a_decision_leaves_what_came_behind_its_basis(log: MemoryLog) -> None:
    garbage(log)
    garbage(log)
    (known,) = runs(log)
    good = application(log, "one")
    later = [garbage(log), garbage(log)]
    log.set_aside(known)
    (run,) = runs(log)
    assert (run.first, run.last, run.exceptions) == (later[0], later[1], ())
    assert dict(run.counts) == {"garbage": 2}
    assert list(log.image.intents.undecided) == [good]


def test_a_decision_leaves_a_single_record_as_one(log: MemoryLog) -> None:
    garbage(log)
    (known,) = runs(log)
    application(log, "one")
    application(log, "two")
    last = garbage(log)
    log.set_aside(known)
    (run,) = runs(log)
    assert (run.first, run.last, run.exceptions, run.size) == (last, last, (), 1)


def test_a_run_goes_on_growing_behind_a_decision(log: MemoryLog) -> None:
    garbage(log)
    (known,) = runs(log)
    garbage(log)
    log.set_aside(known)
    good = application(log, "one")
    last = garbage(log)
    (run,) = runs(log)
    assert run.last == last
    assert good in run.exceptions
    assert run.size == 2
    log.govern()
    assert not log.image.intents.open_count


def test_a_range_behind_its_basis_does_not_count(log: MemoryLog) -> None:
    garbage(log)
    garbage(log)
    (run,) = runs(log)
    later = run._replace(last=log.image.offset + 1)
    log.set_aside(later)
    assert runs(log) == [run]
    assert log.image.ignored == 1


def test_a_range_counts_for_every_version_however_it_judges_the_records(log: MemoryLog) -> None:
    """Software that can read a record which was set aside must not judge it again."""
    first = garbage(log)
    good = application(log, "one")
    last = garbage(log)
    (run,) = runs(log)
    assert run.exceptions == (good,)
    log.set_aside(run._replace(exceptions=()))
    assert not log.image.intents.open_count
    log.govern()
    assert "east.one" not in log.image.identity.applications
    assert (first, last) == (run.first, run.last)


def test_an_exception_that_this_version_cannot_read_stays_undecided(log: MemoryLog) -> None:
    first, newer, last = garbage(log), garbage(log), garbage(log)
    (run,) = runs(log)
    log.set_aside(run._replace(exceptions=(newer,)))
    (left,) = runs(log)
    assert (left.first, left.last, left.size) == (newer, newer, 1)
    log.rule(newer, Rejected("c", "r"))
    assert not log.image.intents.open_count
    assert first < newer < last


def test_a_single_decision_inside_a_run_leaves_both_sides(log: MemoryLog) -> None:
    first, inside, last = garbage(log), garbage(log), garbage(log)
    log.rule(inside, Rejected("c", "r"))
    assert [(run.first, run.last, run.size) for run in runs(log)] == [
        (first, first, 1),
        (last, last, 1),
    ]
    again = garbage(log)
    assert [(run.first, run.last) for run in runs(log)] == [(first, first), (last, again)]


def test_forged_unknown_and_revoked_records_are_counted_by_code(log: MemoryLog) -> None:
    log.say(intents.KeyRevoked, "west", domain="west", public_key=key("west").public, reason="lost")
    log.govern()
    application(log, "one", "east", by="stranger")
    application(log, "one", "east", by="root")
    application(log, "one", "west")
    log.append(log.decision(3, Accepted()), by="west")
    garbage(log)
    (run,) = runs(log)
    assert dict(run.counts) == {
        "unknown_key": 2,
        "revoked_key": 1,
        "forged": 1,
        "garbage": 1,
    }


def test_a_key_that_is_registered_later_gives_no_effect_to_what_it_signed_before(
    log: MemoryLog,
) -> None:
    proof = log.proof("second", "west")
    log.say(
        intents.KeyRegistered, "west", domain="west", public_key=key("second").public, proof=proof
    )
    early = application(log, "early", "west", by="second")
    log.govern()
    assert not log.image.intents.is_open(early)
    late = application(log, "late", "west", by="second")
    log.govern()
    assert not log.image.intents.is_open(late)
    assert "west.late" in log.image.identity.applications
    assert "west.early" not in log.image.identity.applications


def test_a_copy_of_a_range_has_no_effect(log: MemoryLog) -> None:
    garbage(log)
    garbage(log)
    (run,) = runs(log)
    decision = log.set_aside(run)
    more = [garbage(log), garbage(log)]
    log.put(log.records[decision])
    assert log.image.ignored == 1
    assert [run.first for run in runs(log)] == more[:1]


def test_a_range_looks_at_no_intent_outside_of_it(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step decides 16 ranges, each on the state and on the log, while thousands wait."""
    for number in range(50):
        application(log, f"a{number}")
    first, good, last = garbage(log), application(log, "between"), garbage(log)
    (run,) = runs(log)
    assert (run.first, run.last) == (first, last)
    looked: list[int] = []
    real = RecordsSetAside.decides
    monkeypatch.setattr(
        RecordsSetAside, "decides", lambda event, at: looked.append(at) or real(event, at)
    )
    log.set_aside(run._replace(exceptions=()))
    assert good not in log.image.intents.undecided
    assert len(log.image.intents.undecided) == 50
    assert set(looked) <= set(range(first, last + 1))


class Counted(dict[Any, Any]):
    """A table that counts the rows that are looked at."""

    looked = 0

    def __getitem__(self, key: Any) -> Any:
        self.looked += 1
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self.looked += 1
        return super().get(key, default)

    def items(self) -> Any:
        self.looked += len(self)
        return super().items()


def many_runs(count: int) -> tuple[Unusable, Counted, Counted]:
    """So many runs of two records each, the last of them open; and the tables that count."""
    known = unusable.EMPTY
    for number in range(count):
        known = unusable.arrived(known, 1000 * number, GARBAGE)
        known = unusable.arrived(known, 1000 * number + 1, GARBAGE)
        for other in range(MOST_EXCEPTIONS + 1 if number < count - 1 else 1):
            known = unusable.passed(known, 1000 * number + 2 + other)
    runs, firsts = Counted(known.runs), Counted(known.firsts)
    return known._replace(runs=OverlayMap(runs), firsts=OverlayMap(firsts)), runs, firsts


@pytest.mark.parametrize("number", [0, 250, 499], ids=["oldest", "middle", "newest"])
def test_what_is_decided_costs_the_same_however_many_runs_there_are(
    log: MemoryLog, number: int
) -> None:
    known, runs, firsts = many_runs(500)
    run = Run(1000 * number, 1000 * number + 1, (), Map({"garbage": 2}), GARBAGE)
    assert (len(known.in_order()), known.in_order(number + 1)[-1]) == (500, run)
    runs.looked = firsts.looked = 0
    event = set_aside(run, Basis(log.epoch, 10**6, log.now, log.image.last_decision))
    after = unusable.decided(known, event)
    assert not after.holds(run.first)
    assert runs.looked + firsts.looked < 100
    assert dict(after.runs) == {at: one for at, one in known.runs.items() if at != run.first}


def test_a_record_is_looked_up_at_the_same_cost_however_many_runs_there_are() -> None:
    known, runs, firsts = many_runs(500)
    for offset in (0, 1, 2, 250_001, 250_300, 499_000, 499_001, 499_002, 10**9):
        inside, last = offset % 1000 < 2 and offset < 500_000, offset % 1000 == 1
        runs.looked = firsts.looked = 0
        assert known.holds(offset) is inside
        assert known.fault_at(offset) == (GARBAGE if inside and last else None)
        assert runs.looked + firsts.looked < 100
    runs.looked = firsts.looked = 0
    assert [run.first for run in known.in_order(3)] == [0, 1000, 2000]
    assert runs.looked + firsts.looked < 100
    # the record folded last can only be the end of the newest run
    runs.looked = firsts.looked = 0
    assert known.fault_at(499_002) is None
    assert (runs.looked, firsts.looked) == (1, 0)


def test_runs_are_found_by_their_place_after_any_decisions(log: MemoryLog) -> None:
    """A range of another version may begin and end inside of runs, and spare some records."""
    chance = draws("runs")
    for _ in range(200):
        known, open_ = unusable.EMPTY, set[int]()
        for offset in range(80):
            if chance.random() < 0.4:
                known = unusable.arrived(known, offset, GARBAGE)
                open_.add(offset)
            elif chance.random() < 0.1:
                known = known._replace(newest=-1, between=())
            else:
                known = unusable.passed(known, offset)
            if chance.random() < 0.1 and known.runs:
                first = chance.randrange(offset + 1)
                last = chance.randrange(first, offset + 1)
                spared = [at for at in range(first, last + 1) if chance.random() < 0.2]
                run = Run(first, last + 1, tuple(spared), Map({"garbage": 1}), GARBAGE)
                event = set_aside(run, Basis(log.epoch, offset, log.now, "")).model_copy(
                    update={"last": last}
                )
                known = unusable.decided(known, event)
                open_ -= {at for at in range(first, last + 1) if at not in spared}
        assert {at for at in range(-1, 90) if known.holds(at)} == open_
        assert known.in_order() == [run for _, run in sorted(known.runs.items())]
        assert list(offsets.between(known.firsts, 0, 90)) == sorted(known.runs)
