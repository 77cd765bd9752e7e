"""Decisions of one epoch are a chain, judged on what their basis says."""

import pytest

from mesh_events import intents
from mesh_events.facts import CheckPassed
from projections.deciding.decide import decide
from projections.deciding.speculation import decided
from projections.deciding.verdict import Accepted, Quarantined, Rejected
from projections.image import TOLERANCE_MS
from tests import sample_history as story
from tests.memory_log import MemoryLog, at, key

MINUTE = 60_000
HOUR = 60 * MINUTE


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def application(log: MemoryLog, name: str) -> int:
    return log.say(intents.ApplicationRegistered, "east", application=f"east.{name}")


def test_a_decision_behind_a_lost_one_does_not_count(log: MemoryLog) -> None:
    first, second = application(log, "one"), application(log, "two")
    lost = log.decision(first, Accepted())
    before = log.image.ignored
    log.rule(second, Accepted(), follows=lost.meta.id)
    assert log.image.ignored == before + 1
    assert sorted(log.image.intents.undecided) == [first, second]


def test_decisions_that_were_appended_together_count_in_their_order(log: MemoryLog) -> None:
    first, second = application(log, "one"), application(log, "two")
    one = log.decision(first, Accepted())
    two = log.decision(second, Accepted(), follows=one.meta.id, basis=log.image.offset)
    for event in (one, two):
        log.append(event, by="governor")
    assert not log.image.intents.undecided
    assert log.image.last_decision == two.meta.id


def test_a_chain_begins_anew_with_each_epoch(log: MemoryLog) -> None:
    offset = application(log, "one")
    before = log.image.last_decision
    log.start_governor()
    log.rule(offset, Accepted(), follows=before)
    assert offset in log.image.intents.undecided
    log.rule(offset, Accepted())
    assert offset not in log.image.intents.undecided


@pytest.mark.parametrize("ahead", [0, 5])
def test_a_decision_that_names_a_basis_behind_itself_does_not_count(
    log: MemoryLog, ahead: int
) -> None:
    offset = application(log, "one")
    log.rule(offset, Accepted(), basis=log.image.offset + 1 + ahead)
    assert offset in log.image.intents.undecided


def test_what_is_judged_next_sees_the_decision_before_it(log: MemoryLog) -> None:
    application(log, "one")
    second = application(log, "one")
    first = second - 1
    before = log.image
    state = decided(before, log.decision(first, Accepted()), key("governor").public)
    assert "east.one" in state.identity.applications
    assert "east.one" not in before.identity.applications
    assert isinstance(log.verdict(second), Accepted)


@pytest.mark.parametrize("off", [10 * MINUTE, 26 * HOUR, -HOUR])
def test_a_broker_whose_clock_was_wrong_refuses_no_honest_intent(log: MemoryLog, off: int) -> None:
    honest = log.make(intents.ApplicationRegistered, "east", application="east.one")
    right = log.now
    offset = log.append(honest, by="east", time=right + off)
    assert log.verdict(offset, clock=right) == Accepted()
    # and afterwards, when decisions were taken by the wrong broker too
    log.append(log.decision(offset, Accepted(), clock=at(right)), by="governor", time=right + off)
    assert log.image.clocks_disagree
    log.now = right + 2000
    again = application(log, "two")
    assert log.verdict(again, clock=log.now) == Accepted()


@pytest.mark.parametrize("off", [10 * MINUTE, 26 * HOUR])
def test_as_of_is_not_moved_by_a_broker_that_was_ahead(log: MemoryLog, off: int) -> None:
    right = log.now
    offset = log.append(
        log.make(intents.ApplicationRegistered, "east", application="east.one"),
        by="east",
        time=right + off,
    )
    log.append(log.decision(offset, Accepted(), clock=at(right)), by="governor", time=right + off)
    assert log.image.time == right
    log.now = right + 5000
    application(log, "two")
    log.govern()
    assert log.image.time == right + 5000 + 1000
    assert not log.image.clocks_disagree


def frozen(log: MemoryLog, made: int, until: int) -> int:
    event = log.make(
        intents.DomainFrozen, "mesh", domain="east", until=at(until), reason="it leaks"
    )
    meta = event.meta.model_copy(update={"time": at(made)})
    return log.append(event.model_copy(update={"meta": meta}), by="operator")


