"""Each run that began has one end in the lineage, also when the worker dies before writing it."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import RunState

from mesh_events.connectors import ConnectorDeleted, ConnectorStopped
from mesh_events.errors import InfrastructureError
from processors.controllers.forwarding import ForwardingController, Written
from processors.controllers.run_ends import Recent, RunEndsController
from processors.lineage.events import JobRun, encoded
from processors.lineage.receiver import Answer, Outcome
from projections.image import Image
from projections.lineage.runs import MOST
from projections.links import Desired
from tests.connectors.memory import NAME, MemoryConnector
from tests.links.memory import MemoryLink
from tests.memory_log import MemoryLog
from tests.statements.memory import MemoryStatement
from tests.unit.processors.controllers.flows.test_links_crashes import DiedError

ENDS = {RunState.COMPLETE, RunState.ABORT, RunState.FAIL}
TRACE = "org.A: task died\nCaused by: org.B: the disk is full"


@dataclass
class Mortal:
    """Lineage whose writer dies before it writes an event of one kind."""

    told: list[tuple[RunState, JobRun, str | None]] = field(default_factory=list)
    dies_at: RunState | None = None
    before: Callable[[], object] | None = None
    """What happens while the writer stands still before the next end of a run."""

    def tell(self, kind: RunState, run: JobRun, reason: str | None = None) -> None:
        before = self.before
        if before is not None and kind in ENDS:
            self.before = None
            before()
        if kind is self.dies_at:
            self.dies_at = None
            raise DiedError(kind.value)
        self.told.append((kind, run, reason))

    def ends(self) -> dict[str, list[str]]:
        """Run -> its ends, of every run that is in the lineage."""
        found: dict[str, list[str]] = {run.run: [] for _, run, _ in self.told}
        for kind, run, _ in self.told:
            if kind in ENDS:
                found[run.run].append(kind.value)
        return found

    def recent(self) -> Recent:
        return Recent(None, frozenset(run for run, ends in self.ends().items() if ends))


@dataclass
class Leadership:
    """A leadership that begins behind everything that is on the log."""

    epoch: int
    last_report: int = -1

    def check(self) -> None:
        """It goes on."""

    def report(self, fact: Any) -> None:
        raise AssertionError(f"nothing is to be reported: {fact}")

    def meta(self, *_: object, **__: object) -> Any:
        raise AssertionError


def take_over(image: Image, lineage: Mortal) -> RunEndsController:
    """The next worker's first look."""
    controller = RunEndsController(lineage.recent, lineage, lambda _: '"bytes"')
    controller.reconcile(image, Leadership(image.offset + 1))
    return controller


@pytest.fixture
def lineage() -> Mortal:
    return Mortal()


@pytest.fixture
def connector(tmp_path: Path, lineage: Mortal) -> MemoryConnector:
    made = MemoryConnector(tmp_path)
    made.lineage = lineage  # type: ignore[assignment]
    made.controller = made.new_controller()
    made.add()
    made.look(times=2)
    return made


@pytest.fixture
def link(lineage: Mortal) -> MemoryLink:
    made = MemoryLink()
    made.lineage = lineage  # type: ignore[assignment]
    made.controller = made.new_controller()
    made.settle()
    return made


@pytest.fixture
def statement(lineage: Mortal) -> MemoryStatement:
    made = MemoryStatement()
    made.lineage = lineage  # type: ignore[assignment]
    made.controller = made.new_controller()
    made.harness.add()
    made.settle()
    return made


def survived(act: Callable[[], None]) -> bool:
    """Whether the worker did not die of it."""
    try:
        act()
    except DiedError:
        return False
    return True


def test_a_connector_that_fails_twice_and_is_dropped_ends_each_run_once(
    connector: MemoryConnector, lineage: Mortal
) -> None:
    connector.api.fail(NAME, TRACE)
    connector.look(times=2)
    connector.api.fail(NAME, TRACE.replace("disk", "log"))
    connector.look(400, times=2)
    connector.say(ConnectorStopped)
    connector.look(times=3)
    connector.say(ConnectorDeleted)
    connector.look(times=3)
    assert list(lineage.ends().values()) == [["FAIL"]]


def test_a_link_whose_query_is_gone_ends_its_run_before_the_next_one(
    link: MemoryLink, lineage: Mortal
) -> None:
    link.engine.queries.clear()
    link.settle()
    first, second = lineage.ends().items()
    assert (first[1], second[1]) == (["FAIL"], [])
    link.harness.pause()
    link.settle()
    assert Counter(map(tuple, lineage.ends().values())) == {("FAIL",): 1, ("COMPLETE",): 1}


def test_a_statement_that_fails_and_is_dropped_ends_its_run_once(
    statement: MemoryStatement, lineage: Mortal
) -> None:
    statement.engine.down = True
    statement.settle()
    statement.harness.direct(Desired.DELETED)
    statement.engine.down = False
    statement.settle()
    assert [len(ends) for ends in lineage.ends().values()] == [1]


