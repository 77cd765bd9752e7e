from collections.abc import Callable
from typing import Any

import pytest

from mesh_events import facts, intents, statements
from mesh_events.intents import Intent
from self_service.cli.framework.options import Until
from self_service.cli.mesh.stages import Progress, awaited, overtaken, progress, where
from tests import sample_history as story
from tests.memory_log import MemoryLog

PENDING, REACHED, OVERTAKEN = Progress.PENDING, Progress.REACHED, Progress.OVERTAKEN


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def last(log: MemoryLog, kind: type[Intent]) -> Any:
    """The latest intent of a kind on the log."""
    offsets = [record.offset for record in reversed(log.records)]
    events = (log.event_at(offset) for offset in offsets)
    return next(event for event in events if isinstance(event, kind))


def test_decided_is_reached_with_the_decision(log: MemoryLog) -> None:
    story.granted(log)
    grant = last(log, intents.AccessGranted)
    assert progress(log.image, grant, Until.DECIDED) is REACHED


@pytest.mark.parametrize("order", [("logins", "rights"), ("rights", "logins")])
def test_a_domain_is_applied_with_all_logins_and_all_rights(
    log: MemoryLog, order: tuple[str, str]
) -> None:
    offsets = (record.offset for record in log.records)
    registered = (log.event_at(offset) for offset in offsets)
    west = next(
        event
        for event in registered
        if isinstance(event, intents.DomainRegistered) and event.domain == "west"
    )

    def still_waiting() -> None:
        assert progress(log.image, west, Until.APPLIED) is PENDING

    for what in order:
        still_waiting()
        if what == "logins":
            story.keep(log)
        else:
            _domain_rights(log, "west", still_waiting)
    assert progress(log.image, west, Until.APPLIED) is REACHED


def _domain_rights(log: MemoryLog, name: str, before: Callable[[], None]) -> None:
    """A controller's reports on a domain's own rights, one cluster after the other."""
    for place in ("east", "west"):
        before()
        log.report(
            facts.AclApplied,
            subject=f"domain/{name}",
            cluster=place,
            generation=log.image.identity.domains[name].generation,
            bindings=[],
        )


def test_a_rotated_login_is_applied_when_the_new_password_is_issued(log: MemoryLog) -> None:
    story.keep(log)
    log.say(intents.CredentialsRequested, "west", principal="west.app", cluster="west")
    log.govern()
    asked = last(log, intents.CredentialsRequested)
    assert progress(log.image, asked, Until.APPLIED) is PENDING
    log.report(
        facts.CredentialsIssued,
        principal="west.app",
        cluster="west",
        generation=log.image.identity.credentials["west.app", "west"].generation,
        reference="file:/secrets/west/west.app",
    )
    assert progress(log.image, asked, Until.APPLIED) is REACHED


def test_a_grant_that_waits_for_a_link_names_it_and_who_paused_it(log: MemoryLog) -> None:
    story.granted(log)
    grant = last(log, intents.AccessGranted)
    assert awaited(log.image, grant) == ", and the link east.users@west is CREATED"
    log.say(intents.LinkPaused, "east", product=story.PRODUCT, cluster="west")
    story.settle(log)
    assert awaited(log.image, grant) == ", and the link east.users@west is PAUSED by east"
    log.say(intents.LinkResumed, "east", product=story.PRODUCT, cluster="west")
    story.settle(log)
    assert awaited(log.image, grant) == ""


def test_a_grant_is_applied_with_the_rights_and_active_with_the_copy(log: MemoryLog) -> None:
    asked = story.granted(log)
    grant = last(log, intents.AccessGranted)
    assert progress(log.image, grant, Until.APPLIED) is PENDING
    story.rights(log, facts.AclApplied, asked)
    assert progress(log.image, grant, Until.APPLIED) is REACHED
    assert progress(log.image, grant, Until.ACTIVE) is PENDING
    story.activated(log)
    assert progress(log.image, grant, Until.ACTIVE) is REACHED
    assert where(log.image, grant) == "ACTIVE"


def test_a_grant_on_the_same_cluster_is_active_without_a_copy(log: MemoryLog) -> None:
    asked = story.granted(log, "north")
    story.rights(log, facts.AclApplied, asked)
    assert progress(log.image, last(log, intents.AccessGranted), Until.ACTIVE) is REACHED


def test_a_grant_that_was_revoked_meanwhile_is_overtaken(log: MemoryLog) -> None:
    asked = story.granted(log)
    grant = last(log, intents.AccessGranted)
    story.answer(log, intents.AccessRevoked, asked)
    assert progress(log.image, grant, Until.APPLIED) is OVERTAKEN
    assert where(log.image, grant) == "REVOKING"


