"""Ending a flow: standing still, or gone.

The fence is closed even when the engine does not answer: who may not write any more does not
write, whatever a Spark server still believes.
"""

from typing import Generic

import structlog

from mesh_events.errors import MeshError
from processors.controllers.controller import Leadership
from processors.controllers.flows import fence
from processors.controllers.flows.ends import Ends
from processors.controllers.flows.flow import F, Kind, Reporter
from processors.controllers.flows.starts import Starts
from processors.crash_points import crash_point
from spark_streams.engine import FlowEngine
from spark_streams.errors import EngineError

log = structlog.get_logger(__name__)


class FlowEnd(Generic[F]):
    """Lets flows of one kind stand still.

    Args:
        kind: what the flows are.
        engine: runs the queries.
        quiet_s: for how long a fenced destination has to stand still, seconds.
        starts: what is just being started.
    """

    def __init__(self, kind: Kind[F], engine: FlowEngine, quiet_s: float, starts: Starts) -> None:
        self.kind: Kind[F] = kind
        self._engine, self.quiet_s, self.starts = engine, quiet_s, starts

    def pause(self, ends: Ends[F], reporter: Reporter[F], leadership: Leadership) -> None:
        """Stand still: no query, no right to write, positions on the log."""
        self.halt(ends, leadership)
        reached = self.reached(ends)
        crash_point(f"{self.kind.name}-after-stop")
        if not ends.flow.is_at_rest:
            reporter.stopped(reached)

    def remove(self, ends: Ends[F], reporter: Reporter[F], leadership: Leadership) -> None:
        """Stand still for good."""
        raise NotImplementedError

    def halt(self, ends: Ends[F], leadership: Leadership, *, starts_again: bool = False) -> None:
        """Stop the query and take every right from the flow's incarnations, at both ends.

        The mark of a destination that never became active stays: by it it is known as ours.

        starts_again: another start follows; one that failed may have made the destination anew.
        """
        flow = ends.flow
        unknown = flow.destination_topic_id is None or (starts_again and flow.run is None)
        if ends.moves:
            # a server that does not answer is waited for: what may not be read or written is
            # closed before
            try:
                fence.retire(ends.source, None, flow.id, leadership.check, keep_claims=unknown)
            except MeshError:
                self._stop(flow, leadership)
                raise
        self._stop(flow, leadership)
        for written in flow.writes:
            fence.close(ends.destination, written, flow.id, leadership.check)
        leadership.check()
        ends.end_transactions()
        if not ends.moves:
            for topic in ends.fenced(flow.reads):
                fence.retire(ends.source, topic, flow.id, leadership.check)
            for topic in ends.fenced(flow.writes):
                fence.retire(
                    ends.destination, topic, flow.id, leadership.check, keep_claims=unknown
                )
        if not starts_again:
            self.starts.forget(flow.id)

    def _stop(self, flow: F, leadership: Leadership) -> None:
        """Stop the query, if its engine answers."""
        leadership.check()
        try:
            self._engine.stop(flow.id)
        except EngineError as error:
            log.warning("engine_not_asked", flow=flow.id, error=str(error))

    def reached(self, ends: Ends[F]) -> dict[int, int]:
        """Partition -> source offset before which everything is there, as far as it can be told.

        Called while the flow stands still.
        """
        del ends
        return {}
