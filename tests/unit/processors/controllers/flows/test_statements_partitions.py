"""Partitions that are added to a statement's stream, over a cluster and an engine in memory."""

from dataclasses import replace

import pytest

from mesh_events.statements import StatementActivated, StatementFailed
from processors.controllers.flows import starting
from processors.controllers.flows.flows import LOST
from processors.controllers.statements import statements as controller
from projections.links import Desired
from tests.statements.memory import DEAD, OUT, STREAM, MemoryStatement
from tests.unit.processors.controllers.flows.test_links_crashes import Crashes, DiedError
from tests.unit.processors.controllers.statements.test_statements import deleted

PLACES = ["statement-after-fence", "statement-after-tail", "statement-after-grant"]
TABLE = "east.users"
KINDS = ("good", "dead", "good", "less") * 3


@pytest.fixture
def made() -> MemoryStatement:
    found = MemoryStatement()
    found.produce(*KINDS)
    found.settle()
    return found


def grow(made: MemoryStatement, partitions: int) -> None:
    made.east.topics[STREAM].grow(partitions)
    made.produce(*KINDS)


def test_partitions_added_to_the_stream_are_added_to_both_topics(made: MemoryStatement) -> None:
    grow(made, 4)
    made.settle()
    assert {made.east.topics[name].described.partitions for name in (OUT, DEAD)} == {4}
    assert made.wrong() == []
    assert made.harness.said(StatementFailed) == []
    first, second = made.harness.said(StatementActivated)
    assert second.positions.keys() == {"0", "1", "2", "3"}
    assert second.destination_topic_id == first.destination_topic_id


@pytest.mark.parametrize("place", PLACES)
def test_a_restart_for_added_partitions_that_was_cut_off_is_made_up_for(
    place: str, made: MemoryStatement, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = Crashes()
    monkeypatch.setattr(starting, "crash_point", crashes)
    grow(made, 3)
    crashes.place = place
    with pytest.raises(DiedError):
        made.reconcile()
    made.controller = made.new_controller()
    made.settle()
    assert made.wrong() == []
    assert [fact.reason for fact in made.harness.said(StatementFailed)] == [LOST]


def test_added_partitions_are_read_when_a_stopped_statement_goes_on(made: MemoryStatement) -> None:
    made.harness.direct(Desired.PAUSED)
    made.settle()
    grow(made, 3)
    made.settle()
    assert made.east.topics[OUT].described.partitions == 2
    made.harness.direct(Desired.RUNNING)
    made.settle()
    assert made.wrong() == []


def test_added_partitions_whose_first_records_are_gone_are_a_gap(made: MemoryStatement) -> None:
    made.harness.direct(Desired.PAUSED)
    made.settle()
    grow(made, 3)
    made.east.topics[STREAM].partitions[2].expire(1)
    made.harness.direct(Desired.RUNNING)
    made.settle()
    (fault,) = made.harness.said(StatementFailed)
    assert fault.code == "source_gap"
    assert "partition 2" in fault.reason


def test_a_stream_that_grows_above_the_limit_stops_its_statement(made: MemoryStatement) -> None:
    made.controller = made.new_controller(3)
    grow(made, 4)
    made.settle()
    (fault,) = made.harness.said(StatementFailed)
    assert (fault.code, fault.retriable) == ("too_many_partitions", False)
    for part in (STREAM, "4 partitions", "at most 3", "SDM_STATEMENT_PARTITIONS"):
        assert part in fault.reason
    assert {made.east.topics[name].described.partitions for name in (OUT, DEAD)} == {2}
    assert made.engine.living() == []

    # a worker with a higher limit starts it where it stood
    made.controller = made.new_controller(4)
    made.settle()
    assert made.wrong() == []
    assert made.harness.statement.is_active


def test_without_free_slots_no_topic_of_a_statement_is_widened(made: MemoryStatement) -> None:
    made.engine.slots = 3
    grow(made, 4)
    made.settle()
    assert {fact.code for fact in made.harness.said(StatementFailed)} == {"engine_full"}
    assert {made.east.topics[name].described.partitions for name in (OUT, DEAD)} == {2}


def test_a_table_whose_rows_are_dealt_with_stops_where_it_gets_partitions(
    made: MemoryStatement,
) -> None:
    """A row's next record may stand in another partition, and the one before stays a row."""
    deleted(made)
    made.east.delete_topic(OUT)
    made.east.delete_topic(DEAD)
    made.harness.add(sql=f"SELECT ip FROM TABLE({STREAM})")
    made.settle()
    assert made.harness.statement.is_active
    grow(made, 4)
    made.settle()
    (fault,) = made.harness.said(StatementFailed)
    assert (fault.code, fault.retriable) == ("table_partitions_added", False)
    assert {made.east.topics[name].described.partitions for name in (OUT, DEAD)} == {2}


def test_a_table_above_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made = MemoryStatement()
    made.controller = made.new_controller(3)
    made.east.create_topic(TABLE, 4, {})
    monkeypatch.setattr(controller, "require_same", lambda *_: None)
    joined = replace(made.harness.statement, tables=(TABLE,))
    made.harness.image = made.harness.image._replace(
        statements=made.harness.image.statements.set(joined.id, joined)
    )
    made.settle()
    (fault,) = made.harness.said(StatementFailed)
    assert fault.code == "too_many_partitions"
    assert TABLE in fault.reason
    assert made.engine.queries == []


def test_a_table_that_gets_partitions_ends_the_statement_for_its_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = MemoryStatement()
    made.east.create_topic(TABLE, 2, {})
    # what the text says of the table is not looked at here
    monkeypatch.setattr(controller, "require_same", lambda *_: None)
    known = made.harness.statement
    joined = replace(known, tables=(TABLE,))
    made.harness.image = made.harness.image._replace(
        statements=made.harness.image.statements.set(known.id, joined)
    )
    made.produce("good", "good")
    made.settle()
    assert dict(made.harness.statement.table_partitions) == {TABLE: 2}
    made.east.topics[TABLE].grow(3)
    made.settle()
    (fault,) = made.harness.said(StatementFailed)
    assert (fault.code, fault.retriable) == ("table_partitions_added", False)
    assert TABLE in fault.reason
    assert made.engine.living() == []

    # a worker that was started anew knows it from the log
    made.harness.direct(Desired.PAUSED)
    made.settle()
    made.controller = made.new_controller()
    made.harness.direct(Desired.RUNNING)
    made.settle()
    assert [one.code for one in made.harness.said(StatementFailed)] == [
        "table_partitions_added"
    ] * 2
