"""Why an application may read or may not: the decision, and what was seen."""

import pytest

from mesh_events import facts, intents
from processors.clusters.rights import Acl
from self_service.cli.access.reasons import allow_reading, why
from self_service.cli.audit import history
from tests import sample_history as story
from tests.memory_log import MemoryLog


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def said(log: MemoryLog, application: str = "west.app", *, enforced: bool | None) -> str:
    asked = [one for one in log.image.access.requests.values() if one.application == application]
    access = max(asked, key=lambda one: one.offset, default=None)
    return why(log.image, story.PRODUCT, application, access, enforced)


def test_before_a_decision_only_what_is_wrong_is_added(log: MemoryLog) -> None:
    assert said(log, enforced=False) == "west.app never requested east.users"
    assert "all the same: see `sdm drift`" in said(log, enforced=True)
    story.request(log)
    assert said(log, enforced=False).endswith("east has not decided")
    assert "all the same: see `sdm drift`" in said(log, enforced=True)


def test_what_was_granted_follows_what_was_seen(log: MemoryLog) -> None:
    asked = story.granted(log)
    assert said(log, enforced=False) == "granted by east.somebody; the ACLs are not applied"
    story.settle(log)
    assert said(log, enforced=True) == "granted by east.somebody; the ACLs are applied"
    assert "the ACLs are missing: see `sdm drift`" in said(log, enforced=False)
    assert "could not be checked" in said(log, enforced=None)
    story.answer(log, intents.AccessRevoked, asked, reason="too much")
    assert (
        said(log, enforced=True)
        == "revoked by east.somebody: too much; the ACLs are not removed yet"
    )
    assert "has yet to report" in said(log, enforced=False)
    story.settle(log)
    assert said(log, enforced=False) == "revoked by east.somebody: too much"
    assert "all the same: see `sdm drift`" in said(log, enforced=True)


def test_own_products_need_no_request(log: MemoryLog) -> None:
    log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.govern()
    assert "east's own product" in said(log, "east.app", enforced=True)
    assert said(log, "east.app", enforced=True).endswith("; the ACLs are applied")
    assert "the ACLs are missing: see `sdm drift`" in said(log, "east.app", enforced=False)


def test_a_quarantine_is_the_reason_and_no_drift(log: MemoryLog) -> None:
    story.granted(log)
    story.settle(log)
    log.operator(intents.DomainQuarantined, domain="west", reason="a laptop was stolen")
    log.govern()
    cut_off = "west is in quarantine: a laptop was stolen"
    assert said(log, enforced=False) == f"granted by east.somebody; {cut_off}"
    assert said(log, enforced=True) == f"granted by east.somebody; the ACLs are applied; {cut_off}"


def test_a_copy_that_stands_still_is_told(log: MemoryLog) -> None:
    story.granted(log)
    story.settle(log)
    story.told(log, facts.LinkFailed, code="spark_lost", reason="no answer", retriable=True)
    assert "the copy is not updated, link east.users@west is FAILED: no answer" in said(
        log, enforced=True
    )


def test_a_removed_link_is_told_with_the_way_back(log: MemoryLog) -> None:
    story.granted(log)
    story.settle(log)
    log.say(intents.LinkDeleted, "west", product=story.PRODUCT, cluster="west", reason="not needed")
    log.govern()
    story.settle(log)
    told = said(log, enforced=False)
    assert "`sdm link create east.users --cluster west` recreates the copy" in told


def test_what_a_quarantine_did_to_a_request_belongs_to_its_conversation(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    log.operator(intents.DomainQuarantined, domain="west", reason="a laptop was stolen")
    log.govern()
    story.settle(log)
    every = history.steps(log.records)
    told = history.conversation(every, history.find(every, asked))
    types = [one.type for one in told]
    assert types.count("DomainQuarantined") == 1
    assert types.index("DomainQuarantined") < types.index("AclRemoved")
    assert [one.offset for one in told] == sorted(one.offset for one in told)


READ = Acl("west.app", "read", "topic", "east.users")


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([READ], True),
        ([Acl("west.app", "describe", "topic", "east.users")], False),
        ([Acl("*", "read", "topic", "*")], True),
        ([Acl("west.app", "all", "topic", "east.", prefixed=True)], True),
        ([Acl("west.app", "read", "topic", "east.", prefixed=False)], False),
        ([Acl("north.app", "read", "topic", "east.users")], False),
        ([READ, Acl("*", "all", "topic", "east.users", denies=True)], False),
        ([READ, Acl("north.app", "read", "topic", "east.users", denies=True)], True),
        ([READ, Acl("*", "read", "topic", "*", host="10.1.1.1", denies=True)], True),
        ([Acl("*", "read", "topic", "*", host="10.1.1.1", denies=True)], False),
    ],
)
def test_acls_are_weighed_as_kafka_does(acls: list[Acl], allowed: bool) -> None:
    assert allow_reading(acls, "east.users", "west.app")[0] is allowed
