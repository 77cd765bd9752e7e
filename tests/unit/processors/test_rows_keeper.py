"""The rows keeper over several reigns of one process, with topics on paper."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mesh_events.rows import Row
from processors.keepers.rows import RowsKeeper
from projections.image import RowKey
from projections.rows import all_rows
from tests import paper_story as story
from tests.paper_log import PaperLog


@dataclass
class Reigning:
    """A reign that is never over."""

    epoch: int

    def check(self) -> None:
        return


class PaperTopics:
    """The rows as they stand; some are lost on their way."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.rows: dict[RowKey, Row] = {}
        self.unread: set[RowKey] = set()

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.rows[row.topic, row.key] = row
            self.unread.add((row.topic, row.key))

    def flush(self) -> None:
        return


class PaperRowsKeeper(RowsKeeper):
    """Reads what was written to the paper since the last look."""

    def __init__(self, topics: PaperTopics, log: PaperLog) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing, topics, lambda: log.image)  # type: ignore[arg-type]
        self._topics = topics

    def _read(self) -> set[RowKey]:
        seen, self._topics.unread = self._topics.unread, set()
        self._latest |= {key: self._topics.rows[key] for key in seen}
        return seen


def looks(keeper: RowsKeeper, log: PaperLog, reign: Reigning) -> None:
    for _ in range(3):
        keeper.reconcile(log.image, reign)  # type: ignore[arg-type]


def test_a_row_that_was_lost_between_two_reigns_of_a_process_is_written() -> None:
    """A worker woke up after its successor had died with a row unsent: nobody ever wrote it."""
    log, topics = PaperLog(), PaperTopics()
    story.published(log)
    topics.write(all_rows(log.image))
    keeper = PaperRowsKeeper(topics, log)
    looks(keeper, log, Reigning(1))
    # the successor folds and decides, and dies before its rows are sent
    story.granted(log)
    expected = {(row.topic, row.key): row for row in all_rows(log.image)}
    assert topics.rows != expected

    looks(keeper, log, Reigning(2))

    assert topics.rows == expected
