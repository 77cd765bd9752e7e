"""What follows by itself: links that grants need, and the end of links that none needs."""

import pytest

from mesh_events import facts, intents
from mesh_events.intents import LinkCreated, LinkDeleted, LinkResumed, OnRevoke
from mesh_events.rows import AccessState, LinkState
from projections.deciding.derived import derived_intents
from projections.deciding.intents import REMEMBERED_MS
from projections.deciding.verdict import Accepted, Rejected
from projections.links import Copy, Desired, State
from tests import sample_history as story
from tests.memory_log import MemoryLog, key

LINKED = {"product": story.PRODUCT, "cluster": "west"}


@pytest.fixture
def log() -> MemoryLog:
    """A published product, and a second application of west."""
    log = MemoryLog()
    story.published(log)
    log.say(intents.ApplicationRegistered, "west", application="west.two")
    log.govern()
    return log


def due(log: MemoryLog) -> list[intents.Intent]:
    return derived_intents(log.image, "paper/1")


def grant_undecided(log: MemoryLog, asked: str) -> None:
    """The grant is decided, what follows from it is not said yet."""
    offset = log.say(intents.AccessGranted, "east", product=story.PRODUCT, request=asked)
    log.accept(offset)


def second_request(log: MemoryLog) -> str:
    event = log.make(
        intents.AccessRequested,
        "west",
        product=story.PRODUCT,
        application="west.two",
        reason="r",
    )
    log.append(event, by="west")
    log.govern()
    return event.meta.id


def paused(log: MemoryLog, sender: str) -> None:
    """East's copy for west stands still; then another domain of that cluster is granted."""
    story.granted(log)
    log.operator(intents.DomainRegistered, **story.domain("south", "west"))
    story.settle(log)
    if sender == "mesh":
        log.operator(intents.LinkPaused, **LINKED)
    else:
        log.say(intents.LinkPaused, sender, **LINKED)
    log.say(intents.ApplicationRegistered, "south", application="south.app")
    story.settle(log)


def granted_south(log: MemoryLog) -> str:
    event = log.make(
        intents.AccessRequested,
        "south",
        product=story.PRODUCT,
        application="south.app",
        reason="r",
    )
    log.append(event, by="south")
    log.govern()
    grant_undecided(log, event.meta.id)
    return event.meta.id


def test_a_grant_ends_the_pause_of_another_reader(log: MemoryLog) -> None:
    paused(log, "west")
    assert due(log) == []
    asked = granted_south(log)
    [intent] = due(log)
    assert isinstance(intent, LinkResumed)
    assert (intent.product, intent.cluster) == (story.PRODUCT, "west")
    assert intent.meta.causation == asked
    log.govern()
    link = log.image.links["east.users@west"]
    assert (link.desired, link.paused_by) == (Desired.RUNNING, None)
    assert due(log) == []


@pytest.mark.parametrize("sender", ["east", "mesh"])
def test_no_grant_ends_a_pause_of_the_owner_or_the_operator(log: MemoryLog, sender: str) -> None:
    paused(log, sender)
    granted_south(log)
    assert due(log) == []
    assert log.image.links["east.users@west"].paused_by == sender


def test_a_second_grant_of_who_paused_ends_no_pause(log: MemoryLog) -> None:
    paused(log, "west")
    grant_undecided(log, second_request(log))
    assert due(log) == []


def test_a_reader_that_is_cut_off_ends_no_pause(log: MemoryLog) -> None:
    paused(log, "west")
    granted_south(log)
    log.operator(intents.DomainQuarantined, domain="south", reason="it leaks")
    log.govern()
    assert due(log) == []


def test_a_pause_of_the_owner_is_not_ended_by_what_was_seen_before_it(log: MemoryLog) -> None:
    paused(log, "west")
    granted_south(log)
    [intent] = due(log)
    log.accept(log.say(intents.LinkPaused, "east", **LINKED))
    verdict = log.verdict(log.append(intent, by="governor"))
    assert isinstance(verdict, Rejected)
    assert verdict.code == "no_grant"


def revoke_undecided(log: MemoryLog, asked: str) -> None:
    offset = log.say(
        intents.AccessRevoked, "east", product=story.PRODUCT, request=asked, reason="over"
    )
    log.accept(offset)


def test_nothing_follows_from_an_empty_log_or_a_request() -> None:
    assert derived_intents(MemoryLog().image, "paper/1") == []
    log = MemoryLog()
    story.published(log)
    story.request(log)
    assert due(log) == []


def test_a_grant_on_the_spot_needs_no_link(log: MemoryLog) -> None:
    story.granted(log, "north")
    assert due(log) == []
    assert not log.image.links