@pytest.mark.parametrize("off", [10 * MINUTE, 26 * HOUR, 365 * 24 * HOUR])
def test_a_clock_that_was_ahead_does_not_refuse_a_freeze(log: MemoryLog, off: int) -> None:
    """The mesh's clock itself is ahead: the world's says so now, and the operator's."""
    wrong, right = log.now + off, log.now
    offset = application(log, "one")
    log.append(log.decision(offset, Accepted(), clock=at(wrong)), by="governor", time=right)
    assert log.image.skew < -TOLERANCE_MS
    offset = frozen(log, right, right + HOUR)
    assert log.verdict(offset, clock=wrong) == Accepted()
    log.append(
        log.decision(offset, Accepted(), clock=at(wrong + 1000)), by="governor", time=log.now
    )
    silenced = application(log, "two")
    verdict = log.verdict(silenced, clock=wrong + 2000)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "domain_frozen"


def ahead(log: MemoryLog, off: int) -> None:
    """Broker and worker agreed that it was so much later, and have the right time again."""
    offset, right = application(log, "before"), log.now
    decision = log.decision(offset, Accepted(), clock=at(right + off))
    log.append(decision, by="governor", time=right + off)
    assert not log.image.clocks_disagree
    log.now = right + MINUTE


@pytest.mark.parametrize("off", [10 * MINUTE, 26 * HOUR])
def test_the_first_intent_behind_a_clock_that_was_ahead_is_accepted(
    log: MemoryLog, off: int
) -> None:
    log.now += HOUR
    ahead(log, off)
    offset = application(log, "first")
    assert log.image.clocks_disagree
    assert log.verdict(offset, clock=log.image.clock) == Accepted()


def test_the_first_freeze_behind_a_clock_that_was_ahead_is_accepted(log: MemoryLog) -> None:
    ahead(log, 26 * HOUR)
    offset = frozen(log, log.now, log.now + HOUR)
    assert log.verdict(offset, clock=log.image.clock) == Accepted()


def test_an_intent_copied_behind_a_clock_that_was_ahead_stays_refused(log: MemoryLog) -> None:
    old = log.make(intents.ApplicationRegistered, "east", application="east.one")
    log.append(old, by="east")
    log.govern()
    for _ in range(3):
        # ids of an hour ago are forgotten
        log.now += 2 * HOUR
        application(log, f"at-{log.now}")
        log.govern()
    ahead(log, 26 * HOUR)
    offset = log.append(old, by="east")
    verdict = log.verdict(offset, clock=log.image.clock)
    assert isinstance(verdict, Quarantined)
    assert verdict.code == "stale_intent"


def test_a_fact_behind_a_clock_that_was_ahead_shows_that_clocks_disagree(log: MemoryLog) -> None:
    ahead(log, HOUR)
    log.report(CheckPassed, offset=0, check="topic_exists")
    assert log.image.skew == log.records[-1].time - log.image.clock
    assert log.image.time == log.image.clock


@pytest.mark.parametrize("off", [10 * MINUTE, 26 * HOUR])
@pytest.mark.parametrize("worker_skew", [0, -HOUR])
def test_a_fact_behind_a_jump_of_the_brokers_clock_has_the_time_of_its_controller(
    log: MemoryLog, off: int, worker_skew: int
) -> None:
    """No decision has shown the jump yet."""
    right = log.now
    decision = log.decision(application(log, "one"), Accepted(), worker_skew=worker_skew)
    log.append(decision, by="governor")
    log.now = right + MINUTE + worker_skew
    fact = log.make(CheckPassed, "mesh", offset=0, check="topic_exists")
    log.append(fact, by="controller", time=right + MINUTE + off)
    assert log.image.time == right + MINUTE


def test_a_fact_has_its_append_time_where_the_clock_of_its_controller_is_nearly_right(
    log: MemoryLog,
) -> None:
    log.govern()
    fact = log.make(CheckPassed, "mesh", offset=0, check="topic_exists")
    log.append(fact, by="controller", time=log.now + 40_000)
    assert log.image.time == log.records[-1].time - log.image.skew


@pytest.mark.parametrize("behind", [10 * MINUTE, HOUR])
def test_an_intent_is_not_ahead_where_the_workers_clock_agrees_with_it(
    log: MemoryLog, behind: int
) -> None:
    """The mesh was founded on a broker whose clock was late: its clock is as late."""
    late = log.now
    log.now += behind
    offset = log.append(
        log.make(intents.ApplicationRegistered, "east", application="east.one"),
        by="east",
        time=late,
    )
    verdict = log.verdict(offset, clock=late)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "clock_ahead"
    entry = log.image.intents.undecided[offset]
    assert decide(log.image, entry, late, worker_skew=behind) == Accepted()
    decision = log.decision(offset, Accepted(), clock=at(late), worker_skew=behind)
    log.append(decision, by="governor", time=late)
    assert log.image.skew == 0
    assert log.image.worker_skew == behind
    assert log.image.clocks_disagree


