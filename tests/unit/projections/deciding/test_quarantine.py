"""A quarantine: nothing counts that a domain says, and it reads nothing, until its release."""

import pytest

from mesh_events import facts, intents
from projections.access import State
from projections.deciding.derived import derived_intents
from projections.deciding.verdict import Accepted, Rejected, Verdict
from tests import sample_history as story
from tests.memory_log import MemoryLog


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def cut_off(log: MemoryLog, domain: str = "west") -> None:
    log.operator(intents.DomainQuarantined, domain=domain, reason="a laptop was stolen")
    log.govern()


def release(log: MemoryLog, domain: str = "west") -> None:
    log.operator(intents.DomainReleased, domain=domain, reason="new keys")
    log.govern()


def code(verdict: Verdict) -> str:
    return verdict.code if isinstance(verdict, Rejected) else ""


def said_by(log: MemoryLog, domain: str) -> Verdict:
    return log.verdict(log.say(intents.ApplicationRegistered, domain, application=f"{domain}.late"))


def test_what_it_says_is_refused_with_the_reason(log: MemoryLog) -> None:
    cut_off(log)
    verdict = said_by(log, "west")
    assert code(verdict) == "domain_quarantined"
    assert isinstance(verdict, Rejected)
    assert "a laptop was stolen" in verdict.reason
    assert said_by(log, "east") == Accepted()
    release(log)
    assert said_by(log, "west") == Accepted()


