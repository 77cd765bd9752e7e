"""The rows controller while one process leads several times, with topics on paper."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from structlog.testing import capture_logs

from mesh_events.errors import InfrastructureError, MeshError, WaitTimeoutError
from mesh_events.kafka.connection import Connection
from mesh_events.rows import Row
from processors.controllers.rows import RowsController
from processors.governor import row_writer
from projections.image import RowKey
from projections.rows import all_rows
from tests import sample_history as story
from tests.memory_log import MemoryLog


@dataclass
class Leading:
    """A leadership that is never over."""

    epoch: int

    def check(self) -> None:
        return


class PaperTopics:
    """The rows as they stand; some are lost on their way."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.rows: dict[RowKey, Row] = {}
        self.unread: set[RowKey] = set()
        self.trouble: MeshError | None = None

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.rows[row.topic, row.key] = row
            self.unread.add((row.topic, row.key))

    def flush(self) -> None:
        if self.trouble is not None:
            raise self.trouble


class PaperRowsController(RowsController):
    """Reads what was written to the log since the last look."""

    def __init__(self, topics: PaperTopics, log: MemoryLog) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing, topics, lambda: log.image)  # type: ignore[arg-type]
        self._topics = topics

    def _read(self) -> set[RowKey]:
        seen, self._topics.unread = self._topics.unread, set()
        self._latest |= {key: self._topics.rows[key] for key in seen}
        return seen


def looks(controller: RowsController, log: MemoryLog, leadership: Leading) -> None:
    for _ in range(3):
        controller.reconcile(log.image, leadership)  # type: ignore[arg-type]


def test_a_row_that_was_lost_while_another_worker_led_is_written() -> None:
    """A worker woke up after its successor had died with a row unsent: nobody ever wrote it."""
    log, topics = MemoryLog(), PaperTopics()
    story.published(log)
    topics.write(all_rows(log.image))
    controller = PaperRowsController(topics, log)
    looks(controller, log, Leading(1))
    # the successor folds and decides, and dies before its rows are sent
    story.granted(log)
    expected = {(row.topic, row.key): row for row in all_rows(log.image)}
    assert topics.rows != expected

    looks(controller, log, Leading(2))

    assert topics.rows == expected


def test_rows_that_are_lost_end_the_worker_and_late_ones_do_not() -> None:
    """On a mesh where nobody says anything no next write would."""
    log, topics = MemoryLog(), PaperTopics()
    story.published(log)
    topics.write(all_rows(log.image))
    controller = PaperRowsController(topics, log)
    topics.trouble = WaitTimeoutError("3 rows not acknowledged within 30 s")
    with capture_logs() as lines:
        looks(controller, log, Leading(1))
    assert {line["event"] for line in lines} == {"rows_not_read"}
    topics.trouble = InfrastructureError("a row was not written", retriable=True)
    with pytest.raises(InfrastructureError):
        looks(controller, log, Leading(1))


def test_a_row_that_was_not_written_is_told_as_lost_and_one_on_its_way_as_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_writer, "_FLUSH_S", 0.01)
    nobody, registry = Connection("127.0.0.1:1", "mesh.governor", "none"), SimpleNamespace()
    registry.schema_id = lambda _: 7
    log = MemoryLog()
    story.published(log)
    writer = row_writer.RowWriter(nobody, registry)  # type: ignore[arg-type]
    writer.write(list(all_rows(log.image))[:1])
    with pytest.raises(WaitTimeoutError, match="1 rows not acknowledged"):
        writer.flush()
    writer._failed = KafkaError(KafkaError._MSG_TIMED_OUT)
    with pytest.raises(InfrastructureError) as told:
        writer.flush()
    assert not isinstance(told.value, WaitTimeoutError)
