"""A freeze: for a time nothing counts that a domain says, and nothing else changes."""

import pytest

from mesh_events import intents
from projections.deciding.decide import decide
from projections.deciding.verdict import Accepted, Rejected, Verdict
from projections.image import TOLERANCE_MS
from tests import sample_history as story
from tests.memory_log import MemoryLog, at

HOUR_MS = 3_600_000


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def freeze(log: MemoryLog, domain: str, milliseconds: int = HOUR_MS) -> None:
    until = at(log.now + milliseconds)
    log.operator(intents.DomainFrozen, domain=domain, until=until, reason="its key was seen")
    log.govern()


def said_by(log: MemoryLog, domain: str) -> Verdict:
    offset = log.say(intents.ApplicationRegistered, domain, application=f"{domain}.late")
    return log.verdict(offset)


def code(verdict: Verdict) -> str:
    return verdict.code if isinstance(verdict, Rejected) else ""


def test_a_frozen_domain_is_refused_and_told_why_and_until_when(log: MemoryLog) -> None:
    freeze(log, "west")
    verdict = said_by(log, "west")
    assert code(verdict) == "domain_frozen"
    assert isinstance(verdict, Rejected)
    assert "its key was seen" in verdict.reason
    assert said_by(log, "east") == Accepted()


def test_a_second_freeze_never_shortens_the_first(log: MemoryLog) -> None:
    freeze(log, "west", 2 * HOUR_MS)

    def again(hours: float) -> Verdict:
        until = at(log.now + round(hours * HOUR_MS))
        fields = {"domain": "west", "until": until, "reason": "again"}
        return log.verdict(log.operator(intents.DomainFrozen, **fields))

    assert code(again(1)) == "frozen_longer"
    assert again(3) == Accepted()
    log.now += 3 * HOUR_MS
    assert again(1) == Accepted()


def test_what_was_undecided_when_the_freeze_came_is_refused_too(log: MemoryLog) -> None:
    waiting = log.say(intents.ApplicationRegistered, "west", application="west.late")
    until = at(log.now + HOUR_MS)
    frozen = log.operator(intents.DomainFrozen, domain="west", until=until, reason="stolen key")
    log.rule(frozen, Accepted())
    assert code(log.verdict(waiting)) == "domain_frozen"


def test_a_freeze_of_the_mesh_silences_all_domains_and_not_the_operator(log: MemoryLog) -> None:
    freeze(log, "mesh")
    assert {code(said_by(log, name)) for name in ("east", "west", "north")} == {"domain_frozen"}
    offset = log.operator(intents.DomainThawed, domain="mesh", reason="it is over")
    assert log.verdict(offset) == Accepted()


def test_a_freeze_ends_by_the_time_of_the_log(log: MemoryLog) -> None:
    freeze(log, "west", 10_000)
    log.now += 10_000
    assert said_by(log, "west") == Accepted()


@pytest.mark.parametrize("ahead_ms", [-59 * 60_000, 0, 30_000])
def test_a_freeze_with_a_duration_ends_by_the_clock_of_the_mesh_alone(
    log: MemoryLog, ahead_ms: int
) -> None:
    made = at(log.now + ahead_ms)
    fields = {"domain": "west", "until": made, "duration_ms": HOUR_MS, "reason": "its key was seen"}
    event = log.make(intents.DomainFrozen, "mesh", **fields)
    event = event.model_copy(update={"meta": event.meta.model_copy(update={"time": made})})
    log.append(event, by="operator")
    log.govern()
    log.now += HOUR_MS - 60_000
    assert code(said_by(log, "west")) == "domain_frozen"
    log.now += 60_000
    assert said_by(log, "west") == Accepted()


@pytest.mark.parametrize("worker_skew", [HOUR_MS, 0, TOLERANCE_MS, -HOUR_MS])
def test_a_freeze_with_a_duration_lasts_so_long_by_the_clock_that_is_ahead(
    log: MemoryLog, worker_skew: int
) -> None:
    fields = {"domain": "west", "until": at(log.now), "duration_ms": HOUR_MS, "reason": "seen"}
    offset = log.operator(intents.DomainFrozen, **fields)
    log.rule(offset, Accepted(), worker_skew=worker_skew)
    lasts = log.image.identity.freezes["west"].until - log.image.clock
    assert lasts == HOUR_MS + (HOUR_MS if worker_skew == HOUR_MS else 0)
    # the same again is not shorter
    offset = log.operator(intents.DomainFrozen, **fields)
    again, clock = log.image.intents.undecided[offset], log.image.clock
    assert decide(log.image, again, clock, worker_skew=worker_skew) == Accepted()


