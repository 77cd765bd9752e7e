"""Writing to the topic of lineage, whose brokers may acknowledge nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import RunState
from structlog.testing import capture_logs

from mesh_events.connectors import ConnectorAdded, ConnectorStopped
from mesh_events.kafka.connection import Connection
from mesh_events.meta import new_id
from processors.lineage import events
from processors.lineage.events import UNAWAITED_S, JobRun, LineageTopic
from tests import sample_history as story
from tests.connectors.memory import NAME, PRINCIPAL, MemoryConnector

LOGIN = Connection("kafka.invalid:9092", "mesh.governor", "secret")


@dataclass
class PaperProducer:
    """A producer for brokers that acknowledge at once, or not at all while they are `silent`."""

    now: float = 100.0
    silent: bool = False
    waits: int = 0
    values: list[bytes] = field(default_factory=list)
    open: list[Callable[[Any, Any], None]] = field(default_factory=list)

    def produce(
        self, topic: str, value: bytes, key: bytes, on_delivery: Callable[[Any, Any], None]
    ) -> None:
        del topic, key
        self.values.append(value)
        self.open.append(on_delivery)

    def flush(self, seconds: float) -> int:
        self.waits += 1
        if self.silent:
            self.now += seconds
            return len(self.open)
        return self.poll(0)

    def poll(self, _: float) -> int:
        """Events that were not acknowledged in time are lost."""
        done, self.open = self.open, []
        for delivered in done:
            delivered("timed out" if self.silent else None, None)
        return 0


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> PaperProducer:
    found = PaperProducer()
    monkeypatch.setattr(events, "Producer", lambda _: found)
    return found


@pytest.fixture
def lineage(producer: PaperProducer) -> LineageTopic:
    return LineageTopic(LOGIN, clock=lambda: producer.now)


def run() -> JobRun:
    return JobRun("mesh.links", "east.copy", new_id(), "LINK", (), (), {})


def test_an_acknowledgement_is_waited_for_each_time(
    lineage: LineageTopic, producer: PaperProducer
) -> None:
    for _ in range(3):
        lineage.tell(RunState.START, run())
    assert producer.waits == 3


def test_after_a_wait_in_vain_nobody_waits_for_a_minute(
    lineage: LineageTopic, producer: PaperProducer
) -> None:
    producer.silent = True
    lineage.tell(RunState.START, run())
    producer.silent = False
    for _ in range(30):
        lineage.tell(RunState.START, run())
    assert producer.waits == 1
    assert len(producer.values) == 31
    producer.now += UNAWAITED_S
    lineage.tell(RunState.START, run())
    assert producer.waits == 2


def test_what_is_lost_without_a_wait_is_logged(
    lineage: LineageTopic, producer: PaperProducer
) -> None:
    producer.silent = True
    unawaited = run()
    with capture_logs() as logs:
        lineage.tell(RunState.START, run())
        lineage.tell(RunState.START, unawaited)
    lost = [entry["run"] for entry in logs if entry["event"] == "lineage_not_written"]
    assert unawaited.run in lost


def test_rights_are_withdrawn_behind_one_wait_for_the_lineage_of_thirty_connectors(
    lineage: LineageTopic, producer: PaperProducer, tmp_path: Path
) -> None:
    made = MemoryConnector(tmp_path)
    made.controller.lineage = lineage
    made.add()
    for number in range(30):
        fields = story.connector(more={"table.include.list": f"public.c{number}"})
        made.log.say(ConnectorAdded, "east", **{**fields, "connector": f"east.c{number}"})
    made.log.govern()
    made.look(times=2)
    assert made.said().count("Activated") == 31
    made.say(ConnectorStopped)
    producer.silent = True
    waits_before: list[int] = []
    withdraw = made.east.withdraw

    def noted(rights: Any) -> None:
        if any(one.principal == PRINCIPAL for one in rights):
            waits_before.append(producer.waits)
        withdraw(rights)

    made.east.withdraw = noted  # type: ignore[method-assign]
    assert producer.waits == 0
    made.look()
    assert waits_before == [1]
    assert NAME in made.log.image.connectors
