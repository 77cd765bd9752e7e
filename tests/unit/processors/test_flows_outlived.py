"""What ran before the last word on a flow ends with the first failure of what it asks for."""

from collections.abc import Callable

import pytest

from mesh_events.errors import InfrastructureError
from mesh_events.facts import LinkFailed
from mesh_events.statements import StatementFailed
from processors.clusters.rights import Operation
from processors.controllers.flows import starting
from projections.lineage.readers import RUNS_ON
from projections.links import Desired
from spark_streams.engine import CopySpec
from spark_streams.errors import EngineError
from tests.links.memory import MemoryLink
from tests.statements.memory import DEAD, NAME, OUT, STREAM, MemoryStatement
from tests.unit.processors.controllers.flows.test_links_crashes import Crashes, DiedError

NEW = f"SELECT ip FROM {STREAM} WHERE ip = 'x'"
Restore = Callable[[], None]


@pytest.fixture
def made() -> MemoryStatement:
    """A statement that runs, and has read what it has not written yet."""
    made = MemoryStatement()
    made.produce("good", "good")
    made.settle()
    made.produce("good", "good")
    made.engine.take()
    return made


def codes(made: MemoryStatement) -> list[str]:
    return [fact.code for fact in made.harness.said(StatementFailed)]


def came_out(made: MemoryStatement) -> int:
    """How much there is once the engine has done all that it can."""
    made.produce("good", "good")
    made.engine.move()
    return sum(len(made.keys(topic, number)) for topic in (OUT, DEAD) for number in (0, 1))


def may(made: MemoryStatement, operation: Operation) -> bool:
    return any(one.operation is operation for one in made.east.bindings)


def stops(made: MemoryStatement) -> list[str]:
    """What the engine is told to stop, and does not."""
    asked = list[str]()
    made.engine.stop = asked.append  # type: ignore[method-assign]
    return asked


def registry_away(made: MemoryStatement) -> Restore:
    made.registry.down = True

    def restore() -> None:
        made.registry.down = False

    return restore


def no_schema(made: MemoryStatement) -> Restore:
    found = made.registry.subjects.pop(f"{STREAM}-value")

    def restore() -> None:
        made.registry.subjects[f"{STREAM}-value"] = found

    return restore


def engine_full(made: MemoryStatement) -> Restore:
    made.engine.slots = 0

    def restore() -> None:
        made.engine.slots = 512

    return restore


def engine_away(made: MemoryStatement) -> Restore:
    made.engine.down = True

    def restore() -> None:
        made.engine.down = False

    return restore


def spark_refuses(made: MemoryStatement) -> Restore:
    made.engine.refusal = EngineError("query_failed", "the session is gone")

    def restore() -> None:
        made.engine.refusal = None

    return restore


FAULTS = {
    "cluster_unavailable": registry_away,
    "no_schema": no_schema,
    "engine_full": engine_full,
    "engine_unavailable": engine_away,
    "query_failed": spark_refuses,
}


@pytest.mark.parametrize("code", FAULTS)
def test_an_old_text_writes_nothing_behind_the_failure_of_the_new_one(
    made: MemoryStatement, code: str
) -> None:
    restore = FAULTS[code](made)
    made.harness.update(NEW)
    made.reconcile()
    assert codes(made) == [code]
    assert came_out(made) == 2
    assert not may(made, Operation.WRITE)
    assert not may(made, Operation.READ)
    restore()
    made.settle()
    assert codes(made) == [code]
    assert made.wrong() == []


def test_an_old_text_writes_until_the_new_one_starts(made: MemoryStatement) -> None:
    """Nothing ends before the plan of a start that succeeds."""
    planned = made.registry.versions

    def versions(subject: str) -> object:
        made.engine.move()
        return planned(subject)

    made.registry.versions = versions  # type: ignore[method-assign,assignment]
    made.harness.update(NEW)
    made.reconcile()
    assert sum(len(made.keys(OUT, number)) for number in (0, 1)) == 4
    assert codes(made) == []


def test_a_failure_is_told_also_where_the_old_text_cannot_be_ended(made: MemoryStatement) -> None:
    """Its rights stay while the cluster is away, and go at the next look that finds it."""
    restore, real = registry_away(made), made.east.rights

    def rights(**_: str | None) -> None:
        raise InfrastructureError("cluster east does not answer", retriable=True)

    made.east.rights = rights  # type: ignore[method-assign,assignment]
    made.harness.update(NEW)
    made.reconcile()
    (fact,) = made.harness.said(StatementFailed)
    assert "the registry does not answer" in fact.reason
    assert "cluster east does not answer" in fact.reason
    assert fact.code in RUNS_ON
    assert may(made, Operation.WRITE)
    assert made.engine.living() == []
    made.controller = made.new_controller()
    made.reconcile()
    assert may(made, Operation.WRITE)
    made.east.rights = real  # type: ignore[method-assign]
    made.reconcile()
    assert not may(made, Operation.WRITE)
    assert came_out(made) == 2
    assert "cannot be ended" not in (made.harness.statement.failure or "")
    restore()
    made.settle()
    assert made.wrong() == []


