"""Checks are made for every domain alike, and a server that starts is given time to know."""

from typing import Any

import pytest

from mesh_events import intents
from mesh_events.connectors import ConnectorAdded, ConnectorUpdated
from mesh_events.errors import InfrastructureError
from mesh_events.facts import CheckFailed, CheckPassed, Fact
from mesh_events.statements import StatementAdded, StatementUpdated
from processors.keepers import checks
from processors.keepers.checks import CHECKED, ChecksKeeper, Task, by_turns, missing
from processors.keepers.findings import CERTAIN_S
from projections.decide import decide
from projections.replay import fold
from projections.verdict import Waiting
from tests import paper_story as story
from tests.links.memory import MemoryCluster
from tests.paper_log import Never, PaperLog, meta


def publications(log: PaperLog, domain: str, count: int) -> None:
    for number in range(count):
        name = f"{domain}.p{number}"
        log.say(
            intents.ProductPublished,
            domain,
            **{**story.product(), "product": name, "topic": name},
        )


def test_missing_checks_are_named_oldest_intent_first() -> None:
    log = PaperLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 2)
    publications(log, "west", 1)
    found = list(missing(log.image))
    assert [task.offset for task in found] == sorted(task.offset for task in found)
    assert {task.check for task in found} == {"topic_exists", "schema_registered"}
    assert len(found) == 6


def test_domains_take_turns_however_much_one_of_them_says() -> None:
    log = PaperLog(checks={"topic_exists": Never()})
    story.domains(log)
    publications(log, "east", 50)
    publications(log, "west", 2)
    tasks = [task for task in missing(log.image) if task.check == "topic_exists"]
    turns = [task.intent.meta.domain for task in by_turns(tasks)]
    assert turns[:4] == ["east", "west", "east", "west"]
    assert len(turns) == 52
    east = [task.offset for task in by_turns(tasks) if task.intent.meta.domain == "east"]
    assert east == sorted(east)


def test_no_tasks_make_no_turns() -> None:
    nothing: list[Task] = []
    assert by_turns(nothing) == []


class Starting:
    """A registry that answers as told, one answer after the other; None means down."""

    def __init__(self, *answers: tuple[int, int] | bool | None) -> None:
        self._answers = list(answers)

    def latest(self, subject: str) -> tuple[int, int] | None:
        answer = self._answers.pop(0)
        if answer is None:
            raise InfrastructureError(f"{subject}: no answer", retriable=True)
        return None if isinstance(answer, bool) else answer

    def numbers(self, subject: str) -> tuple[int, ...]:
        """One version, whatever is asked: nothing is compared."""
        del subject
        return ()


class Listening:
    """A reign that keeps what is reported on the schema."""

    def __init__(self) -> None:
        self.said: list[Fact] = []

    def meta(self, *_: object, **__: object) -> Any:
        return meta("mesh", "01a0c451-0000-7000-8000-000000000000", 0)

    def report(self, fact: Fact) -> None:
        if isinstance(fact, CheckPassed | CheckFailed) and fact.check == "schema_registered":
            self.said.append(fact)


MISSING = False
FOUND = (7, 1)


@pytest.mark.parametrize(
    ("answers", "seconds", "expected"),
    [
        ([MISSING, FOUND], [0.1], [CheckPassed]),
        ([MISSING, MISSING], [CERTAIN_S + 0.1], [CheckFailed]),
        ([MISSING, None, MISSING, FOUND], [1, CERTAIN_S, 0.1], [CheckPassed]),
        ([MISSING, MISSING, MISSING], [CERTAIN_S / 2, CERTAIN_S], [CheckFailed]),
    ],
)
def test_a_registry_must_lack_a_schema_for_a_while(
    answers: list[Any],
    seconds: list[float],
    expected: list[type[Fact]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was killed once refused a publication: it answered before it knew its schemas."""
    now = 100.0
    monkeypatch.setattr(checks.time, "monotonic", lambda: now)
    log = PaperLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 1)
    cluster, registry, reign = MemoryCluster("east"), Starting(*answers), Listening()
    keeper = ChecksKeeper(lambda *_: cluster, registry)  # type: ignore[arg-type,return-value]
    for wait in (*seconds, 0.0):
        assert reign.said == []
        keeper.reconcile(log.image, reign)  # type: ignore[arg-type]
        now += wait
    assert [type(one) for one in reign.said] == expected


def test_only_what_is_looked_at_ever_waits() -> None:
    log = PaperLog()
    story.published(log)
    story.granted(log)
    log.say(StatementAdded, "east", **story.statement())
    story.settle(log)
    text = {"sql": "SELECT 1 AS one FROM east.users", "stream": "east.users"}
    log.say(StatementUpdated, "east", statement=story.STATEMENT, **text)
    log.say(ConnectorAdded, "east", **story.connector())
    story.settle(log)
    log.say(ConnectorUpdated, "east", **story.connector())
    story.settle(log)
    waited = {
        type(entry.event)
        for image in fold(log.records)
        for entry in image.intents.undecided.values()
        if isinstance(decide(image, entry, entry.time), Waiting)
    }
    assert waited == set(CHECKED)