@pytest.mark.parametrize("duration_ms", [-1, 0, 367 * 24 * HOUR_MS, 2**63 - 1])
def test_a_freeze_lasts_for_a_time_and_a_year_at_most(log: MemoryLog, duration_ms: int) -> None:
    fields = {"domain": "west", "until": at(log.now + 10_000), "reason": "its key was seen"}
    offset = log.operator(intents.DomainFrozen, duration_ms=duration_ms, **fields)
    assert code(log.verdict(offset)) == "invalid_end"


def test_a_freeze_with_a_duration_never_shortens_one(log: MemoryLog) -> None:
    freeze(log, "west", 2 * HOUR_MS)
    fields = {"domain": "west", "until": at(log.now + 3 * HOUR_MS), "reason": "again"}
    offset = log.operator(intents.DomainFrozen, duration_ms=HOUR_MS, **fields)
    assert code(log.verdict(offset)) == "frozen_longer"


def test_a_freeze_ends_when_it_is_thawed(log: MemoryLog) -> None:
    freeze(log, "west")
    log.operator(intents.DomainThawed, domain="west", reason="new key")
    log.govern()
    assert said_by(log, "west") == Accepted()


@pytest.mark.parametrize("left_ms", [1, 0, -1])
def test_a_freeze_that_has_ended_by_itself_cannot_be_thawed(log: MemoryLog, left_ms: int) -> None:
    freeze(log, "west", 10_000)
    log.now = log.image.identity.freezes["west"].until - left_ms
    offset = log.operator(intents.DomainThawed, domain="west", reason="it is over")
    verdict = log.verdict(offset)
    assert code(verdict) == ("" if left_ms > 0 else "not_frozen")
    if isinstance(verdict, Rejected):
        assert "has ended by itself" in verdict.reason


@pytest.mark.parametrize("worker_skew", [TOLERANCE_MS, TOLERANCE_MS + 1, -TOLERANCE_MS - 1])
def test_a_freeze_can_be_thawed_beyond_its_end_while_clocks_disagree(
    log: MemoryLog, worker_skew: int
) -> None:
    freeze(log, "west", 10_000)
    log.now += 20_000
    offset = log.operator(intents.DomainThawed, domain="west", reason="it is over")
    entry = log.image.intents.undecided[offset]
    verdict = decide(log.image, entry, log.now, worker_skew=worker_skew)
    assert code(verdict) == ("not_frozen" if worker_skew == TOLERANCE_MS else "")


def test_a_thaw_that_was_said_in_time_may_wait_for_a_governor(log: MemoryLog) -> None:
    freeze(log, "west", 10_000)
    log.operator(intents.DomainThawed, domain="west", reason="it is over")
    log.say(intents.ApplicationRegistered, "west", application="west.late")
    log.now += 20_000
    log.govern()
    assert "west" not in log.image.identity.freezes
    assert "west.late" in log.image.identity.applications


def test_a_thaw_that_was_accepted_ends_a_freeze_beyond_its_end(log: MemoryLog) -> None:
    """Logs of before hold such ones: what was accepted is never judged."""
    freeze(log, "west", 10_000)
    log.now += 20_000
    offset = log.operator(intents.DomainThawed, domain="west", reason="it is over")
    log.rule(offset, Accepted())
    assert "west" not in log.image.identity.freezes


def test_what_is_in_force_stays_in_force(log: MemoryLog) -> None:
    asked = story.granted(log, "north")
    story.settle(log)
    before = log.image.access
    freeze(log, "north")
    freeze(log, "east")
    assert log.image.access == before
    assert log.image.access.requests[asked].is_enforced


def test_a_domain_may_freeze_itself_and_not_thaw_itself(log: MemoryLog) -> None:
    until = at(log.now + HOUR_MS)
    log.say(intents.DomainFrozen, "west", domain="west", until=until, reason="we lost a laptop")
    log.govern()
    assert code(said_by(log, "west")) == "domain_frozen"
    offset = log.say(intents.DomainThawed, "west", domain="west", reason="found it")
    assert code(log.verdict(offset)) == "domain_frozen"
