"""The fold of requests and grants: state 1 + event = state 2."""

from dataclasses import replace
from typing import TypeVar

import pytest

from mesh_events import facts, intents
from mesh_events.intents import OnRevoke
from projections import access
from projections.access import Access, Accesses, Place, State
from tests.memory_log import MemoryLog

Rights = TypeVar("Rights", facts.AclApplied, facts.AclRemoved)
LOG = MemoryLog(founded=False)
ASKED = LOG.make(
    intents.AccessRequested,
    "west",
    product="east.users",
    application="west.app",
    reason="to greet",
)
ID = ASKED.meta.id
PLACE = Place("two", "east.users", "east.users@two")
REQUESTED = access.requested(access.EMPTY, ASKED, PLACE, 10, 11, 1100)
GRANT = LOG.make(
    intents.AccessGranted,
    "east",
    product="east.users",
    request=ID,
    reason="fine",
    on_revoke=OnRevoke.RETAIN,
)
GRANTED = access.granted(REQUESTED, GRANT, 20, 2000)
REVOKE = LOG.make(
    intents.AccessRevoked, "west", product="east.users", request=ID, reason="done with it"
)


def fact(kind: type[Rights], generation: int, **changes: str) -> Rights:
    fields = {"subject": ID, "cluster": "two", **changes}
    return LOG.make(kind, "mesh", generation=generation, bindings=[], **fields)


ACTIVE = access.applied(GRANTED, fact(facts.AclApplied, 20), 21, 2100)
REVOKING = access.revoked(ACTIVE, REVOKE, 30, 3000)
REVOKED = access.removed(REVOKING, fact(facts.AclRemoved, 30), 31, 3100)


def only(accesses: Accesses) -> Access:
    return accesses.requests[ID]


def test_a_request_waits_for_the_owner() -> None:
    assert only(REQUESTED) == Access(
        request=ID,
        offset=10,
        product="east.users",
        application="west.app",
        cluster="two",
        topic="east.users",
        link="east.users@two",
        reason="to greet",
        requested_by="west.somebody",
        requested_at=1100,
        state=State.REQUESTED,
        generation=11,
        changed=11,
    )
    assert only(REQUESTED).consumer == "west"


def test_a_grant_entitles_from_the_decision_on() -> None:
    assert only(GRANTED) == replace(
        only(REQUESTED),
        state=State.GRANTED,
        generation=20,
        granted_generation=20,
        applying=(20,),
        changed=20,
        on_revoke=OnRevoke.RETAIN,
        decided_by="east.somebody",
        decided_at=2000,
        decision_reason="fine",
    )


def test_a_denial_closes_the_request() -> None:
    denial = LOG.make(
        intents.AccessDenied, "east", product="east.users", request=ID, reason="no need"
    )
    after = access.denied(REQUESTED, denial, 20, 2000)
    assert only(after) == replace(
        only(REQUESTED),
        state=State.DENIED,
        generation=20,
        changed=20,
        decided_by="east.somebody",
        decided_at=2000,
        decision_reason="no need",
    )
    assert after.open_for("east.users", "west.app") is None


def test_applied_rights_make_the_grant_active() -> None:
    assert only(ACTIVE) == replace(
        only(GRANTED),
        state=State.ACTIVE,
        active_at=2100,
        changed=21,
        applying=(),
        enforced=((2100, None),),
    )
    assert only(ACTIVE).is_enforced


def test_a_revocation_ends_the_entitlement_and_keeps_the_times() -> None:
    assert only(REVOKING) == replace(
        only(ACTIVE),
        state=State.REVOKING,
        generation=30,
        removing=(30,),
        changed=30,
        revoked_by="west.somebody",
        revoked_at=3000,
        revoke_reason="done with it",
    )


def test_removed_rights_end_the_enforcement() -> None:
    assert only(REVOKED) == replace(
        only(REVOKING),
        state=State.REVOKED,
        removing=(),
        removed_at=3100,
        changed=31,
        enforced=((2100, 3100),),
    )
    assert REVOKED.open_for("east.users", "west.app") is None