def test_a_grant_to_another_cluster_needs_a_link(log: MemoryLog) -> None:
    asked = story.request(log)
    grant_undecided(log, asked)
    [intent] = due(log)
    assert isinstance(intent, LinkCreated)
    assert (intent.product, intent.cluster) == (story.PRODUCT, "west")
    assert intent.meta.correlation == asked
    assert intent.meta.domain == "mesh"


def test_saying_it_twice_is_saying_it_once(log: MemoryLog) -> None:
    grant_undecided(log, story.request(log))
    [first], [second] = due(log), due(log)
    assert first == second
    log.append(first, by="governor")
    assert due(log) == []
    again = log.append(second, by="governor")
    assert getattr(log.verdict(again), "code", "") == "duplicate_intent"
    log.govern()
    assert log.image.links[story.LINK].desired is Desired.RUNNING


def test_the_id_does_not_depend_on_when_it_is_said(log: MemoryLog) -> None:
    grant_undecided(log, story.request(log))
    [before] = due(log)
    log.now += 60_000
    log.start_governor()
    [after] = due(log)
    assert before.meta.id == after.meta.id


@pytest.mark.parametrize("squatter", ["north", "stranger", "controller"])
def test_nobody_prevents_a_link_by_saying_its_id_first(log: MemoryLog, squatter: str) -> None:
    grant_undecided(log, story.request(log))
    [intent] = due(log)
    log.append(intent, by=squatter)
    log.govern()
    assert log.image.links[story.LINK].desired is Desired.RUNNING


def test_two_grants_share_one_link(log: MemoryLog) -> None:
    story.granted(log)
    before = log.image.links[story.LINK]
    story.answer(log, intents.AccessGranted, second_request(log))
    assert log.image.links[story.LINK] == before
    assert due(log) == []


def test_a_grant_revoked_before_its_link_is_decided_makes_none(log: MemoryLog) -> None:
    asked = story.request(log)
    grant_undecided(log, asked)
    [intent] = due(log)
    revoke_undecided(log, asked)
    late = log.append(intent, by="governor")
    assert getattr(log.verdict(late), "code", "") == "no_grant"
    log.govern()
    assert not log.image.links
    assert due(log) == []


def test_the_link_ends_only_after_the_last_rights_are_seen_gone(log: MemoryLog) -> None:
    first = story.granted(log)
    second = second_request(log)
    story.answer(log, intents.AccessGranted, second)
    story.settle(log)
    revoke_undecided(log, first)
    story.rights(log, facts.AclRemoved, first)
    assert due(log) == []
    revoke_undecided(log, second)
    assert due(log) == []
    story.rights(log, facts.AclRemoved, second)
    [intent] = due(log)
    assert isinstance(intent, LinkDeleted)
    log.govern()
    assert log.image.links[story.LINK].desired is Desired.DELETED
    story.settle(log)
    assert log.image.links[story.LINK].state is State.DELETED
    assert due(log) == []


def test_a_revocation_before_the_rights_were_applied_ends_the_link_too(log: MemoryLog) -> None:
    asked = story.granted(log)
    revoke_undecided(log, asked)
    story.rights(log, facts.AclRemoved, asked)
    log.govern()
    assert log.image.links[story.LINK].desired is Desired.DELETED


def test_an_end_said_too_late_does_not_take_the_link_from_a_new_grant(log: MemoryLog) -> None:
    """Between the last grant's end and the decision on the link, somebody was granted access."""
    first = story.granted(log)
    story.settle(log)
    second = second_request(log)
    revoke_undecided(log, first)
    story.rights(log, facts.AclRemoved, first)
    [intent] = due(log)
    grant_undecided(log, second)
    late = log.append(intent, by="governor")
    verdict = log.verdict(late)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "still_granted"
    log.govern()
    assert log.image.links[story.LINK].desired is Desired.RUNNING


def test_an_explicit_removal_is_not_undone_by_itself(log: MemoryLog) -> None:
    story.granted(log)
    story.settle(log)
    log.say(LinkDeleted, "east", **LINKED)
    story.settle(log)
    assert log.image.links[story.LINK].state is State.DELETED
    assert due(log) == []
    forget_ids(log)
    assert due(log) == []
    assert log.image.links[story.LINK].state is State.DELETED


def test_a_grant_waits_while_its_link_is_away_and_is_enforced_when_it_is_back(
    log: MemoryLog,
) -> None:
    request = story.granted(log)
    story.settle(log)
    applied = log.image.access.requests[request]
    assert applied.state is AccessState.ACTIVE
    log.say(LinkDeleted, "east", **LINKED)
    story.settle(log)
    waiting = log.image.access.requests[request]
    assert (waiting.state, waiting.removed_at is not None) == (AccessState.GRANTED, True)
    assert waiting.generation > applied.generation
    log.say(LinkCreated, "east", **LINKED)
    story.settle(log)
    again = log.image.access.requests[request]
    assert (again.state, again.removed_at) == (AccessState.ACTIVE, None)


