"""Which rights the image calls for, before any cluster is asked."""

from collections.abc import Iterable

import pytest

from mesh_events import facts, intents
from mesh_events.connectors import ConnectorAdded
from mesh_events.statements import StatementAdded
from processors.clusters import principals
from processors.clusters.principals import held
from processors.clusters.rights import Binding, Operation, Resource, reader
from processors.controllers.rights.rights import Wish, _in_order
from processors.controllers.rights.wishes import current, desired, returned
from tests import sample_history as story
from tests.memory_log import MemoryLog


def wish_of(log: MemoryLog, request: str) -> Wish | None:
    """The one wish about a request, if there is one."""
    found = [wish for wish in desired(log.image) if wish.subject == request]
    assert len(found) <= 1
    return found[0] if found else None


def test_a_reader_has_to_wait_for_the_copy() -> None:
    log = MemoryLog()
    story.published(log)
    request = story.request(log)
    assert wish_of(log, request) is None
    story.answer(log, intents.AccessGranted, request)
    log.govern()
    assert wish_of(log, request) is None
    story.activated(log)
    wish = wish_of(log, request)
    assert wish is not None
    assert (wish.wanted, wish.reported) == (True, False)
    assert wish.bindings == reader("west.app", "east.users")


def test_a_revoked_right_is_unwanted_for_ever() -> None:
    log = MemoryLog()
    story.published(log)
    request = story.granted(log)
    story.activated(log)
    story.rights(log, facts.AclApplied, request)
    story.answer(log, intents.AccessRevoked, request, reason="r")
    log.govern()
    wish = wish_of(log, request)
    assert wish is not None
    assert (wish.wanted, wish.reported) == (False, False)
    story.rights(log, facts.AclRemoved, request)
    wish = wish_of(log, request)
    assert wish is not None
    assert (wish.wanted, wish.reported) == (False, True)


def returned_to(log: MemoryLog, cluster: str, actual: Iterable[Binding]) -> list[Wish]:
    return returned(log.image, cluster, held(log.image, actual))


def test_of_grants_that_are_over_those_with_rights_are_looked_at_alone() -> None:
    log = MemoryLog()
    story.published(log)
    request = story.granted(log)
    story.activated(log)
    story.rights(log, facts.AclApplied, request)
    config = {"connector.class": "some.Sink", "topics": "east.users"}
    said = {"connector": "west.files", "application": "west.app", "config": config}
    log.say(ConnectorAdded, "west", **said)
    log.govern()
    story.answer(log, intents.AccessRevoked, request, reason="r")
    log.govern()
    assert request in {one.subject for one in current(log.image)}
    story.rights(log, facts.AclRemoved, request)
    assert request not in {one.subject for one in current(log.image)}
    assert returned_to(log, "west", reader("west.other", "east.users")) == []
    assert returned_to(log, "east", reader("west.app", "east.users")) == []
    [wish] = returned_to(log, "west", reader("west.app", "east.users"))
    assert wish == wish_of(log, request)
    by_sink = reader("mesh.connect.west.files", "east.users")
    assert [one.subject for one in returned_to(log, "west", by_sink)] == [request]
    assert returned_to(log, "west", reader("mesh.connect.west.none", "east.users")) == []


def test_readers_lose_a_copy_that_somebody_removes_under_the_grant() -> None:
    log = MemoryLog()
    story.published(log)
    request = story.granted(log)
    story.activated(log)
    story.rights(log, facts.AclApplied, request)
    link = log.image.links[story.LINK]
    log.say(intents.LinkDeleted, "east", product=link.product, cluster=link.cluster, reason="r")
    log.govern()
    wish = wish_of(log, request)
    assert wish is not None
    assert (wish.wanted, wish.reported) == (False, False)
    story.rights(log, facts.AclRemoved, request)
    wish = wish_of(log, request)
    assert wish is not None
    assert (wish.wanted, wish.reported) == (False, True)


def test_a_grant_that_was_not_reported_yet_may_have_been_applied() -> None:
    log = MemoryLog()
    story.published(log)
    request = story.granted(log)
    log.say(intents.LinkDeleted, "east", product=story.PRODUCT, cluster="west", reason="not yet")
    log.govern()
    wish = wish_of(log, request)
    assert wish is not None
    assert (wish.wanted, wish.reported) == (False, False)
    story.rights(log, facts.AclRemoved, request)
    wish = wish_of(log, request)
    assert wish is not None
    assert (wish.wanted, wish.reported) == (False, True)
    assert log.image.access.requests[request].removed_at is None


def crowded(domain: str) -> MemoryLog:
    """A product is published, and a domain has twenty applications to be registered."""
    log = MemoryLog()
    story.published(log)
    for number in range(20):
        log.say(intents.ApplicationRegistered, domain, application=f"{domain}.a{number}")
    return log


def test_of_a_quarantined_domain_the_rights_at_products_of_others_go_first() -> None:
    log = crowded("north")
    request = story.granted(log, "north")
    log.operator(intents.DomainQuarantined, domain="north", reason="hostile")
    log.govern()
    order = [one.subject for one in _in_order(desired(log.image)) if not one.wanted]
    assert order[0] == request
    assert len(order) > 20


def test_the_rights_of_a_domain_come_in_turn_with_those_of_one_with_very_many() -> None:
    log = crowded("east")
    request = story.granted(log, "north")
    log.say(intents.AccessRevoked, "east", product="east.users", request=request, reason="over")
    log.say(intents.ApplicationRegistered, "west", application="west.late")
    log.govern()
    order = [one for one in _in_order(desired(log.image)) if not one.reported]
    subjects = [one.subject for one in order]
    assert subjects[0] == request, "what is revoked comes first"
    assert subjects.index("application/west.late") < subjects.index("application/east.a5")
    assert "application/east.a19" in subjects


def test_whose_the_rights_of_a_cluster_are_is_asked_once_for_each_principal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog()
    story.published(log)
    config = {"connector.class": "some.Sink", "topics": "west.own"}
    log.say(ConnectorAdded, "west", connector="west.files", config=config)
    log.say(StatementAdded, "east", **story.statement())
    log.govern()
    asked, real = list[str](), principals.job_of
    monkeypatch.setattr(
        principals, "job_of", lambda image, name: asked.append(name) or real(image, name)
    )
    [statement] = log.image.statements
    names = ["west.app", "mesh.connect.west.files", f"mesh.sql.{statement}.0123abcd"]
    names += ["mesh.connect.west.none", f"mesh.sql.{statement}"]
    group = Binding("mesh.connect.west.files", Operation.READ, Resource.GROUP, "connect-west.files")
    actual = [right for name in names for right in sorted(reader(name, "east.users"))]
    found = held(log.image, [*actual, group])
    assert sorted(asked) == sorted(names)
    ours = {right.principal: job.id for right, job in found.jobs}
    assert ours == {names[1]: "west.files", names[2]: statement}
    assert len(found.jobs) == 4
    assert found.others == {(name, "east.users") for name in (names[0], *names[3:])}