def test_rights_that_a_revocation_has_overtaken_were_enforced_all_the_same() -> None:
    overtaken = access.revoked(GRANTED, REVOKE, 30, 3000)
    late = access.applied(overtaken, fact(facts.AclApplied, 20), 31, 3050)
    assert (only(late).state, only(late).enforced) == (State.REVOKING, ((3050, None),))
    gone = access.removed(late, fact(facts.AclRemoved, 30), 32, 3100)
    assert (only(gone).state, only(gone).enforced) == (State.REVOKED, ((3050, 3100),))


def test_a_report_that_comes_after_the_rights_were_seen_gone_counts_for_nothing() -> None:
    revoked = access.revoked(GRANTED, REVOKE, 30, 3000)
    gone = access.removed(revoked, fact(facts.AclRemoved, 30), 31, 3100)
    late = access.applied(gone, fact(facts.AclApplied, 20), 32, 3200)
    assert late is gone
    assert (only(late).state, only(late).enforced) == (State.REVOKED, ())


def test_every_period_of_enforcement_is_remembered() -> None:
    away = access.suspended(ACTIVE, ACTIVE.of_link("east.users@two"), 40)
    assert (only(away).state, only(away).is_enforced) == (State.GRANTED, True)
    gone = access.removed(away, fact(facts.AclRemoved, 40), 41, 4100)
    assert (only(gone).state, only(gone).is_enforced) == (State.GRANTED, False)
    back = access.applied(gone, fact(facts.AclApplied, 40), 50, 5000)
    assert (only(back).state, only(back).enforced) == (State.ACTIVE, ((2100, 4100), (5000, None)))


def test_a_revocation_while_the_link_is_away_prolongs_nothing() -> None:
    away = access.suspended(ACTIVE, ACTIVE.of_link("east.users@two"), 40)
    gone = access.removed(away, fact(facts.AclRemoved, 40), 41, 4100)
    revoked = access.revoked(gone, REVOKE, 50, 5000)
    assert not only(revoked).is_enforced
    end = access.removed(revoked, fact(facts.AclRemoved, 50), 51, 5100)
    assert (only(end).state, only(end).enforced) == (State.REVOKED, ((2100, 4100),))


@pytest.mark.parametrize("before", ["ACTIVE", "REVOKING", "REVOKED"])
def test_a_copy_of_a_report_opens_no_second_period(before: str) -> None:
    state = {"ACTIVE": ACTIVE, "REVOKING": REVOKING, "REVOKED": REVOKED}[before]
    assert access.applied(state, fact(facts.AclApplied, 20), 99, 9900) is state


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        (REQUESTED, True),
        (GRANTED, True),
        (ACTIVE, True),
        (REVOKING, True),
        (REVOKED, False),
    ],
)
def test_a_request_is_open_until_its_rights_are_gone(state: Accesses, is_open: bool) -> None:
    found = state.open_for("east.users", "west.app")
    assert (found == only(state)) if is_open else (found is None)


@pytest.mark.parametrize(
    ("before", "event"),
    [
        (GRANTED, fact(facts.AclApplied, 19)),
        (GRANTED, fact(facts.AclApplied, 21)),
        (GRANTED, fact(facts.AclApplied, 20, cluster="one")),
        (GRANTED, fact(facts.AclApplied, 20, subject="nobody")),
        (REQUESTED, fact(facts.AclApplied, 11)),
        (REVOKING, fact(facts.AclApplied, 20)),
        (REVOKING, fact(facts.AclApplied, 30)),
        (REVOKED, fact(facts.AclApplied, 30)),
        (ACTIVE, fact(facts.AclApplied, 20)),
    ],
)
def test_rights_that_are_not_the_grants_change_nothing(
    before: Accesses, event: facts.AclApplied
) -> None:
    assert access.applied(before, event, 99, 9900) is before


@pytest.mark.parametrize(
    ("before", "event"),
    [
        (REVOKING, fact(facts.AclRemoved, 20)),
        (REVOKING, fact(facts.AclRemoved, 30, cluster="one")),
        (REVOKING, fact(facts.AclRemoved, 30, subject="nobody")),
        (ACTIVE, fact(facts.AclRemoved, 20)),
        (GRANTED, fact(facts.AclRemoved, 20)),
        (REVOKED, fact(facts.AclRemoved, 30)),
    ],
)
def test_removals_that_are_not_the_revocations_change_nothing(
    before: Accesses, event: facts.AclRemoved
) -> None:
    assert access.removed(before, event, 99, 9900) is before


