"""The fold of links: state 1 + event = state 2."""

from dataclasses import replace

import pytest
from immutables import Map

from mesh_events import facts, intents
from mesh_events.intents import OnRevoke
from projections import links
from projections.links import Copy, Desired, Link, Links, State
from tests.memory_log import MemoryLog
from tests.unit.projections.test_catalog import USERS

LOG = MemoryLog(founded=False)
ID = "east.users@two"
CREATE = LOG.make(intents.LinkCreated, "mesh", product="east.users", cluster="two")
CREATED = links.created(links.EMPTY, CREATE, USERS, 10, 1000)


def fact(kind: type[facts.LinkFact], generation: int, **fields: object) -> facts.LinkFact:
    return LOG.make(kind, "mesh", link=ID, generation=generation, **fields)


def activation(generation: int, incarnation: int, **positions: int) -> facts.LinkFact:
    return fact(
        facts.LinkActivated,
        generation,
        incarnation=incarnation,
        principal=f"link-{incarnation}",
        run=f"run-{incarnation}",
        source_topic="east.users",
        source_topic_id="S",
        destination_topic="east.users",
        destination_topic_id="D",
        positions={name[1:]: position for name, position in positions.items()},
    )


def report(state: Links, event: facts.LinkFact, offset: int) -> Links:
    return links.reported(state, event, offset, offset * 100)


def failure(generation: int) -> facts.LinkFact:
    return fact(facts.LinkFailed, generation, code="gone", reason="no topic", retriable=True)


def purge(generation: int) -> facts.LinkFact:
    return fact(facts.CopyPurged, generation, topic="east.users", topic_id="D")


ACTIVE = report(CREATED, activation(10, 1, p0=5), 11)
PAUSING = links.redirected(ACTIVE, ID, Desired.PAUSED, 20, 2000)
DELETING = links.redirected(ACTIVE, ID, Desired.DELETED, 30, 3000, OnRevoke.PURGE)
PURGED = report(DELETING, purge(30), 31)


def test_a_created_link_knows_both_ends() -> None:
    assert CREATED[ID] == Link(
        id=ID,
        product="east.users",
        source_cluster="one",
        source_topic="east.users",
        cluster="two",
        topic="east.users",
        desired=Desired.RUNNING,
        state=State.CREATED,
        generation=10,
        created_generation=10,
        created_at=1000,
        changed=10,
        changed_at=1000,
    )


@pytest.mark.parametrize(("topic", "copy"), [("east.users", "east.users"), ("users", "east.users")])
def test_a_copy_carries_the_producing_domain_in_its_name(topic: str, copy: str) -> None:
    assert links.destination_topic(replace(USERS, topic=topic)) == copy


def test_an_activation_tells_who_writes_where_from_which_position() -> None:
    assert ACTIVE[ID] == replace(
        CREATED[ID],
        state=State.ACTIVE,
        copy=Copy.PRESENT,
        incarnation=1,
        principal="link-1",
        run="run-1",
        source_topic_id="S",
        destination_topic_id="D",
        positions=Map({"0": 5}),
        copied_from=1100,
        changed=11,
        changed_at=1100,
        told=ACTIVE[ID].told,
        activated=10,
    )
    assert len(ACTIVE[ID].told) == 1


def test_a_restart_is_another_incarnation_and_keeps_the_first_time() -> None:
    again = report(report(ACTIVE, failure(10), 12), activation(10, 2, p0=9), 13)[ID]
    assert (again.state, again.incarnation, again.principal) == (State.ACTIVE, 2, "link-2")
    assert (again.failure, again.failure_code, again.copied_from) == (None, None, 1100)


def test_a_late_report_of_an_older_incarnation_changes_nothing() -> None:
    """It would name the wrong writer, and the fence would shut out the wrong one."""
    second = report(ACTIVE, activation(10, 2), 12)
    assert report(second, activation(10, 1), 13) is second


def test_positions_only_go_forward() -> None:
    ahead = report(ACTIVE, fact(facts.LinkAdvanced, 10, positions={"0": 9, "1": 2}), 12)
    assert dict(ahead[ID].positions) == {"0": 9, "1": 2}
    assert report(ahead, fact(facts.LinkAdvanced, 10, positions={"0": 8, "1": 2}), 13) is ahead


@pytest.mark.parametrize(
    ("before", "event"),
    [
        (ACTIVE, activation(9, 2)),
        (ACTIVE, failure(9)),
        (ACTIVE, failure(11)),
        (ACTIVE, fact(facts.LinkAdvanced, 9, positions={"0": 99})),
        (PAUSING, activation(10, 2)),
        (PAUSING, activation(20, 2)),
        (PAUSING, fact(facts.LinkStopped, 10, positions={})),
        (ACTIVE, fact(facts.LinkStopped, 10, positions={"0": 99})),
        (ACTIVE, purge(10)),
        (PAUSING, purge(20)),
        (DELETING, purge(10)),
        (DELETING, fact(facts.CopyRetained, 10, topic="t", topic_id="D")),
        (PAUSING, fact(facts.CopyRetained, 20, topic="t", topic_id="D")),
        (ACTIVE, failure(10).model_copy(update={"link": "east.orders@two"})),
    ],
)
def test_reports_of_another_generation_or_intention_change_nothing(
    before: Links, event: facts.LinkFact
) -> None:
    assert report(before, event, 99) is before


