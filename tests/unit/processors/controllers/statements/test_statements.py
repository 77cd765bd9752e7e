"""The statements controller over a cluster and an engine in memory, dying wherever it can."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_events.rows import StatementState
from mesh_events.statements import (
    Begin,
    StatementActivated,
    StatementAdded,
    StatementAdvanced,
    StatementFailed,
    StatementHalted,
)
from processors.clusters.rights import Binding, Operation, Resource
from processors.controllers.checks.findings import destination_free
from processors.controllers.flows import starting
from processors.controllers.flows.fence import is_writer
from processors.controllers.flows.flows import LOST
from processors.controllers.statements import statements as controller
from processors.controllers.statements import stopping
from projections.links import Desired
from spark_streams.errors import EngineError
from spark_streams.sql.errors import Place, SqlError
from tests.statements.memory import CLICK, DEAD, NAME, OUT, STREAM, MemoryStatement
from tests.unit.processors.controllers.flows.test_links_crashes import Crashes, DiedError

PLACES = [
    "statement-after-fence",
    "statement-after-tail",
    "statement-after-grant",
    "statement-after-start",
    "statement-after-stop",
]


@pytest.fixture
def made() -> MemoryStatement:
    return MemoryStatement()


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Crashes:
    found = Crashes()
    monkeypatch.setattr(starting, "crash_point", found)
    monkeypatch.setattr(stopping, "crash_point", found)
    return found


def codes(made: MemoryStatement) -> list[str]:
    found = made.harness.said(StatementFailed)
    return [fact.code for fact in found if fact.reason != LOST]


def test_good_records_come_out_and_the_dead_lie_apart(made: MemoryStatement) -> None:
    made.produce("good", "good", "dead", "less", "good", "dead")
    made.settle()
    assert made.wrong() == []
    (fact,) = made.harness.said(StatementActivated)
    assert (fact.incarnation, fact.schema_id, fact.positions) == (1, 9, {"0": 0, "1": 0})
    assert is_writer(fact.principal, NAME)
    assert {one.principal for one in made.east.bindings} == {fact.principal}
    assert made.registry.versions(f"{OUT}-value") == {9: json.dumps(CLICK)}


def test_a_topic_that_is_ahead_of_the_other_takes_nothing_from_it(made: MemoryStatement) -> None:
    """A dead letter had not landed when a good record behind it had: it is read again."""
    made.produce("good", "good", "dead", "dead", "good", "good")
    made.reconcile()
    made.engine.take()
    made.engine.land(OUT)
    made.engine.die()
    for query in made.engine.queries:
        query.buffers[DEAD].clear()
    made.settle()
    assert made.wrong() == []


def test_where_a_batch_ended_is_where_the_next_start_reads_from(made: MemoryStatement) -> None:
    made.produce(*["less"] * 6)
    made.settle()
    assert made.harness.said(StatementAdvanced)[-1].positions == {"0": 3, "1": 3}
    made.engine.die()
    # reported in one look, started in the next one
    made.reconcile()
    made.reconcile()
    assert made.engine.queries[-1].spec.start == {0: 3, 1: 3}
    # what is behind the floor may go
    for partition in made.east.topics[STREAM].partitions:
        partition.expire(3)
    made.engine.die()
    # reported in one look, started in the next one
    made.reconcile()
    made.reconcile()
    assert codes(made) == []


def test_records_that_are_gone_before_they_were_read_close_it(made: MemoryStatement) -> None:
    made.produce("good", "good")
    made.settle()
    made.harness.direct(Desired.PAUSED)
    made.settle()
    made.produce("good", "good")
    for partition in made.east.topics[STREAM].partitions:
        partition.expire(2)
    made.harness.direct(Desired.RUNNING)
    made.settle()
    assert codes(made) == ["source_gap"]
    assert made.east.bindings == set()


def test_who_begins_at_the_latest_goes_on_from_there_after_a_crash(
    made: MemoryStatement, crashes: Crashes
) -> None:
    made.produce("good", "good")
    made.harness.add(begin=Begin.LATEST, **{"end/0": "1", "end/1": "1"})
    crashes.place = "statement-after-start"
    look(made)
    made.produce("good", "good")
    made.engine.die()
    made.settle()
    out = made.east.topics[OUT].partitions
    assert [len(one.records) for one in out] == [1, 1]


def test_a_statement_that_is_dropped_leaves_its_topic(made: MemoryStatement) -> None:
    made.produce("good")
    made.settle()
    made.harness.direct(Desired.DELETED)
    made.settle()
    assert made.harness.statement.state is StatementState.DELETED
    assert len(made.harness.said(StatementHalted)) == 1
    assert made.east.bindings == set()
    assert OUT in made.east.topics


def deleted(made: MemoryStatement) -> None:
    made.harness.direct(Desired.DELETED)
    made.settle()
    assert made.harness.statement.is_over


def test_one_that_was_dropped_comes_back_to_its_topics_and_goes_on(made: MemoryStatement) -> None:
    made.produce("good", "dead", "good", "less")
    made.settle()
    deleted(made)
    made.produce("good", "dead")
    found = made.harness.come_back(made.east)
    assert found.evidence["found"] == "what it filled before"
    ends = {name: end for name, end in found.evidence.items() if "/" in name}
    begins = {"begin/0": "0", "begin/1": "0"}
    assert ends == {**begins, "end/0": "2", "end/1": "0", "dead/0": "0", "dead/1": "1"}
    made.settle()
    assert made.wrong() == []
    assert made.harness.statement.incarnation == 2


def test_it_comes_back_to_a_stream_that_was_made_again(made: MemoryStatement) -> None:
    made.produce("good", "good", "dead", "dead")
    made.settle()
    made.east.delete_topic(STREAM)
    made.east.create_topic(STREAM, 2, {})
    made.produce("good", "good", "good", "dead")
    made.settle()
    assert codes(made) == ["source_recreated"]
    deleted(made)
    assert made.harness.come_back(made.east).code == ""
    made.settle()
    assert codes(made) == ["source_recreated"]
    out, dead = (made.east.topics[name].partitions for name in (OUT, DEAD))
    assert [len(one.records) for one in out] == [3, 2]
    assert [len(one.records) for one in dead] == [1, 2]
    # and a start of this life finds what this life has written
    made.engine.die()
    made.settle()
    assert [len(one.records) for one in out] == [3, 2]


def test_it_comes_back_to_a_stream_that_was_made_again_and_begins_later(
    made: MemoryStatement,
) -> None:
    made.produce("good", "good")
    made.settle()
    deleted(made)
    made.east.delete_topic(STREAM)
    made.east.create_topic(STREAM, 2, {})
    made.produce("good", "good", "good", "good")
    for partition in made.east.topics[STREAM].partitions:
        partition.expire(1)
    assert made.harness.come_back(made.east).code == ""
    made.settle()
    assert codes(made) == []
    out = made.east.topics[OUT].partitions
    assert [len(one.records) for one in out] == [2, 2]


def test_it_comes_back_where_somebody_else_has_written(made: MemoryStatement) -> None:
    made.produce("good", "good")
    made.settle()
    made.harness.direct(Desired.PAUSED)
    made.settle()
    for partition in made.east.topics[OUT].partitions:
        partition.append(b"strange")
    made.harness.direct(Desired.RUNNING)
    made.settle()
    assert codes(made) == ["destination_foreign"]
    deleted(made)
    made.harness.come_back(made.east)
    made.produce("good", "good")
    made.settle()
    assert codes(made) == ["destination_foreign"]
    for partition in made.east.topics[OUT].partitions:
        assert [key[:4] for key, _ in partition.records.values()] == [b"good", b"stra", b"good"]


def test_it_comes_back_behind_a_gap_that_it_cannot_close(made: MemoryStatement) -> None:
    made.produce("good", "good")
    made.settle()
    made.harness.direct(Desired.PAUSED)
    made.settle()
    made.produce("good", "good", "good", "good")
    for partition in made.east.topics[STREAM].partitions:
        partition.expire(2)
    made.harness.direct(Desired.RUNNING)
    made.settle()
    assert codes(made) == ["source_gap"]
    deleted(made)
    made.harness.come_back(made.east)
    made.settle()
    assert codes(made) == ["source_gap"]
    assert [len(one.records) for one in made.east.topics[OUT].partitions] == [2, 2]


def test_a_stream_that_lost_records_is_gone_on_with_from_its_latest(made: MemoryStatement) -> None:
    made.produce("good", "good", "good", "good")
    made.settle()
    for partition in made.east.topics[STREAM].partitions:
        partition.cut(1)
    made.engine.die()
    made.settle()
    assert codes(made) == ["source_truncated"]
    deleted(made)
    made.harness.come_back(made.east, Begin.LATEST)
    made.settle()
    made.produce("good", "good")
    made.settle()
    assert codes(made) == ["source_truncated"]
    assert [len(one.records) for one in made.east.topics[OUT].partitions] == [3, 3]


def test_a_life_in_between_that_never_ran_forgets_nothing(made: MemoryStatement) -> None:
    made.produce("good", "dead", "good", "good")
    made.settle()
    deleted(made)
    for topic in (OUT, DEAD):
        for partition in made.east.topics[topic].partitions:
            partition.expire(partition.end)
    made.harness.come_back(made.east)
    made.engine.start = refusing  # type: ignore[method-assign]
    made.settle()
    assert "engine_full" in codes(made)
    deleted(made)
    del made.engine.start  # type: ignore[method-assign]
    made.harness.come_back(made.east)
    made.produce("good", "dead")
    made.settle()
    out, dead = (made.east.topics[name].partitions for name in (OUT, DEAD))
    assert (sum(len(one.records) for one in out), sum(len(one.records) for one in dead)) == (1, 1)


def test_from_the_latest_on_every_later_record_comes_out(made: MemoryStatement) -> None:
    """Also where the stream was cut off, and grows past what was dealt with before it starts."""
    made.produce("good", "good", "good", "good")
    made.settle()
    deleted(made)
    for partition in made.east.topics[STREAM].partitions:
        partition.cut(1)
    made.harness.come_back(made.east, Begin.LATEST)
    made.produce(*["good"] * 6)
    made.engine.die()
    made.settle()
    assert [len(one.records) for one in made.east.topics[OUT].partitions] == [5, 5]


def test_a_destination_that_goes_before_it_comes_back_is_told(made: MemoryStatement) -> None:
    made.produce("good", "good")
    made.settle()
    deleted(made)
    made.harness.come_back(made.east)
    made.east.delete_topic(OUT)
    made.settle()
    assert codes(made) == ["destination_lost"]
    deleted(made)
    made.east.delete_topic(DEAD)
    made.harness.come_back(made.east)
    made.settle()
    assert made.wrong() == []


def test_a_table_comes_back_only_as_it_was(made: MemoryStatement) -> None:
    table = f"SELECT ip FROM TABLE({STREAM})"
    made.produce("good", "good")
    made.settle()
    deleted(made)
    assert made.harness.come_back(made.east, sql=table).code == "rows_differ"
    made.east.delete_topic(OUT)
    made.east.delete_topic(DEAD)
    made.harness.add(sql=table)
    made.settle()
    deleted(made)
    differs = made.harness.come_back(made.east, sql=f"{table} WHERE ip = 'x'")
    assert differs.code == "rows_differ"
    assert "made with another text" in differs.reason
    assert f"delete {OUT} and {DEAD}" in differs.reason
    assert made.harness.come_back(made.east, sql="SELECT ip FROM east.clicks").code == "rows_differ"
    assert made.harness.come_back(made.east).code == ""
    made.settle()
    assert made.wrong() == []
    deleted(made)
    made.produce("good", "good")
    for partition in made.east.topics[STREAM].partitions:
        partition.expire(2)
    differs = made.harness.come_back(made.east)
    assert differs.code == "rows_differ"
    assert f"before {STREAM} lost records" in differs.reason
    made.east.delete_topic(STREAM)
    made.east.create_topic(STREAM, 2, {})
    assert (
        f"of a topic {STREAM} that is not the present one"
        in made.harness.come_back(made.east).reason
    )


def test_it_goes_on_with_the_same_stream_alone_and_in_its_own_topic(made: MemoryStatement) -> None:
    made.produce("good")
    made.settle()
    deleted(made)
    other = StatementAdded(
        meta=made.harness.meta(NAME, "other", 0, correlation=NAME), statement=NAME, sql="",
        stream="east.others", destination=OUT,
    )  # fmt: skip
    found = destination_free(other, made.east, made.harness.statement, made.east, made.east)
    assert (found.code, "east.others" in found.reason) == ("stream_differs", True)
    made.east.delete_topic(OUT)
    assert made.harness.come_back(made.east).evidence["topic"] == DEAD
    made.east.create_topic(OUT, 2, {})
    assert made.harness.come_back(made.east).code == "target_taken"


def test_a_grant_that_ends_while_it_starts_is_noticed_before_anything_is_read(
    made: MemoryStatement,
) -> None:
    made.produce("good")
    made.harness.quarantine(on=True)
    cut = made.harness.image
    made.harness.quarantine(on=False)
    made.latest = lambda: cut
    made.reconcile()
    assert made.engine.queries == []
    assert made.east.bindings == {
        one for one in made.east.bindings if one.operation is Operation.DESCRIBE
    }
    assert codes(made) == ["domain_quarantined"]


def test_a_grant_that_ends_while_a_start_is_planned_is_given_no_right(
    made: MemoryStatement,
) -> None:
    made.produce("good")
    made.harness.quarantine(on=True)
    cut = made.harness.image
    made.harness.quarantine(on=False)
    room, grant = made.engine.require_room, made.east.grant
    rights: list[Binding] = []

    def ends(*about: Any) -> None:
        made.latest = lambda: cut
        room(*about)

    def noted(wanted: Sequence[Binding]) -> None:
        rights.extend(wanted)
        grant(wanted)

    made.engine.require_room = ends  # type: ignore[method-assign]
    made.east.grant = noted  # type: ignore[method-assign]
    made.reconcile()
    assert rights == []
    assert codes(made) == ["domain_quarantined"]


def test_a_quarantine_ends_it_and_a_release_lets_it_go_on(made: MemoryStatement) -> None:
    made.produce("good")
    made.settle()
    made.harness.quarantine(on=True)
    made.settle()
    assert codes(made) == ["domain_quarantined"]
    assert made.east.bindings == set()
    made.produce("good")
    made.settle()
    assert len(made.engine.living()) == 0
    made.harness.quarantine(on=False)
    made.settle()
    assert made.wrong() == []
    # its start takes a while, in which it is not in quarantine any more
    assert codes(made) == ["domain_quarantined", "engine_starting"]


def test_after_a_release_it_is_looked_at_like_any_other(made: MemoryStatement) -> None:
    """It was waited for without an end: a query that died then was never started again."""
    made.settle()
    made.harness.quarantine(on=True)
    made.settle()
    made.harness.quarantine(on=False)
    made.settle()
    made.engine.die()
    made.produce("good")
    made.settle()
    assert made.wrong() == []


def test_what_spark_refuses_is_for_a_person_and_makes_nothing(made: MemoryStatement) -> None:
    made.engine.refusal = SqlError("wrong_type", "no such operator", Place(1, 8))
    made.settle()
    assert codes(made) == ["wrong_type"]
    assert OUT not in made.east.topics
    assert made.east.bindings == set()


@pytest.mark.parametrize("comes_back", [False, True])
def test_rows_that_would_be_others_by_a_new_schema_stop_a_table(
    made: MemoryStatement, *, comes_back: bool
) -> None:
    table = f"SELECT * FROM TABLE({STREAM})"
    made.harness.add(sql=table)
    made.produce("good", "good")
    made.settle()
    renamed = {**CLICK, "fields": [{"name": "host", "type": "string", "aliases": ["ip"]}]}
    made.registry.subjects[f"{STREAM}-value"][8] = json.dumps(renamed)
    if comes_back:
        deleted(made)
        assert made.harness.come_back(made.east, sql=table).code == ""
    else:
        made.controller = made.new_controller()
        made.engine.die()
    made.settle()
    fault = made.harness.said(StatementFailed)[-1]
    assert (fault.code, fault.retriable) == ("rows_differ", False)
    assert "Click.host is ip of earlier records" in fault.reason
    assert made.engine.living() == []


def test_a_schema_that_is_missing_is_waited_for(made: MemoryStatement) -> None:
    subject = f"{STREAM}-value"
    schemas = made.registry.subjects.pop(subject)
    made.settle()
    assert codes(made) == ["no_schema"]
    made.registry.subjects[subject] = schemas
    made.produce("good")
    made.settle()
    assert made.wrong() == []


def test_what_an_earlier_text_read_is_fenced_as_well(made: MemoryStatement) -> None:
    """Rights are sought on the whole cluster: an update may have deleted a table meanwhile."""
    made.settle()
    left = Binding(f"mesh.sql.{NAME}.0123abcd", Operation.READ, Resource.TOPIC, "east.old-table")
    other = Binding("mesh.sql.east.other.0123abcd", Operation.READ, Resource.TOPIC, STREAM)
    made.east.bindings |= {left, other}
    made.harness.direct(Desired.PAUSED)
    made.settle()
    assert made.east.bindings == {other}


def test_a_failure_after_it_stood_still_is_overcome(made: MemoryStatement) -> None:
    made.settle()
    made.harness.direct(Desired.PAUSED)
    made.settle()
    statement = made.harness.statement
    fault = {"statement": NAME, "generation": statement.generation, "retriable": True}
    made.harness.report(
        StatementFailed(
            meta=made.harness.meta(NAME, "late", 0, correlation=NAME), code="c", reason="r", **fault
        )
    )
    assert made.harness.statement.state is StatementState.FAILED
    made.settle()
    assert made.harness.statement.state is StatementState.STOPPED
    assert len(made.harness.said(StatementHalted)) == 2


def test_what_never_ran_leaves_no_mark_when_it_is_dropped(made: MemoryStatement) -> None:
    made.engine.down = True
    made.settle()
    made.engine.down = False
    made.engine.start = refusing  # type: ignore[method-assign]
    made.settle()
    assert OUT in made.east.topics
    made.harness.direct(Desired.DELETED)
    made.settle()
    assert made.harness.statement.state is StatementState.DELETED
    assert made.east.bindings == set()


def refusing(_: object) -> None:
    raise EngineError("engine_full", "no slot is free")


def test_a_quarantine_does_not_wait_for_the_next_try(made: MemoryStatement) -> None:
    made.settle()
    table = made.east.topics.pop(STREAM)
    made.harness.direct(Desired.PAUSED)
    made.harness.direct(Desired.RUNNING)
    made.controller = made.new_controller(retry_first=1000, retry_most=1000)
    made.reconcile()
    assert codes(made) == ["source_missing"]
    made.east.topics[STREAM] = table
    made.harness.quarantine(on=True)
    made.reconcile()
    assert codes(made) == ["source_missing", "domain_quarantined"]


def test_what_nobody_thought_of_is_told_and_tried_again(
    made: MemoryStatement, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StopIteration

    with monkeypatch.context() as patch:
        patch.setattr(controller, "planned", broken)
        made.settle()
    assert codes(made) == ["unexpected_error"]
    made.produce("good")
    made.settle()
    assert made.wrong() == []


def test_a_dead_letter_topic_with_other_partitions_is_named(made: MemoryStatement) -> None:
    made.settle()
    made.harness.direct(Desired.PAUSED)
    made.settle()
    made.east.topics.pop(DEAD)
    made.east.create_topic(DEAD, 3, {})
    made.harness.direct(Desired.RUNNING)
    made.settle()
    assert codes(made) == ["partitions_differ"]
    assert DEAD in made.harness.said(StatementFailed)[0].reason


def test_topics_that_are_emptied_while_it_stands_still_are_not_filled_again(
    made: MemoryStatement,
) -> None:
    made.reconcile()
    made.produce("good", "good", "dead", "dead", "good", "good")
    made.engine.take()
    for topic in (OUT, DEAD):
        made.engine.land(topic)
    made.harness.direct(Desired.PAUSED)
    made.reconcile()
    halted = made.harness.said(StatementHalted)[-1]
    assert (halted.written, halted.dead) == ({"0": 3, "1": 3}, {"0": 2, "1": 2})
    for topic in (OUT, DEAD):
        for partition in made.east.topics[topic].partitions:
            partition.expire(partition.end)
    made.harness.direct(Desired.RUNNING)
    made.produce("good")
    made.settle()
    assert sum(len(one.records) for one in made.east.topics[OUT].partitions) == 1
    assert sum(len(one.records) for one in made.east.topics[DEAD].partitions) == 0


def test_another_query_of_the_same_statement_is_ended(made: MemoryStatement) -> None:
    made.settle()
    made.engine.queries.append(made.engine.queries[-1])
    made.settle()
    assert len(made.engine.living()) == 1


def look(made: MemoryStatement) -> None:
    """Let the controller look; a worker that dies is followed by another one."""
    try:
        made.reconcile()
    except DiedError:
        made.controller = made.new_controller()


STEPS = (
    ["good", "dead", "less", "stop", "start", "commit", "drop", "add", "update", "registry"]
    # the rest has to come often, and in the right order, for anything to go wrong
    + ["take", "out", "dead letters", "die"] * 2
)

KINDS = st.sampled_from(["good", "dead", "less"])


@settings(max_examples=400)
@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.sampled_from([None, None, *PLACES])),
        min_size=6,
        max_size=40,
    )
)
def test_whatever_happens_in_whatever_order_each_record_is_dealt_with_once(
    steps: list[tuple[str, str | None]],
) -> None:
    crashes = Crashes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starting, "crash_point", crashes)
        patch.setattr(stopping, "crash_point", crashes)
        made = MemoryStatement()
        for step, place in steps:
            happen(made, step)
            crashes.place = place
            look(made)
            assert made.wrong(complete=False) == []
        crashes.place = None
        made.registry.down = False
        made.settle(2)
        happen(made, "start")
        happen(made, "add")
        made.settle(8)
        assert made.wrong() == []


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from([*STEPS, "turn", "turn"]), st.integers(0, 30), KINDS),
        min_size=6,
        max_size=40,
    )
)
def test_whatever_a_record_becomes_by_then_it_is_written_once(
    steps: list[tuple[str, int, str]],
) -> None:
    """The row of a table may be another one whenever a record is read again."""
    made = MemoryStatement(partitions=1)
    passed_over: set[bytes] = set()
    for step, number, kind in steps:
        if step == "turn":
            turn(made, number, kind)
        happen(made, step)
        look(made)
        passed_over |= {key for key in stream(made) if made.engine.kind_of(key) == "less"}
        assert made.twice() == []
    made.registry.down = False
    made.settle(2)
    happen(made, "start")
    happen(made, "add")
    made.settle(8)
    assert made.twice(*(set(stream(made)) - passed_over)) == []


def stream(made: MemoryStatement) -> list[bytes]:
    return made.keys(STREAM)


def turn(made: MemoryStatement, number: int, kind: str) -> None:
    """A record becomes another thing from now on."""
    if number < len(found := stream(made)):
        made.engine.verdicts[found[number]] = kind


def crashed(made: MemoryStatement, ahead: str, behind: str, number: int = 1) -> None:
    """The records were taken, and all of one topic was written, but few of the other."""
    made.reconcile()
    made.engine.take()
    made.engine.land(ahead)
    made.engine.land(behind, number)
    lose(made)


def lose(made: MemoryStatement) -> None:
    """Spark is killed with all that it had not sent."""
    made.engine.die()
    for query in made.engine.queries:
        for buffer in query.buffers.values():
            buffer.clear()


@pytest.fixture
def alone() -> MemoryStatement:
    return MemoryStatement(partitions=1)


def test_what_would_be_a_dead_letter_by_now_is_not_lost_where_they_are_ahead(
    alone: MemoryStatement,
) -> None:
    alone.produce("good", "good", "good", "dead")
    crashed(alone, ahead=DEAD, behind=OUT)
    turn(alone, 1, "dead")
    alone.settle()
    assert alone.keys(OUT) == [b"good.0", b"good.2"]
    assert alone.keys(DEAD) == [b"dead.3", b"good.1"]


def test_what_would_be_a_result_by_now_is_not_lost_where_they_are_ahead(
    alone: MemoryStatement,
) -> None:
    """Nor is it put behind later ones, by which the statement finds where to go on."""
    alone.produce("dead", "dead", "dead", "good")
    crashed(alone, ahead=OUT, behind=DEAD)
    turn(alone, 1, "good")
    alone.settle()
    assert alone.keys(OUT) == [b"good.3"]
    assert alone.keys(DEAD) == [b"dead.0", b"dead.1", b"dead.2"]


@pytest.mark.parametrize(("ahead", "behind", "kind"), [(OUT, DEAD, "good"), (DEAD, OUT, "dead")])
def test_what_was_written_stays_alone_whatever_it_would_be_by_now(
    alone: MemoryStatement, ahead: str, behind: str, kind: str
) -> None:
    other = {"good": "dead", "dead": "good"}[kind]
    alone.produce(other, kind, other, kind)
    crashed(alone, ahead, behind)
    turn(alone, 1, other)
    turn(alone, 3, "less")
    alone.settle()
    assert alone.keys(ahead) == [f"{kind}.1".encode(), f"{kind}.3".encode()]
    assert alone.keys(behind) == [f"{other}.0".encode(), f"{other}.2".encode()]


def test_a_second_crash_finds_dead_letters_behind_later_ones(alone: MemoryStatement) -> None:
    alone.produce("good", "good", "good", "dead", "dead")
    crashed(alone, ahead=DEAD, behind=OUT)
    for number in (1, 2):
        turn(alone, number, "dead")
    alone.reconcile()
    alone.reconcile()
    alone.engine.take()
    alone.engine.land(DEAD, 1)
    lose(alone)
    assert alone.keys(DEAD) == [b"dead.3", b"dead.4", b"good.1"]
    turn(alone, 1, "good")
    alone.settle()
    assert alone.keys(DEAD) == [b"dead.3", b"dead.4", b"good.1", b"good.2"]
    assert alone.keys(OUT) == [b"good.0"]


def add_again(made: MemoryStatement) -> None:
    """As a person does: what the log does not know as the statement's has to be deleted."""
    if made.harness.come_back(made.east).code == "target_taken":
        for topic in (OUT, DEAD):
            made.east.delete_topic(topic)
        made.harness.add()


def happen(made: MemoryStatement, step: str) -> None:
    statement = made.harness.statement
    match step:
        case "good" | "dead" | "less":
            made.produce(step, step, step)
        case "stop" if statement.desired is Desired.RUNNING:
            made.harness.direct(Desired.PAUSED)
        case "start" if statement.desired is Desired.PAUSED:
            made.harness.direct(Desired.RUNNING)
        case "drop" if statement.stands:
            made.harness.direct(Desired.DELETED)
        case "add" if statement.is_over:
            add_again(made)
        case "update" if statement.stands:
            made.harness.update(
                f"SELECT ip FROM {STREAM} WHERE ip <> '{made.harness.image.offset}'"
            )
        case "registry":
            made.registry.down = not made.registry.down
        case _:
            run(made, step)


def run(made: MemoryStatement, step: str) -> None:
    match step:
        case "take":
            made.engine.take()
        case "out":
            made.engine.land(OUT, 1)
        case "dead letters":
            made.engine.land(DEAD, 1)
        case "commit":
            made.engine.commit()
        case "die":
            made.engine.die()
