"""Whether a running flow gets on: a query that lives and stands still is started anew."""

from collections.abc import Mapping
from typing import Generic

from processors.controllers.flows.flow import F, Kind
from processors.controllers.flows.pace import Memories, Pace
from processors.controllers.retry import wait_before
from spark_streams.errors import EngineError
from spark_streams.lag import ahead
from spark_streams.log import Ahead, PartitionLog

_SEARCH_S = 5.0
"""So long one look searches for what is still to be read; the next one goes on there."""


class Progress(Generic[F]):
    """What the looks at running flows have found of their positions.

    Args:
        kind: what they are.
        pace: how long a partition may stand still.
        memory: where it is kept.
    """

    def __init__(self, kind: Kind[F], pace: Pace, memory: Memories) -> None:
        self._kind: Kind[F] = kind
        self._pace, self._memory = pace, memory

    def note(self, flow: F, reached: Mapping[int, int]) -> None:
        """Forget the starts in vain once it has got on further than ever, or lives steadily."""
        memory = self._memory[flow]
        before = _further(_positions(flow), memory.furthest)
        furthest = _further(before, reached)
        steady = self._pace.clock() - memory.started >= self._pace.steady
        got_on = steady or any(at > before.get(p, 0) for p, at in furthest.items())
        starts = 0 if got_on else memory.starts
        self._memory.change(flow, furthest=furthest, starts=starts)

    def require(
        self, flow: F, source: PartitionLog, reached: Mapping[int, int]
    ) -> Mapping[int, Ahead]:
        """What is still to be read; raise `query_stalled` for a query that does not get on.

        Spark notices a record that could not be written only with the next one of its partition,
        or at the end of a batch; and a query without free task slots waits for ever. Where no
        record is ahead, the next look begins: millions of ends of transactions may stand there.
        """
        now = self._pace.clock()
        known = _further(_positions(flow), reached)
        patience = self._patience(flow, known)
        memory = self._memory[flow]
        begin = {p: max(at, memory.searched.get(p, 0)) for p, at in known.items()}
        found = ahead(source, flow.source_topic, begin, _SEARCH_S)
        before = memory.waiting
        stands = {p: before[p] for p, at in known.items() if p in before and before[p][0] == at}
        # what there was no time to search has not come any further
        waiting = {
            p: stands.get(p, (known[p], now))
            for p, one in found.items()
            if one.is_record or (p in stands and not one.is_known)
        }
        searched = {p: one.offset for p, one in found.items()}
        self._memory.change(flow, waiting=waiting, searched=searched)
        for partition, (position, since) in sorted(waiting.items()):
            if now - since >= patience:
                stalls = self._memory[flow].stalls + 1
                stood = (partition, position)
                self._memory.change(flow, waiting={}, stalls=stalls, stood=stood)
                raise EngineError(
                    "query_stalled",
                    f"partition {partition} stands at source offset {position} for "
                    f"{patience:g} s though there is more to read: the query is restarted",
                )
        return found

    def _patience(self, flow: F, known: Mapping[int, int]) -> float:
        """For how long a partition may stand still: a start that was only slow is given longer."""
        memory, least = self._memory[flow], self._kind.patience_s(flow, self._pace.stall)
        partition, position = memory.stood
        if memory.stalls and known.get(partition, position) > position:
            self._memory.change(flow, stalls=0)
            return least
        return wait_before(memory.stalls + 1, least, max(least, self._pace.stall_most))


def _positions(flow: F) -> dict[int, int]:
    return {int(partition): at for partition, at in flow.positions.items()}


def _further(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """The later position of each partition."""
    return {**one, **{p: max(at, one.get(p, 0)) for p, at in other.items()}}