def test_a_repeated_report_changes_nothing() -> None:
    paused = report(PAUSING, fact(facts.LinkStopped, 20, positions={"0": 9}), 21)
    failed = report(ACTIVE, failure(10), 12)
    assert report(ACTIVE, activation(10, 1, p0=5), 99) is ACTIVE
    assert report(paused, fact(facts.LinkStopped, 20, positions={"0": 9}), 99) is paused
    assert report(failed, failure(10), 99) is failed
    assert report(PURGED, purge(30), 99) is PURGED


def test_a_pause_lasts_until_the_link_is_resumed() -> None:
    assert PAUSING[ID] == replace(
        ACTIVE[ID],
        desired=Desired.PAUSED,
        state=State.PAUSING,
        generation=20,
        changed=20,
        changed_at=2000,
        told=(),
    )
    paused = report(PAUSING, fact(facts.LinkStopped, 20, positions={"0": 9}), 21)
    assert (paused[ID].state, paused[ID].positions) == (State.PAUSED, Map({"0": 9}))
    resumed = links.redirected(paused, ID, Desired.RUNNING, 22, 2200)
    assert (resumed[ID].desired, resumed[ID].state) == (Desired.RUNNING, State.CREATED)


def test_a_failure_is_forgotten_when_somebody_redirects_the_link() -> None:
    failed = report(ACTIVE, failure(10), 12)
    assert (failed[ID].state, failed[ID].failure_code) == (State.FAILED, "gone")
    after = links.redirected(failed, ID, Desired.PAUSED, 20, 2000)[ID]
    assert (after.state, after.failure, after.failure_code) == (State.PAUSING, None, None)


@pytest.mark.parametrize(
    ("desired", "end"),
    [
        (Desired.PAUSED, fact(facts.LinkStopped, 20, positions={})),
        (Desired.DELETED, purge(20)),
        (Desired.DELETED, fact(facts.CopyRetained, 20, topic="t", topic_id="d")),
    ],
)
def test_a_failure_on_the_way_to_an_end_is_over_with_it(
    desired: Desired, end: facts.LinkFact
) -> None:
    waiting = links.redirected(ACTIVE, ID, desired, 20, 2000)
    failed = report(waiting, failure(20), 21)
    assert failed[ID].failure_code == "gone"
    done = report(failed, end, 22)[ID]
    assert (done.failure, done.failure_code) == (None, None)


def test_a_removed_link_whose_copy_is_purged_tells_how_long_data_was_there() -> None:
    assert PURGED[ID] == replace(
        DELETING[ID],
        state=State.DELETED,
        copy=Copy.PURGED,
        copied_to=3100,
        changed=31,
        changed_at=3100,
        ended=PURGED[ID].ended,
        told=PURGED[ID].told,
    )


def test_a_stopped_link_is_removed_only_when_its_copy_is_dealt_with() -> None:
    stopped = report(DELETING, fact(facts.LinkStopped, 30, positions={"0": 9}), 31)
    assert (stopped[ID].state, stopped[ID].positions) == (State.DELETING, Map({"0": 9}))


def test_a_retained_copy_is_still_there() -> None:
    retained = report(DELETING, fact(facts.CopyRetained, 30, topic="t", topic_id="D"), 31)[ID]
    assert (retained.state, retained.copy, retained.copied_to) == (
        State.DELETED,
        Copy.RETAINED,
        None,
    )


def test_a_link_created_again_knows_its_past_writer() -> None:
    retained = report(DELETING, fact(facts.CopyRetained, 30, topic="t", topic_id="D"), 31)
    again = links.created(retained, CREATE, USERS, 40, 4000)[ID]
    assert (again.generation, again.created_generation, again.state) == (40, 40, State.CREATED)
    assert (again.incarnation, again.principal) == (1, "link-1")
    assert (again.copy, again.positions, again.destination_topic_id, again.copied_from) == (
        Copy.RETAINED,
        Map({"0": 5}),
        "D",
        1100,
    )


def test_a_link_created_after_a_purge_begins_with_an_empty_copy() -> None:
    again = links.created(PURGED, CREATE, USERS, 40, 4000)
    assert (again[ID].positions, again[ID].destination_topic_id) == (Map(), None)
    running = report(again, activation(40, 2), 41)[ID]
    assert (running.copied_from, running.copied_to) == (4100, None)


def test_a_copy_of_an_old_report_does_not_turn_the_state_back() -> None:
    """Anybody who may write to the log can append a signed record again."""
    broken = failure(10)
    failed = report(ACTIVE, broken, 12)
    mended = report(failed, activation(10, 2, p0=9), 13)
    assert mended[ID].state is State.ACTIVE
    assert report(mended, broken, 14) == mended


def test_positions_of_a_deleted_copy_say_nothing_about_a_new_one() -> None:
    """A removal was overtaken by a new grant; the copy is made anew under another topic id."""
    again = links.created(DELETING, CREATE, USERS, 40, 4000)
    event = activation(40, 2, p0=0)
    fresh = report(again, event.model_copy(update={"destination_topic_id": "E"}), 41)
    assert fresh[ID].positions == Map({"0": 0})