def test_its_readers_stay_entitled_and_lose_their_rights_until_the_release(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    first = log.image.access.requests[asked]
    assert first.is_enforced
    cut_off(log)
    waiting = log.image.access.requests[asked]
    assert (waiting.state, waiting.revoked_at) == (State.GRANTED, None)
    story.settle(log)
    assert not log.image.access.requests[asked].is_enforced
    release(log)
    story.settle(log)
    again = log.image.access.requests[asked]
    assert again.state is State.ACTIVE
    (began, ended), (back, still) = again.enforced
    assert began < (ended or 0) < back
    assert still is None
    assert again.generation > waiting.generation > first.generation


def test_others_read_on(log: MemoryLog) -> None:
    asked = story.granted(log, "north")
    story.settle(log)
    before = log.image.access.requests[asked]
    cut_off(log)
    cut_off(log, "east")
    assert log.image.access.requests[asked] == before


def test_a_report_of_what_the_quarantine_has_overtaken_does_not_make_it_active(
    log: MemoryLog,
) -> None:
    asked = story.granted(log)
    before = log.image.access.requests[asked]
    cut_off(log)
    for generation in (before.generation, log.image.access.requests[asked].generation):
        story.rights(log, facts.AclApplied, asked, generation=generation)
    found = log.image.access.requests[asked]
    assert found.state is State.GRANTED
    # the right may be there: it counts as enforced until it was seen gone
    assert found.is_enforced
    story.rights(log, facts.AclRemoved, asked)
    assert not log.image.access.requests[asked].is_enforced


def test_rights_seen_gone_after_the_release_were_gone_for_a_moment(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    cut_off(log)
    cut = log.image.access.requests[asked].generation
    release(log)
    gone = story.rights(log, facts.AclRemoved, asked, generation=cut)
    found = log.image.access.requests[asked]
    assert (found.state, found.is_enforced, found.withdrawing) == (State.GRANTED, False, True)
    story.rights(log, facts.AclApplied, asked)
    again = log.image.access.requests[asked]
    assert (again.state, len(again.enforced)) == (State.ACTIVE, 2)
    # a copy of the report tells nothing new
    log.put(log.records[gone])
    assert log.image.access.requests[asked] == again


def test_a_late_report_of_what_was_taken_since_tells_nothing(log: MemoryLog) -> None:
    asked = story.granted(log)
    granted = log.image.access.requests[asked].generation
    cut_off(log)
    story.rights(log, facts.AclRemoved, asked)
    gone = log.image.access.requests[asked]
    story.rights(log, facts.AclApplied, asked, generation=granted)
    assert log.image.access.requests[asked] == gone
    assert not gone.is_enforced


def test_a_late_report_of_what_was_given_back_since_tells_nothing(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    cut_off(log)
    cut = log.image.access.requests[asked].generation
    release(log)
    story.rights(log, facts.AclApplied, asked)
    story.answer(log, intents.AccessRevoked, asked, reason="done")
    story.rights(log, facts.AclRemoved, asked, generation=cut)
    found = log.image.access.requests[asked]
    assert (found.state, found.is_enforced) == (State.REVOKING, True)


def test_no_copy_is_begun_for_who_is_cut_off(log: MemoryLog) -> None:
    asked = story.request(log)
    offset = log.say(
        intents.AccessGranted, "east", product=story.PRODUCT, request=asked, reason="yes"
    )
    log.accept(offset)
    log.accept(log.operator(intents.DomainQuarantined, domain="west", reason="to be looked at"))
    assert derived_intents(log.image, "paper/1") == []
    log.accept(log.operator(intents.DomainReleased, domain="west", reason="new keys"))
    assert [one.type_name() for one in derived_intents(log.image, "paper/1")] == ["LinkCreated"]


def test_its_own_rights_are_reported_gone_and_back_by_generation(log: MemoryLog) -> None:
    def report(kind: type[facts.RightsFact], generation: int) -> dict[str, int]:
        subject, cluster = "domain/west", "west"
        log.report(kind, subject=subject, cluster=cluster, generation=generation, bindings=[])
        return dict(log.image.identity.domains["west"].rights)

    founded = log.image.identity.domains["west"].generation
    assert report(facts.AclApplied, founded)["west"] == founded
    cut_off(log)
    cut = log.image.identity.domains["west"].generation
    theirs = {
        one.generation
        for one in log.image.identity.applications.values()
        if one.id.startswith("west.")
    }
    assert theirs == {cut}
    assert cut > founded
    assert "west" in report(facts.AclRemoved, founded)
    assert "west" not in report(facts.AclRemoved, cut)
    assert "west" not in report(facts.AclApplied, founded)
    release(log)
    back = log.image.identity.domains["west"].generation
    assert back > cut
    assert report(facts.AclApplied, back)["west"] == back


def test_nobody_grants_to_a_domain_in_quarantine(log: MemoryLog) -> None:
    asked = story.request(log)
    cut_off(log)
    offset = log.say(
        intents.AccessGranted, "east", product=story.PRODUCT, request=asked, reason="yes"
    )
    assert code(log.verdict(offset)) == "domain_quarantined"


@pytest.mark.parametrize("kind", [intents.DomainQuarantined, intents.DomainReleased])
@pytest.mark.parametrize(
    ("domain", "expected"), [("mesh", "unknown_domain"), ("nowhere", "unknown_domain")]
)
def test_it_is_about_one_domain(
    kind: type[intents.Intent], domain: str, expected: str, log: MemoryLog
) -> None:
    offset = log.operator(kind, domain=domain, reason="so")
    assert code(log.verdict(offset)) == expected


def test_only_the_operator_cuts_off_and_releases_each_once(log: MemoryLog) -> None:
    def said(kind: type[intents.Intent], sender: str) -> str:
        if sender == "operator":
            return code(log.verdict(log.operator(kind, domain="west", reason="so")))
        return code(log.verdict(log.say(kind, sender, domain="west", reason="so")))

    quarantined, released = intents.DomainQuarantined, intents.DomainReleased
    assert said(released, "operator") == "not_quarantined"
    assert {said(quarantined, one) for one in ("west", "east")} == {"operators_only"}
    cut_off(log)
    assert said(quarantined, "operator") == "quarantined_already"
    assert said(released, "east") == "operators_only"
    assert said(released, "west") == "domain_quarantined"


def test_what_may_have_been_applied_unreported_is_withdrawn_until_it_is_seen_gone(
    log: MemoryLog,
) -> None:
    asked = story.granted(log)
    cut_off(log)
    found = log.image.access.requests[asked]
    assert (found.is_enforced, found.withdrawing) == (False, True)
    places = {"east", "west"}
    assert set(log.image.identity.domains["west"].rights) == places
    story.rights(log, facts.AclRemoved, asked)
    assert not log.image.access.requests[asked].withdrawing
    release(log)
    cut_off(log)
    assert log.image.access.requests[asked].withdrawing