def test_a_revocation_is_applied_without_rights_and_active_without_the_copy(
    log: MemoryLog,
) -> None:
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    revocation = last(log, intents.AccessRevoked)
    assert progress(log.image, revocation, Until.APPLIED) is PENDING
    story.rights(log, facts.AclRemoved, asked)
    assert progress(log.image, revocation, Until.APPLIED) is REACHED
    assert progress(log.image, revocation, Until.ACTIVE) is PENDING
    story.settle(log)
    assert progress(log.image, revocation, Until.ACTIVE) is REACHED


def test_waiting_for_a_request_ends_with_the_owners_refusal(log: MemoryLog) -> None:
    asked = story.request(log)
    request = last(log, intents.AccessRequested)
    assert progress(log.image, request, Until.APPLIED) is REACHED
    assert progress(log.image, request, Until.ACTIVE) is PENDING
    story.answer(log, intents.AccessDenied, asked)
    assert progress(log.image, request, Until.ACTIVE) is OVERTAKEN


def test_a_link_is_applied_when_it_does_what_was_said(log: MemoryLog) -> None:
    story.granted(log)
    story.settle(log)
    for kind, state in (
        (intents.LinkPaused, "PAUSED"),
        (intents.LinkResumed, "ACTIVE"),
        (intents.LinkDeleted, "DELETED"),
    ):
        log.say(kind, "east", product=story.PRODUCT, cluster="west")
        log.govern()
        said = last(log, kind)
        assert progress(log.image, said, Until.APPLIED) is PENDING
        # what follows by itself is another story: only the controllers move here
        story.keep(log)
        assert progress(log.image, said, Until.APPLIED) is REACHED
        assert where(log.image, said) == state


def test_a_published_product_has_nothing_to_wait_for(log: MemoryLog) -> None:
    published = last(log, intents.ProductPublished)
    assert progress(log.image, published, Until.ACTIVE) is REACHED
    assert where(log.image, published) == "PUBLISHED"


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("source_not_granted", REACHED),
        ("domain_quarantined", REACHED),
        ("table_filling", REACHED),
        ("query_failed", PENDING),
    ],
)
def test_a_quarantine_waits_for_no_statement_that_has_failed_for_want_of_a_right(
    log: MemoryLog, code: str, reached: object
) -> None:
    log.say(statements.StatementAdded, "east", **story.statement())
    log.govern()
    story.settle(log)
    found = log.image.statements[story.STATEMENT]
    about = {"statement": found.id, "generation": found.generation}
    log.report(
        statements.StatementFailed, **about, code=code, reason="it stands still", retriable=True
    )
    log.operator(intents.DomainQuarantined, domain="east", reason="a laptop was stolen")
    log.govern()
    cut = {"cluster": "east", "generation": log.image.identity.domains["east"].generation}
    log.report(facts.AclRemoved, subject="domain/east", **cut, bindings=[])
    quarantine = last(log, intents.DomainQuarantined)
    assert progress(log.image, quarantine, Until.APPLIED) is reached


@pytest.mark.parametrize(
    ("code", "reached"),
    [("table_filling", PENDING), ("query_failed", PENDING), ("source_not_granted", OVERTAKEN)],
)
def test_a_statement_that_starts_by_itself_is_waited_for(
    log: MemoryLog, code: str, reached: object
) -> None:
    log.say(statements.StatementAdded, "east", **story.statement())
    log.govern()
    found = log.image.statements[story.STATEMENT]
    about = {"statement": found.id, "generation": found.generation}
    log.report(
        statements.StatementFailed, **about, code=code, reason="it stands still", retriable=False
    )
    added = last(log, statements.StatementAdded)
    assert progress(log.image, added, Until.ACTIVE) is reached


def test_a_quarantine_beside_a_release_is_told_with_the_state_it_came_to(log: MemoryLog) -> None:
    log.operator(intents.DomainQuarantined, domain="west", reason="stolen")
    log.govern()
    cut_off = last(log, intents.DomainQuarantined)
    log.operator(intents.DomainReleased, domain="west", reason="found")
    log.govern()
    released = last(log, intents.DomainReleased)
    assert progress(log.image, cut_off, Until.APPLIED) is OVERTAKEN
    assert overtaken(log.image, cut_off) == f"{cut_off.key} is not in quarantine meanwhile"

    log.operator(intents.DomainQuarantined, domain="west", reason="stolen again")
    log.govern()
    assert progress(log.image, released, Until.APPLIED) is OVERTAKEN
    assert overtaken(log.image, released) == f"{released.key} is in quarantine meanwhile"