def forget_ids(log: MemoryLog) -> None:
    """Let so much time pass, with intents in it, that no old id is remembered."""
    for _ in range(2):
        log.now += REMEMBERED_MS + 1
        log.say(intents.ProductUpdated, "east", product=story.PRODUCT, sla=1)
        log.govern()


def test_a_new_grant_brings_a_removed_link_back(log: MemoryLog) -> None:
    story.granted(log)
    log.say(LinkDeleted, "east", **LINKED)
    story.settle(log)
    removed = log.image.links[story.LINK]
    story.answer(log, intents.AccessGranted, second_request(log))
    link = log.image.links[story.LINK]
    assert (link.desired, link.state) == (Desired.RUNNING, State.CREATED)
    assert link.created_generation > removed.generation


def test_a_link_and_its_end_follow_again_from_a_second_grant(log: MemoryLog) -> None:
    for _ in range(2):
        asked = story.granted(log)
        story.settle(log)
        assert log.image.links[story.LINK].state is State.ACTIVE
        story.answer(log, intents.AccessRevoked, asked)
        story.settle(log)
        assert log.image.links[story.LINK].copy is Copy.PURGED


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ((OnRevoke.PURGE,), Copy.PURGED),
        ((OnRevoke.RETAIN,), Copy.RETAINED),
        ((OnRevoke.RETAIN, OnRevoke.RETAIN), Copy.RETAINED),
        ((OnRevoke.RETAIN, OnRevoke.PURGE), Copy.PURGED),
        ((OnRevoke.PURGE, OnRevoke.RETAIN), Copy.PURGED),
    ],
)
def test_the_copy_is_retained_only_if_every_grant_said_so(
    log: MemoryLog, policies: tuple[OnRevoke, ...], expected: Copy
) -> None:
    granted = []
    for policy, asked in zip(policies, (story.request(log), second_request(log)), strict=False):
        story.answer(log, intents.AccessGranted, asked, on_revoke=policy)
        granted.append(asked)
    story.settle(log)
    for asked in granted:
        story.answer(log, intents.AccessRevoked, asked)
        story.settle(log)
    assert log.image.links[story.LINK].copy is expected


def test_a_grant_of_an_earlier_life_has_no_say_in_the_copy(log: MemoryLog) -> None:
    for policy in (OnRevoke.PURGE, OnRevoke.RETAIN):
        asked = story.granted(log, on_revoke=policy)
        story.settle(log)
        story.answer(log, intents.AccessRevoked, asked)
        story.settle(log)
    assert log.image.links[story.LINK].copy is Copy.RETAINED


def test_a_grant_with_another_engine_waits_until_the_first_has_let_go(log: MemoryLog) -> None:
    asked = story.granted(log)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    # the rights go, and the copy is still being removed
    while log.image.links[story.LINK].desired is not Desired.DELETED:
        story.keep(log)
        log.govern()
    assert not log.image.links[story.LINK].is_over
    story.granted(log, engine=intents.Engine.MIRRORMAKER)
    log.govern()
    assert log.image.links[story.LINK].engine is intents.Engine.SPARK
    story.settle(log)
    made = log.image.links[story.LINK]
    assert (made.engine, made.state) == (intents.Engine.MIRRORMAKER, LinkState.ACTIVE)


def test_the_governor_may_say_what_follows(log: MemoryLog) -> None:
    grant_undecided(log, story.request(log))
    [intent] = due(log)
    assert log.verdict(log.append(intent, by="governor")) == Accepted()
    assert key("governor").public in log.image.identity.keys


def test_what_the_operator_has_stopped_nobody_else_lets_go_on(log: MemoryLog) -> None:
    story.granted(log)
    story.settle(log)

    def refused(kind: type[intents.Intent], sender: str) -> str:
        verdict = log.verdict(log.say(kind, sender, **LINKED))
        return verdict.code if isinstance(verdict, Rejected) else ""

    def operator(kind: type[intents.Intent]) -> None:
        log.operator(kind, **LINKED)
        log.govern()

    operator(intents.LinkPaused)
    assert {refused(intents.LinkResumed, one) for one in ("east", "west")} == {"held_by_operator"}
    log.say(intents.LinkDeleted, "east", **LINKED)
    log.govern()
    assert refused(intents.LinkCreated, "east") == "held_by_operator"
    # another grant does not bring it back either
    story.answer(log, intents.AccessGranted, second_request(log))
    story.settle(log)
    assert log.image.links[story.LINK].desired is Desired.DELETED
    operator(intents.LinkCreated)
    assert not log.image.links[story.LINK].held
    log.say(intents.LinkPaused, "east", **LINKED)
    log.govern()
    assert refused(intents.LinkResumed, "east") == ""