def test_what_was_said_during_a_freeze_is_refused_after_it(log: MemoryLog) -> None:
    frozen(log, log.now, log.now + MINUTE)
    log.govern()
    offset = application(log, "one")
    verdict = log.verdict(offset, clock=log.now + HOUR)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "domain_frozen"


def ended_by_itself(log: MemoryLog) -> None:
    """East was frozen for a minute; what it said afterwards was accepted."""
    frozen(log, log.now, log.now + MINUTE)
    log.govern()
    log.now += 10 * MINUTE
    log.rule(application(log, "after"), Accepted())
    assert "east.after" in log.image.identity.applications


@pytest.mark.parametrize(
    ("broker", "worker"),
    [(-2 * HOUR, 0), (2 * MINUTE, 0), (26 * HOUR, 26 * HOUR), (0, 26 * HOUR), (-HOUR, -HOUR)],
)
def test_a_freeze_that_has_ended_stays_ended_while_clocks_disagree(
    log: MemoryLog, broker: int, worker: int
) -> None:
    ended_by_itself(log)
    for name in ("one", "two"):
        log.now += MINUTE
        right = log.now
        intent = log.make(intents.ApplicationRegistered, "east", application=f"east.{name}")
        offset = log.append(intent, by="east", time=right + broker)
        entry = log.image.intents.undecided[offset]
        assert decide(log.image, entry, right, worker_skew=worker) == Accepted()
        decision = log.decision(offset, Accepted(), clock=at(right), worker_skew=worker)
        log.append(decision, by="governor", time=right + broker)
        assert log.image.clocks_disagree
    # and the first one of a time at which they agree again
    offset = application(log, "three")
    assert log.verdict(offset, clock=log.now) == Accepted()


def test_a_freeze_stays_ended_that_the_first_decision_under_a_wrong_clock_found_ended(
    log: MemoryLog,
) -> None:
    frozen(log, log.now, log.now + MINUTE)
    log.govern()
    log.now += 10 * MINUTE
    right = log.now
    offset = application(log, "one")
    assert log.verdict(offset, clock=right) == Accepted()
    log.append(log.decision(offset, Accepted(), clock=at(right)), by="governor", time=right + HOUR)
    assert log.image.clocks_disagree
    assert log.verdict(application(log, "two"), clock=log.now) == Accepted()


def test_no_freeze_ends_by_decisions_that_are_made_while_clocks_disagree(log: MemoryLog) -> None:
    log.rule(application(log, "one"), Accepted(), worker_skew=HOUR)
    frozen(log, log.now, log.now + MINUTE)
    log.rule(log.records[-1].offset, Accepted(), worker_skew=HOUR)
    log.now += 10 * MINUTE
    for name in ("two", "three"):
        offset = application(log, name)
        entry = log.image.intents.undecided[offset]
        verdict = decide(log.image, entry, log.now, worker_skew=HOUR)
        assert isinstance(verdict, Rejected)
        assert verdict.code == "domain_frozen"
        log.rule(offset, verdict, worker_skew=HOUR)


def test_what_was_said_during_a_freeze_is_refused_once_clocks_disagree(log: MemoryLog) -> None:
    frozen(log, log.now, log.now + MINUTE)
    log.govern()
    said = application(log, "during")
    log.now += 10 * MINUTE
    log.rule(application(log, "after"), Accepted())
    entry = log.image.intents.undecided[said]
    verdict = decide(log.image, entry, log.now, worker_skew=HOUR)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "domain_frozen"


def test_a_freeze_that_has_ended_refuses_no_other_while_clocks_disagree(log: MemoryLog) -> None:
    ended_by_itself(log)
    early = log.image.identity.freezes["east"].until - MINUTE
    offset = frozen(log, early - MINUTE, early)
    entry = log.image.intents.undecided[offset]
    assert decide(log.image, entry, log.now, worker_skew=-HOUR) == Accepted()


def test_a_freeze_does_not_end_while_clocks_disagree(log: MemoryLog) -> None:
    frozen(log, log.now, log.now + MINUTE)
    log.govern()
    late = log.now + HOUR
    log.now = late
    offset = application(log, "one")
    assert log.verdict(offset, clock=late) == Accepted()
    image = log.image._replace(skew=TOLERANCE_MS + 1)
    verdict = decide(image, image.intents.undecided[offset], late)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "domain_frozen"
