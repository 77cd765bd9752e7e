"""Ending a statement: what stands in its two topics then is told, and its topics stay."""

import structlog

from processors.controllers.controller import Leadership
from processors.controllers.flows import fence
from processors.controllers.flows.ends import Ends
from processors.controllers.flows.flow import Reporter
from processors.controllers.flows.stopping import FlowEnd
from processors.controllers.statements.reporter import StatementReporter
from processors.crash_points import crash_point
from projections.statements import Statement
from spark_streams.errors import CopyError
from spark_streams.provenance import Origin
from spark_streams.tail import positions, read_tail

log = structlog.get_logger(__name__)


class StatementEnd(FlowEnd[Statement]):
    """Stops and deletes statements."""

    def pause(
        self, ends: Ends[Statement], reporter: Reporter[Statement], leadership: Leadership
    ) -> None:
        """Stand still: no query, no right to write, the tails of both topics on the log.

        They are told because the topics may be emptied while it stands still.
        """
        self.halt(ends, leadership)
        self._tell(ends, reporter)

    def remove(
        self, ends: Ends[Statement], reporter: Reporter[Statement], leadership: Leadership
    ) -> None:
        """Stand still for good; the marks on its topics go as well."""
        self.halt(ends, leadership)
        fence.retire(ends.destination, None, ends.flow.id, leadership.check)
        self._tell(ends, reporter)

    def _tell(self, ends: Ends[Statement], reporter: Reporter[Statement]) -> None:
        assert isinstance(reporter, StatementReporter)  # noqa: S101 - for the type checker
        written, dead = (self._behind(ends, topic) for topic in ends.flow.writes)
        crash_point("statement-after-stop")
        if not ends.flow.is_at_rest:
            reporter.halted({}, written, dead)

    def _behind(self, ends: Ends[Statement], name: str) -> dict[int, int]:
        """Partition -> stream offset behind the last record of a topic, as far as it can tell."""
        statement, found = ends.flow, ends.destination.topic(name)
        begin = statement.begin_of(name)
        if found is None or statement.stream_topic_id is None:
            return {}
        fence.settle(ends.destination_log, name, found.partitions, self.quiet_s)
        origin = Origin(statement.cluster, statement.stream_topic_id)
        try:
            return positions(read_tail(ends.destination_log, name, found.partitions, origin, begin))
        except CopyError as fault:
            # what is wrong with the topic is for the next start to say
            log.warning("tail_not_read", id=statement.id, code=fault.code, reason=fault.reason)
            return {}