def test_what_an_engine_does_not_let_go_has_no_right_and_ends_when_it_answers(
    made: MemoryStatement,
) -> None:
    registry_away(made)
    stop = made.engine.stop

    def silent(_: str) -> None:
        raise EngineError("engine_unavailable", "it goes on")

    made.engine.stop = silent  # type: ignore[method-assign]
    made.harness.update(NEW)
    made.reconcile()
    assert came_out(made) == 2
    made.engine.stop = stop  # type: ignore[method-assign]
    made.reconcile()
    assert made.engine.states() == {}


def test_whoever_takes_over_ends_an_old_text_that_lives(made: MemoryStatement) -> None:
    """A worker may have told the failure and died before it could end what ran."""
    registry_away(made)
    made.harness.update(NEW)
    statement = made.harness.statement
    about = {"statement": NAME, "generation": statement.generation, "retriable": True}
    meta = made.harness.meta(NAME, "told", 0, correlation=NAME)
    made.harness.report(StatementFailed(meta=meta, code="no_schema", reason="none", **about))
    made.controller = made.new_controller()
    made.reconcile()
    assert came_out(made) == 2


def test_a_worker_that_dies_between_the_end_and_the_failure_loses_nothing(
    made: MemoryStatement, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore = registry_away(made)

    def died(_: object) -> None:
        raise DiedError("before the fact")

    made.harness.update(NEW)
    with monkeypatch.context() as patch:
        patch.setattr(made.harness, "report", died)
        with pytest.raises(DiedError):
            made.reconcile()
    assert not may(made, Operation.WRITE)
    made.controller = made.new_controller()
    made.reconcile()
    assert codes(made) == ["cluster_unavailable"]
    restore()
    made.settle()
    assert made.wrong() == []


def test_what_has_ended_is_not_ended_again_at_each_try(made: MemoryStatement) -> None:
    registry_away(made)
    made.harness.update(NEW)
    made.reconcile()
    assert not may(made, Operation.WRITE)
    asked = stops(made)
    made.settle()
    assert asked == []
    assert codes(made) == ["cluster_unavailable"]


def test_a_statement_that_never_ran_has_nothing_to_end() -> None:
    made = MemoryStatement()
    asked = stops(made)
    registry_away(made)
    made.settle()
    assert (codes(made), asked) == (["cluster_unavailable"], [])


def test_what_fails_while_it_runs_goes_on_until_its_next_start(made: MemoryStatement) -> None:
    """Also where that start fails, or its engine is away for long: it has the present text."""
    made.engine.down = True
    made.settle()
    assert codes(made) == ["engine_unavailable"]
    assert may(made, Operation.WRITE)
    registry_away(made)
    made.engine.down = False
    made.settle()
    assert codes(made) == ["engine_unavailable", "cluster_unavailable"]
    assert came_out(made) > 2
    # and under another worker
    made.controller = made.new_controller()
    before = came_out(made)
    made.settle()
    assert came_out(made) > before


def test_readers_are_told_of_what_runs_on_where_a_restart_finds_no_schema(
    made: MemoryStatement,
) -> None:
    made.engine.down = True
    made.settle()
    no_schema(made)
    made.engine.down = False
    made.settle()
    assert made.engine.living()
    assert made.harness.statement.failure_code == "no_schema"
    assert "no_schema" in RUNS_ON


def test_readers_are_told_of_what_runs_on_while_its_server_does_not_know_a_new_worker() -> None:
    link = MemoryLink()
    link.settle()
    link.controller = link.new_controller()
    link.engine.starting = True
    link.settle()
    assert link.harness.link.failure_code == "engine_starting"
    assert link.harness.link.failure_code in RUNS_ON
    link.produce(2)
    link.engine.move()
    assert sum(len(one.records) for one in link.destination.partitions) == 2


def test_a_query_of_the_new_text_is_not_ended_by_a_lost_answer(
    made: MemoryStatement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start has ended all that ran before."""
    start = made.engine.start

    def lost(spec: CopySpec) -> None:
        start(spec)
        raise EngineError("engine_unavailable", "the answer was lost")

    monkeypatch.setattr(made.engine, "start", lost)
    made.harness.update(NEW)
    made.reconcile()
    assert codes(made) == ["engine_unavailable"]
    assert [one.spec.writer for one in made.engine.living()] != [made.harness.statement.principal]
    assert may(made, Operation.WRITE)


@pytest.mark.parametrize("words", ["restart", "update"])
def test_a_second_word_counts_like_the_first(made: MemoryStatement, words: str) -> None:
    registry_away(made)
    if words == "update":
        made.harness.update(NEW)
        made.harness.update(f"{NEW} AND ip = 'y'")
    else:
        made.harness.direct(Desired.PAUSED)
        made.harness.direct(Desired.RUNNING)
    made.reconcile()
    assert came_out(made) == 2


def test_a_copy_that_is_resumed_in_vain_writes_no_more() -> None:
    link = MemoryLink()
    link.produce(4)
    link.settle()
    link.produce(4)
    link.engine.take()
    link.harness.pause()
    link.harness.resume()
    found = link.east.topics.pop(link.topic)
    link.reconcile()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["source_missing"]
    link.engine.land()
    assert sum(len(one.records) for one in link.destination.partitions) == 4
    link.east.topics[link.topic] = found
    link.settle()
    assert link.findings() == []


def test_a_copy_that_is_made_anew_is_known_as_ours_behind_a_failed_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Removed and created again before the controller could say that the old copy is gone."""
    link = MemoryLink()
    link.produce(4)
    link.settle()
    link.harness.remove()
    link.harness.create()
    link.west.delete_topic(link.topic)

    def away(*_: object) -> None:
        raise InfrastructureError("cluster west does not answer", retriable=True)

    with monkeypatch.context() as patch:
        patch.setattr("processors.controllers.links.links.LinkEnds.settle", away)
        link.reconcile()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["cluster_unavailable"]
    assert link.topic in link.west.topics
    link.settle()
    assert link.findings() == []


def test_a_generation_that_ran_is_on_the_log() -> None:
    link = MemoryLink()
    assert link.harness.link.activated is None
    link.settle()
    assert link.harness.link.activated == link.harness.link.generation
    link.harness.pause()
    link.harness.resume()
    assert link.harness.link.activated != link.harness.link.generation
    link.harness.remove()
    link.settle()
    link.harness.create()
    assert link.harness.link.activated is None


def test_a_crash_on_the_way_of_a_later_start_ends_nothing_that_is_needed(
    made: MemoryStatement, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = Crashes()
    monkeypatch.setattr(starting, "crash_point", crashes)
    restore = registry_away(made)
    made.harness.update(NEW)
    made.reconcile()
    restore()
    crashes.place = "statement-after-start"
    with pytest.raises(DiedError):
        made.reconcile()
    made.controller = made.new_controller()
    made.settle()
    assert made.wrong() == []


def test_a_first_query_whose_worker_died_writes_nothing_behind_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, crashes = MemoryStatement(), Crashes()
    made.produce("good", "good")
    monkeypatch.setattr(starting, "crash_point", crashes)
    crashes.place = "statement-after-start"
    with pytest.raises(DiedError):
        made.reconcile()
    assert may(made, Operation.WRITE)
    made.harness.elect()
    made.controller = made.new_controller()
    made.engine.down = True
    made.reconcile()
    assert codes(made) == ["engine_unavailable"]
    assert not may(made, Operation.WRITE)
    made.engine.down = False
    made.settle()
    assert made.wrong() == []


def test_a_first_copy_whose_worker_died_writes_nothing_behind_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link, crashes = MemoryLink(), Crashes()
    link.produce(4)
    monkeypatch.setattr(starting, "crash_point", crashes)
    crashes.place = "link-after-start"
    with pytest.raises(DiedError):
        link.reconcile()
    link.harness.elect()
    link.controller = link.new_controller()
    link.engine.down = True
    link.reconcile()
    assert [fact.code for fact in link.harness.said(LinkFailed)] == ["engine_unavailable"]
    assert not any(one.operation is Operation.WRITE for one in link.west.bindings)
    link.engine.down = False
    link.settle()
    assert link.findings() == []


def test_a_statement_that_was_added_under_this_leadership_has_nothing_to_end() -> None:
    made = MemoryStatement()
    made.harness.elect()
    made.harness.direct(Desired.DELETED)
    made.settle()
    made.harness.add()
    asked = stops(made)
    registry_away(made)
    made.settle()
    assert (codes(made), asked) == (["cluster_unavailable"], [])