@pytest.mark.parametrize("end", ["FAIL", "COMPLETE"])
def test_a_worker_that_dies_before_it_writes_an_end_is_made_up_for_once(
    connector: MemoryConnector, lineage: Mortal, end: str
) -> None:
    lineage.dies_at = RunState(end)
    if end == "FAIL":
        connector.api.fail(NAME, TRACE)
    else:
        connector.say(ConnectorStopped)
    assert not all(survived(connector.look) for _ in range(4))
    image = connector.log.image
    assert list(lineage.ends().values()) == [[]]
    controller = take_over(image, lineage)
    controller.reconcile(image, Leadership(image.offset + 1))
    take_over(image, lineage)
    assert list(lineage.ends().values()) == [[end]]
    if end == "FAIL":
        assert "task 0: " in str(lineage.told[-1][2])


def test_a_link_that_died_before_its_runs_end_was_written_is_made_up_for(
    link: MemoryLink, lineage: Mortal
) -> None:
    lineage.dies_at = RunState.FAIL
    link.engine.queries.clear()
    assert not survived(link.settle)
    take_over(link.harness.image, lineage)
    assert list(lineage.ends().values()) == [["FAIL"]]
    link.controller = link.new_controller()
    link.settle()
    link.harness.remove()
    link.settle()
    assert {len(ends) for ends in lineage.ends().values()} == {1}


def test_ends_of_this_leadership_are_left_to_who_reports_them(
    connector: MemoryConnector, lineage: Mortal
) -> None:
    lineage.dies_at = RunState.COMPLETE
    connector.say(ConnectorStopped)
    assert not all(survived(connector.look) for _ in range(4))
    controller = RunEndsController(lineage.recent, lineage, lambda _: None)
    controller.reconcile(connector.log.image, Leadership(0))
    assert list(lineage.ends().values()) == [[]]


def test_a_lineage_that_cannot_be_read_is_read_again_and_what_is_older_is_left(
    connector: MemoryConnector, lineage: Mortal
) -> None:
    lineage.dies_at = RunState.COMPLETE
    connector.say(ConnectorStopped)
    assert not all(survived(connector.look) for _ in range(4))
    image, answers = connector.log.image, iter([None, Recent(10**15, frozenset())])

    def recent() -> Recent:
        answer = next(answers)
        if answer is None:
            raise InfrastructureError("no answer", retriable=True)
        return answer

    controller = RunEndsController(recent, lineage, lambda _: None)
    for _ in range(3):
        controller.reconcile(image, Leadership(image.offset + 1))
    assert list(lineage.ends().values()) == [[]]
    assert list(answers) == []


class Topic:
    """What two workers wrote, as the forwarding reads it."""

    def __init__(self, lineage: Mortal) -> None:
        self._values = [encoded(*one) for one in lineage.told]
        self._at = 0

    def first(self) -> Written | None:
        if self._at == len(self._values):
            return None
        return Written(self._at, self._values[self._at])

    def dealt_with(self) -> None:
        self._at += 1

    def save(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Received:
    """Who takes every event."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def send(self, event: bytes) -> Answer:
        self.events.append(json.loads(event))
        return Answer(Outcome.TAKEN, "")


def forwarded(lineage: Mortal) -> Received:
    """What a receiver gets of it."""
    received = Received()
    controller = ForwardingController(lambda: Topic(lineage), received)
    controller.reconcile(MemoryLog().image, Leadership(1))
    return received


@pytest.mark.parametrize("job", ["connector", "link", "statement"])
def test_an_end_that_two_live_workers_write_is_one_event_and_forwarded_once(
    connector: MemoryConnector,
    link: MemoryLink,
    statement: MemoryStatement,
    lineage: Mortal,
    job: str,
) -> None:
    """The first one has reported the end on the log and stands still; its successor writes it."""
    images = {
        "connector": lambda: connector.log.image,
        "link": lambda: link.harness.image,
        "statement": lambda: statement.harness.image,
    }
    lineage.told.clear()
    lineage.before = lambda: take_over(images[job](), lineage)
    if job == "connector":
        connector.api.fail(NAME, TRACE)
        connector.look(times=2)
    elif job == "link":
        link.engine.queries.clear()
        link.settle()
    else:
        statement.engine.queries.clear()
        statement.settle()
    written = [json.loads(encoded(*one)) for one in lineage.told if one[0] in ENDS]
    assert [one["eventType"] for one in written] == ["FAIL", "FAIL"]
    assert written[0]["run"] == written[1]["run"]
    assert written[0]["eventTime"] == written[1]["eventTime"]
    received = forwarded(lineage)
    assert [one["eventType"] for one in received.events].count("FAIL") == 1


def test_only_so_many_ended_runs_are_remembered(
    connector: MemoryConnector, lineage: Mortal
) -> None:
    for _ in range(MOST + 2):
        connector.api.fail(NAME, TRACE)
        connector.look(times=2)
        connector.api.mend(NAME)
        connector.look(700, times=8)
    ends: Mapping[str, list[str]] = lineage.ends()
    assert len(connector.connector.ended) == MOST
    assert len(ends) > MOST
    assert {tuple(one) for one in ends.values()} <= {("FAIL",), ()}
