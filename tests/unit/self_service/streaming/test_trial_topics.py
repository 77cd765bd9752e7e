"""What a statement's trial removes: what the log says trials filled, and nothing else."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events import intents, statements
from mesh_events.errors import RefusedError
from self_service.cli.mesh import brokers
from self_service.cli.schema import subjects
from self_service.cli.streaming import trial
from self_service.cli.streaming.trial import Trial
from tests import sample_history as story
from tests.links.memory import MemoryCluster
from tests.memory_log import MemoryLog

TRIED, TRIAL, FILLED = story.STATEMENT, f"{story.STATEMENT}-trial", "east.copied.trial"
SPEAKS = {"description": f"tries a text of {TRIED}"}


class EndedError(Exception):
    """Ends a trial where it would begin to run."""


WORDED = SimpleNamespace(application=None)


@dataclass
class Bench:
    """East's statement, its cluster and its registry; a trial ends where it would begin to run."""

    log: MemoryLog = field(default_factory=MemoryLog)
    cluster: MemoryCluster = field(default_factory=lambda: MemoryCluster("east"))
    subjects: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        story.published(self.log)
        self.add(TRIED, "east.copied")

    def add(self, name: str, destination: str, **more: Any) -> None:
        about = story.statement(statement=name, destination=destination, **more)
        self.log.say(statements.StatementAdded, "east", **about)
        story.settle(self.log)

    def say(self, kind: type[Any], name: str, **fields: Any) -> None:
        self.log.say(kind, "east", statement=name, **fields)
        story.settle(self.log)

    def leftover(self) -> None:
        """A trial was broken off: its statement stands, and its topics are there."""
        self.make(FILLED, f"{FILLED}.dead")
        self.subjects |= {f"{FILLED}-value"}
        self.add(TRIAL, FILLED, **SPEAKS)
        self.report(TRIAL)

    def make(self, *topics: str) -> None:
        for one in topics:
            self.cluster.create_topic(one, 1, {})

    def report(self, name: str) -> None:
        """The controller has started the statement over the topic that is there."""
        found, topic = self.log.image.statements[name], self.cluster.topic(FILLED)
        about = story.running(found, destination_topic_id=topic.id if topic else "")
        self.log.report(statements.StatementActivated, **about)

    def run(self, meant: Any = WORDED) -> None:
        registry = SimpleNamespace(latest=lambda one: (7, 1) if one in self.subjects else None)
        mesh: Any = SimpleNamespace(
            image=lambda: self.log.image, login=lambda *_: None, registry=registry
        )
        options: Any = None
        Trial(mesh, options, self.log.image.statements[TRIED], meant, 10).run()


class Nothing:
    """A log that nobody reads."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()

    def bounds(*_: Any) -> Any:
        raise EndedError

    def said(_: Trial, suffix: str, kind: type[Any], **fields: Any) -> None:
        bench.say(kind, f"{TRIED}-{suffix}", **fields)

    monkeypatch.setattr(brokers, "admin", lambda _: bench.cluster)
    monkeypatch.setattr(trial, "KafkaLog", Nothing)
    monkeypatch.setattr(Trial, "_bounds", bounds)
    monkeypatch.setattr(Trial, "_submit", said)
    monkeypatch.setattr(subjects, "remove", lambda _, subject: bench.subjects.discard(subject))
    return bench


@pytest.mark.parametrize("topic", [FILLED, f"{FILLED}.dead", "east.copied.present"])
def test_a_topic_that_no_trial_made_survives_an_update(bench: Bench, topic: str) -> None:
    bench.make(topic)
    bench.subjects.add(f"{topic}-value")
    with pytest.raises(RefusedError, match=f"`sdm topic delete {topic}`") as refused:
        bench.run()
    assert refused.value.code == "target_taken"
    assert topic in bench.cluster.topics
    assert bench.subjects == {f"{topic}-value"}


def test_a_topic_made_anew_under_the_name_of_a_trials_survives(bench: Bench) -> None:
    bench.leftover()
    bench.say(statements.StatementDeleted, TRIAL)
    bench.cluster.delete_topic(FILLED)
    bench.make(FILLED)
    with pytest.raises(
        RefusedError, match=r"no comparison run of east\.copied is known to have created it"
    ):
        bench.run()
    assert {FILLED, f"{FILLED}.dead"} <= bench.cluster.topics.keys()


def test_a_schema_that_no_trial_registered_survives(bench: Bench) -> None:
    bench.subjects.add(f"{FILLED}-key")
    with pytest.raises(RefusedError) as refused:
        bench.run()
    assert refused.value.code == "target_taken"
    assert bench.subjects == {f"{FILLED}-key"}


def test_a_statement_of_the_trials_name_is_not_dropped(bench: Bench) -> None:
    bench.add(TRIAL, "east.other")
    with pytest.raises(RefusedError, match=f"`sdm streaming sql delete {TRIAL}`") as refused:
        bench.run()
    assert refused.value.code == "statement_exists"
    assert bench.log.image.statements[TRIAL].stands


def require_in_use(bench: Bench, reason: str) -> None:
    """The trial is refused, and its topic is there as before."""
    with pytest.raises(RefusedError, match=reason) as refused:
        bench.run()
    assert refused.value.code == "topic_in_use"
    assert FILLED in bench.cluster.topics


def test_a_product_on_a_trials_topic_survives(bench: Bench) -> None:
    bench.leftover()
    about = story.product(product="east.tried", topic=FILLED)
    bench.log.say(intents.ProductPublished, "east", **about)
    story.settle(bench.log)
    require_in_use(bench, r"carries the product east\.tried")


def test_a_trials_topic_that_another_statement_reads_survives(bench: Bench) -> None:
    bench.leftover()
    bench.add("east.reader", "east.read", stream=FILLED, sql=f"SELECT * FROM {FILLED}")
    require_in_use(bench, r"filled by statement east\.reader")


def test_what_a_broken_off_trial_left_is_removed(bench: Bench) -> None:
    bench.leftover()
    with pytest.raises(EndedError):
        bench.run()
    assert not bench.log.image.statements[TRIAL].stands
    assert not bench.cluster.topics
    assert not bench.subjects


@pytest.mark.parametrize("has_run", [True, False])
def test_a_trial_removes_what_it_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, has_run: bool
) -> None:
    def bounds(*_: Any) -> Any:
        about = story.statement(statement=TRIAL, destination=FILLED, **SPEAKS)
        bench.log.say(statements.StatementAdded, "east", **about)
        bench.log.govern()
        bench.make(FILLED, f"{FILLED}.dead")
        bench.subjects.add(f"{FILLED}-value")
        if has_run:
            bench.report(TRIAL)
        raise EndedError

    monkeypatch.setattr(Trial, "_bounds", bounds)
    with pytest.raises(EndedError):
        bench.run()
    assert not bench.cluster.topics
    assert not bench.subjects


def test_a_topic_that_came_before_the_trial_was_accepted_survives(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bounds(*_: Any) -> Any:
        bench.make(FILLED)
        raise EndedError

    monkeypatch.setattr(Trial, "_bounds", bounds)
    with pytest.raises(EndedError):
        bench.run()
    assert FILLED in bench.cluster.topics
