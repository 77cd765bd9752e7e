"""The statements controller where a table is a copy that its link has not filled yet."""

from dataclasses import replace

import pytest
from immutables import Map

from mesh_events.rows import StatementState
from mesh_events.statements import StatementActivated, StatementFailed
from projections.access import EMPTY, put
from projections.links import Copy, Desired, Link
from projections.links import State as LinkIs
from tests.links.granted import access_by
from tests.statements.memory import NAME, MemoryStatement

USERS = "west.users"
LINK = Link(
    id="west.users@east",
    product="west.users",
    source_cluster="west",
    source_topic="west.users",
    cluster="east",
    topic=USERS,
    desired=Desired.RUNNING,
    state=LinkIs.ACTIVE,
    generation=0,
    created_generation=0,
    created_at=0,
    changed=0,
    changed_at=0,
    copy=Copy.PRESENT,
    positions=Map({"0": 10}),
    source_ends=Map({"0": 100}),
)


class Joined(MemoryStatement):
    """A statement that reads a copy as a table, beside its stream; nobody looks into the copy."""

    def __init__(self) -> None:
        super().__init__()
        self.make_copy()
        statement = replace(self.harness.statement, application="east.app", tables=(USERS,))
        self.change(statements=Map({NAME: statement}))

    def make_copy(self) -> None:
        self.east.delete_topic(USERS)
        self.east.create_topic(USERS, 1, {})
        self.link(destination_topic_id=self.east.topics[USERS].described.id)

    def link(self, **changes: object) -> None:
        """The log says something about the link."""
        known = self.harness.image.links.get(LINK.id, LINK)
        link = replace(known, **changes)  # type: ignore[arg-type]
        self.change(links=Map({link.id: link}), access=put(EMPTY, access_by(link, "east.app")))

    def change(self, **parts: object) -> None:
        at = self.harness.image.offset + 1
        self.harness.image = self.harness.image._replace(**parts, offset=at)  # type: ignore[arg-type]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Joined:
    # the text of the statement in memory has no join: what it reads is told by its tables alone
    monkeypatch.setattr(
        "processors.controllers.statements.statements.require_same", lambda *_: None
    )
    return Joined()


def failures(made: Joined) -> list[StatementFailed]:
    return made.harness.said(StatementFailed)


def test_no_statement_starts_over_a_copy_that_is_still_filled(made: Joined) -> None:
    made.produce("good")
    made.settle()
    assert made.engine.queries == []
    (fact,) = failures(made)
    assert (fact.code, fact.retriable) == ("table_filling", False)
    assert "the link west.users@east has not filled" in fact.reason
    made.link(positions=Map({"0": 100}))
    made.settle()
    assert made.harness.statement.state is StatementState.ACTIVE
    assert made.harness.statement.failure_code is None
    assert made.wrong() == []


def test_the_source_that_goes_on_growing_is_not_waited_for(made: Joined) -> None:
    made.link(positions=Map({"0": 100}))
    made.settle()
    assert made.harness.statement.is_active
    assert failures(made) == []


def test_a_worker_that_takes_over_waits_as_well_and_says_it_once(made: Joined) -> None:
    made.settle()
    made.controller = made.new_controller()
    made.settle()
    assert made.engine.queries == []
    assert len(failures(made)) == 1


def test_it_says_anew_why_it_waits_where_the_link_is_paused(made: Joined) -> None:
    made.settle()
    made.link(desired=Desired.PAUSED, state=LinkIs.PAUSED, paused_by="west")
    made.settle()
    assert "PAUSED by west" in failures(made)[-1].reason
    assert len(failures(made)) == 2
    made.link(positions=Map({"0": 11}))
    made.settle()
    assert len(failures(made)) == 2


def test_a_statement_that_runs_goes_on_while_the_link_catches_up_again(made: Joined) -> None:
    made.link(positions=Map({"0": 100}))
    made.settle()
    made.link(source_ends=Map({"0": 200}), incarnation=2)
    made.controller = made.new_controller()
    made.produce("good")
    made.settle()
    assert len(made.harness.said(StatementActivated)) == 1
    assert failures(made) == []
    assert made.wrong() == []


def test_a_statement_whose_server_died_waits_for_the_copy_again(made: Joined) -> None:
    made.link(positions=Map({"0": 100}))
    made.settle()
    made.link(source_ends=Map({"0": 200}), incarnation=2)
    made.engine.die()
    made.settle()
    assert made.harness.statement.failure_code == "table_filling"
    made.link(positions=Map({"0": 200}))
    made.settle()
    assert made.harness.statement.is_active


def test_over_a_copy_that_was_made_anew_it_stops_and_waits(made: Joined) -> None:
    made.link(positions=Map({"0": 100}))
    made.settle()
    made.make_copy()
    made.link(positions=Map(), source_ends=Map({"0": 100}))
    made.settle()
    assert made.engine.living() == []
    assert [one.code for one in failures(made)] == ["table_recreated", "table_filling"]
    made.link(positions=Map({"0": 100}))
    made.settle()
    assert made.harness.statement.is_active
    made.produce("good")
    made.settle()
    assert made.wrong() == []


def test_partitions_added_to_the_stream_start_nothing_over_a_copy_that_is_filled(
    made: Joined,
) -> None:
    made.link(positions=Map({"0": 100}))
    made.settle()
    made.link(source_ends=Map({"0": 200}), incarnation=2)
    made.east.add_partitions("east.clicks", 3)
    made.settle()
    assert len(made.harness.said(StatementActivated)) == 1
    assert made.engine.living() == []
    assert made.harness.statement.failure_code == "table_filling"


def test_what_is_decided_while_a_start_is_under_way_stops_it(made: Joined) -> None:
    made.link(positions=Map({"0": 100}))
    before = made.harness.image
    made.link(source_ends=Map(), positions=Map())
    made.controller.reconcile(before, made.harness)
    assert made.engine.queries == []
    assert failures(made)[-1].code == "table_filling"


def test_a_topic_that_is_not_the_one_the_link_fills_is_no_table(made: Joined) -> None:
    made.link(positions=Map({"0": 100}), destination_topic_id="another")
    made.settle()
    assert made.engine.queries == []
    assert {one.code for one in failures(made)} == {"table_recreated"}
    assert "not by its link west.users@east" in failures(made)[-1].reason