def test_a_second_request_after_the_end_is_another_one() -> None:
    again = LOG.make(
        intents.AccessRequested,
        "west",
        product="east.users",
        application="west.app",
        reason="again",
    )
    after = access.requested(REVOKED, again, PLACE, 40, 41, 4100)
    assert only(after) == only(REVOKED)
    opened = after.open_for("east.users", "west.app")
    assert opened is not None
    assert opened.request == again.meta.id


def test_ending_one_request_does_not_close_another_of_the_same_application() -> None:
    again = LOG.make(
        intents.AccessRequested, "west", product="east.users", application="west.app", reason="b"
    )
    two = access.requested(REVOKING, again, PLACE, 40, 41, 4100)
    after = access.removed(two, fact(facts.AclRemoved, 30), 42, 4200)
    opened = after.open_for("east.users", "west.app")
    assert opened is not None
    assert opened.request == again.meta.id


def asked(by: str = "west.b") -> intents.AccessRequested:
    domain = by.split(".", maxsplit=1)[0]
    event = {"product": "east.users", "application": by, "reason": "b"}
    return LOG.make(intents.AccessRequested, domain, **event)


def test_a_link_is_asked_for_its_grants_oldest_first() -> None:
    other, at_home = asked(), asked("north.c")
    state = access.requested(GRANTED, other, PLACE, 8, 12, 1200)
    state = access.requested(state, at_home, Place("one", "east.users", None), 9, 13, 1300)
    for one, generation in ((at_home, 22), (other, 23)):
        grant = LOG.make(
            intents.AccessGranted, "east", product="east.users", request=one.meta.id, reason="fine"
        )
        state = access.granted(state, grant, generation, 2200)
    assert [found.request for found in state.of_link("east.users@two")] == [other.meta.id, ID]


def test_what_nobody_granted_is_not_found_by_its_link() -> None:
    """A domain may ask for a product again and again: each look at the link would see them all."""
    state = access.EMPTY
    for number in range(20):
        event = asked()
        state = access.requested(state, event, PLACE, number, number, 0)
        if number % 2:
            refused = LOG.make(
                intents.AccessDenied,
                "east",
                product="east.users",
                request=event.meta.id,
                reason="n",
            )
            state = access.denied(state, refused, 100 + number, 0)
    assert len(state.requests) == 20
    assert not state.by_link


@pytest.mark.parametrize("state", [GRANTED, ACTIVE, REVOKING, REVOKED])
def test_what_was_granted_is_found_by_its_link_for_good(state: Accesses) -> None:
    assert [one.request for one in state.of_link("east.users@two")] == [ID]


SUSPENDED = access.suspended(ACTIVE, [only(ACTIVE)], 40)
DENY = LOG.make(intents.AccessDenied, "east", product="east.users", request=ID, reason="not now")


@pytest.mark.parametrize(
    ("state", "entitles"),
    [
        (REQUESTED, False),
        (access.denied(REQUESTED, DENY, 20, 2000), False),
        (GRANTED, True),
        (ACTIVE, True),
        (SUSPENDED, True),
        (REVOKING, False),
        (REVOKED, False),
    ],
)
def test_what_entitles_its_reader_is_found_by_the_topic(state: Accesses, entitles: bool) -> None:
    found = [one.request for one in state.of_reader("west.app", "two", "east.users")]
    assert found == ([ID] if entitles else [])
    assert bool(state.entitled) is entitles
    for elsewhere in (
        ("west.other", "two", "east.users"),
        ("west.app", "one", "east.users"),
        ("west.app", "two", "east.user"),
    ):
        assert state.of_reader(*elsewhere) == []


def test_ended_grants_of_a_link_cost_nothing_but_the_last_of_each_policy() -> None:
    state, ids = ACTIVE, list[str]()
    for number in range(20):
        policy = (intents.OnRevoke.PURGE, intents.OnRevoke.RETAIN)[number % 2]
        one = replace(only(REVOKED), request=f"r{number}", offset=100 + number, on_revoke=policy)
        state = access.put(state, one)
        ids.append(one.request)
    assert [one.request for one in state.of_link("east.users@two")] == [ID, *ids[-2:]]
    assert [one.request for one in state.ever_of_link("east.users@two")] == [ID, *ids]
