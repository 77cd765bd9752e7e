"""When a flow that lives is taken for one that stands still."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from processors.controllers.flows.pace import Memories, Memory, Pace
from processors.controllers.flows.progress import Progress
from spark_streams.errors import EngineError
from spark_streams.log import Ahead

PATIENCE_S = 30.0
FLOW: Any = SimpleNamespace(id="flow", source_topic="east.orders", positions={"0": 5, "1": 7})


class Source:
    """A topic of two partitions; `found` is what the next search finds ahead."""

    def __init__(self) -> None:
        self.found: dict[int, Ahead] = {}
        self.begun: Mapping[int, tuple[int, int]] = {}

    def bounds(self, _topic: str, partitions: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        return dict.fromkeys(partitions, (0, 10**9))

    def first(
        self, _topic: str, within: Mapping[int, tuple[int, int]], _most_s: float
    ) -> dict[int, Ahead]:
        self.begun = within
        return self.found


class Looks:
    """Looks at a flow, ten seconds apart."""

    def __init__(self) -> None:
        self.now, self.source = 0.0, Source()
        memory = Memories()
        memory.begin(FLOW, Memory(1, 0.0))
        kind: Any = SimpleNamespace(patience_s=lambda _flow, least: least)
        pace = Pace(stall=PATIENCE_S, clock=lambda: self.now)
        self._progress = Progress[Any](kind, pace, memory)

    def look(self, found: dict[int, Ahead], reached: dict[int, int] | None = None) -> None:
        self.now += 10
        self.source.found = found
        source: Any = self.source
        self._progress.require(FLOW, source, reached or {0: 5, 1: 7})


NOTHING = Ahead(10**9, is_record=False, is_known=True)


def record(offset: int) -> Ahead:
    return Ahead(offset, is_record=True, is_known=True)


def unknown(offset: int) -> Ahead:
    return Ahead(offset, is_record=False, is_known=False)


def test_a_partition_that_was_not_searched_to_its_end_is_not_stalled() -> None:
    looks = Looks()
    for at in range(10):
        looks.look({0: NOTHING, 1: unknown(1000 * at)})
        assert looks.source.begun[1][0] == max(7, 1000 * (at - 1))


def test_a_record_that_was_seen_ahead_still_waits_while_there_is_no_time_to_search() -> None:
    looks = Looks()
    looks.look({0: NOTHING, 1: record(9)})
    looks.look({0: NOTHING, 1: unknown(8)})
    looks.look({0: NOTHING, 1: unknown(8)})
    with pytest.raises(EngineError, match="partition 1 stands at source offset 7") as raised:
        looks.look({0: NOTHING, 1: unknown(8)})
    assert raised.value.code == "query_stalled"


def test_a_partition_that_got_on_begins_to_wait_anew() -> None:
    looks = Looks()
    for position in (7, 8, 9, 10, 11, 12):
        looks.look({0: NOTHING, 1: record(position + 1)}, {0: 5, 1: position})
