"""The statements controller: streaming SQL runs, stands still or is gone, as the log says.

Each domain's statements run on the domain's own Spark Connect server, in a lane of their own: a
domain whose server is slow or gone holds up nobody else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mesh_events.errors import RefusedError
from processors.clusters.kafka import Topic
from processors.controllers.controller import Leadership
from processors.controllers.flows.elections import require_clean
from processors.controllers.flows.ends import Ends, Reach
from processors.controllers.flows.flows import Flows
from processors.controllers.flows.pace import Pace
from processors.controllers.flows.partition_limit import OF_STATEMENTS, PartitionLimit
from processors.controllers.flows.starts import Starts
from processors.controllers.lanes import Job, Lanes, SerialLanes
from processors.controllers.statements.plan import (
    StatementEnds,
    StatementPlan,
    require_no_more_partitions,
)
from processors.controllers.statements.reporter import StatementReporter
from processors.controllers.statements.stopping import StatementEnd
from processors.lineage.events import Lineage
from projections.image import Image
from projections.lineage.filling import copying, unfilled, waits_for
from projections.lineage.sources import refused
from projections.statements import Statement
from spark_streams.engine import FlowEngine
from spark_streams.errors import TABLE_FILLING, CopyError, EngineError
from spark_streams.log import Ahead
from spark_streams.sql.plan import (
    Schemas,
    planned,
    record_name,
    require_keys_in_place,
    require_same,
    require_same_rows,
)
from spark_streams.sql.text.parse import parse

PATIENCE_S = 900.0
"""A statement that passes records over, or reads tables first, may bring out nothing for long."""


class ResultSchemas(Schemas, Protocol):
    """Where schemas of topics are looked up, and those of results registered."""

    def register_text(self, subject: str, text: str) -> int:
        """Register a schema and return its id; raises RefusedError `incompatible_schema`."""

    def register_texts(self, subject: str, texts: Sequence[str]) -> None:
        """Register schemas in their order; raises as `register_text`, for the last one alone."""


class StatementsController:
    """Keeps the statements.

    Args:
        clusters: how they are reached.
        engines: the engine of a domain; it is asked once for each.
        schemas: the registry.
        latest: the state by the latest record of the log, which may be newer than the one that is
            looked at.
        lineage: where each incarnation is told.
        pace: how often and how long.
        lanes: domains are kept side by side.
    """

    name = "statements"

    def __init__(
        self,
        clusters: Reach,
        engines: Callable[[str], FlowEngine],
        schemas: ResultSchemas,
        latest: Callable[[], Image],
        lineage: Lineage,
        pace: Pace | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self._clusters, self._schemas = clusters, schemas
        self._latest, self._lineage = latest, lineage
        self._engines, self._pace, self._lanes = engines, pace or Pace(), lanes or SerialLanes()
        self._domains: dict[str, Flows[Statement]] = {}
        self._starts = clusters.starts or Starts()

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Compare and repair every statement once, each domain's in a lane of its own."""
        domains: dict[str, list[Statement]] = {}
        for statement in image.statements.values():
            domains.setdefault(statement.domain, []).append(statement)
        domains = {name: here for name, here in domains.items() if not all(map(_rests, here))}

        def job(domain: str, here: list[Statement]) -> Job:
            return lambda: self._of(domain).reconcile(here, image, leadership)

        self._lanes.run(
            {name: job(name, here) for name, here in domains.items()}, image, leadership
        )

    def close(self) -> None:
        """Leave the engines and the clusters; the statements go on."""
        for flows in self._domains.values():
            flows.close()
        self._clusters.logs.close()

    def _of(self, domain: str) -> Flows[Statement]:
        if domain not in self._domains:
            engine = self._engines(domain)
            kind = Streaming(self._clusters, engine, self._schemas, self._latest, self._lineage)
            ending = StatementEnd(kind, engine, self._pace.quiet, self._starts)
            self._domains[domain] = Flows(kind, ending, engine, self._clusters, self._pace)
        return self._domains[domain]


class Streaming:
    """What makes a flow a statement: each record is dealt with as its text says."""

    name = "statement"
    lanes = 1

    def __init__(
        self,
        clusters: Reach,
        engine: FlowEngine,
        schemas: ResultSchemas,
        latest: Callable[[], Image],
        lineage: Lineage,
    ) -> None:
        self._clusters = clusters
        self._limit = PartitionLimit(clusters.most_partitions, OF_STATEMENTS)
        self._engine, self._schemas, self._latest = engine, schemas, latest
        self._lineage = lineage

    def queue(self, statement: Statement) -> str:
        """One lane for all of a domain: they share a server."""
        return statement.domain

    def reporter(
        self, statement: Statement, image: Image, leadership: Leadership
    ) -> StatementReporter:
        """Speaks about the statement."""
        return StatementReporter(statement, image, leadership, self._lineage)

    def ends(self, statement: Statement, image: Image) -> StatementEnds:
        """Connects the cluster."""
        admin, logs = self._clusters.admin(image, statement.cluster), self._clusters.logs
        return StatementEnds(
            statement,
            admin,
            admin,
            logs.source(image, statement.cluster),
            logs.destination(image, statement.cluster),
        )

    def withheld(self, statement: Statement, image: Image) -> CopyError | None:
        """A quarantine, a source that is not granted any more, a table that is still filled."""
        if statement.domain in image.identity.quarantines:
            return CopyError(
                "domain_quarantined",
                f"{statement.domain} is in quarantine: the statement goes on after its release",
            )
        if missing := refused(image, statement):
            reader = statement.application or f"an application of {statement.domain}"
            return CopyError(
                "source_not_granted",
                f"{', '.join(missing)} is not granted to {reader} any more: the statement goes on "
                "when it is granted again, or delete it",
            )
        # one that runs has begun over full tables, and goes on when a link starts again
        return None if statement.is_active else _filling(image, statement)

    def require_still(self, statement: Statement) -> None:
        """A grant may have ended, a quarantine or a table begun, since the start began."""
        image = self._latest()
        withheld = self.withheld(statement, image) or _filling(image, statement)
        if withheld is not None:
            raise withheld

    def require_size(self, ends: Ends[Statement], source: Topic) -> None:
        """The stream's partitions take slots and are those of the result; tables are read whole."""
        for topic in (source, *(_table(ends, name) for name in ends.flow.tables)):
            self._limit.require(topic, ends.source.name)

    def has_new_partitions(self, ends: Ends[Statement]) -> bool:
        """By the log: a start reports a position for each partition of the stream."""
        return ends.source_topic(fresh=False).partitions > len(ends.flow.positions)

    def plan(self, ends: Ends[Statement]) -> StatementPlan:
        """The text, over topics and schemas as they are now; its result's schema is registered."""
        statement = ends.flow
        self.require_still(statement)
        source = ends.source_topic(fresh=True)
        require_no_more_partitions(ends, source)
        tables = {name: _table(ends, name) for name in statement.tables}
        for table in tables.values():
            _require_known_partitions(statement, table)
            _require_filled_one(self._latest(), statement, table)
            _require_whole(ends, table)
        # what is registered from here on may be in records behind these ends
        asked_at = _ends_of(ends, source)
        try:
            parsed = parse(statement.sql)
            if parsed.of_rows:
                _require_kept_partitions(source, len(statement.positions))
                if not statement.positions:
                    _require_whole(ends, source)
            require_same(
                parsed,
                statement.names,
                statement.stream,
                statement.tables,
                statement.destination,
            )
            plan = planned(parsed, statement.names, self._schemas)
            require_keys_in_place(plan, {name: one.mixes_keys for name, one in tables.items()})
            if _has_rows(ends):
                require_same_rows(plan, statement.stream_schema_id)
            name, namespace = record_name(statement.destination)
            schema = self._engine.ask(
                f"analysing {statement.id}",
                lambda session: plan.result_schema(session, name, namespace),
            )
            schema_id = self._schemas.register_text(f"{statement.destination}-value", schema)
            if keys := list(plan.stream.key_writers.values()):
                self._schemas.register_texts(f"{statement.destination}-key", keys)
        except RefusedError as error:
            raise CopyError(error.code, str(error), error.text) from error
        plan = replace(plan, stream=replace(plan.stream, asked_at=asked_at))
        return StatementPlan(statement, plan, schema, schema_id, tables)

    def reached(self, ends: Ends[Statement]) -> dict[int, int]:
        """Partition -> stream offset up to which the last whole batch came."""
        statement = ends.flow
        ends.source_topic(fresh=False)
        ends.destination_topic()
        for name, known in statement.table_topic_ids.items():
            table = _table(ends, name)
            if table.id != known:
                raise EngineError(
                    "table_recreated",
                    f"the table {name} was deleted and made again: it is read anew",
                )
            _require_known_partitions(statement, table)
        return dict(self._engine.progress(statement.id))

    def news(
        self, ends: Ends[Statement], reached: Mapping[int, int], ahead: Mapping[int, Ahead]
    ) -> None:
        """Nothing waits for how far a statement has come."""
        del ends, reached, ahead

    def patience_s(self, statement: Statement, stall_s: float) -> float:
        """Long: how far a query has come is told with a whole batch only."""
        del statement
        return max(PATIENCE_S, stall_s)


def _rests(statement: Statement) -> bool:
    """Whether nobody has to look: no server is started to see that what is fenced does not run."""
    return statement.is_over or statement.is_at_rest


def _filling(image: Image, statement: Statement) -> CopyError | None:
    """Why a statement may not start yet: a table is a copy that has not all of its rows."""
    link = unfilled(image, statement)
    return CopyError(TABLE_FILLING, waits_for(link)) if link is not None else None


def _require_filled_one(image: Image, statement: Statement, table: Topic) -> None:
    """Raise EngineError where a table is another topic than the one that its link has filled."""
    links = copying(image, statement, table.name)
    if links and table.id not in {link.destination_topic_id for link in links}:
        raise EngineError(
            "table_recreated",
            f"the table {table.name} was deleted and made again, not by its link {links[0].id}: "
            "delete the link (which purges the copy) and create it again; then it is read anew",
        )


def _require_known_partitions(statement: Statement, table: Topic) -> None:
    """Raise CopyError where a table has got partitions since the statement first read it.

    A key whose rows stand in two partitions has no latest row: Kafka orders within a partition, and
    compaction leaves one row in each.
    """
    known = statement.table_partitions.get(table.name)
    if statement.table_topic_ids.get(table.name) == table.id and known is not None:
        _require_kept_partitions(table, known)


def _require_kept_partitions(table: Topic, known: int) -> None:
    """Raise CopyError where there are more than before; 0 where none were read."""
    if 0 < known < table.partitions:
        raise CopyError(
            "table_partitions_added",
            f"the table {table.name} has {table.partitions} partitions, and had {known} when it "
            "was first read: rows of one key may stand in two of them, and which is the latest is "
            "not known. Write its rows into a new topic and let the statement read that; or, where "
            "each key stays in its partition, delete the statement and add it again",
        )


def _require_whole(ends: Ends[Statement], table: Topic) -> None:
    """Raise CopyError where records of a table were deleted, but for those that are compacted.

    Its rows would be missing, as if they had never been there.
    """
    bounds = ends.source_log.bounds(table.name, range(table.partitions))
    if any(begin > 0 for begin, _ in bounds.values()):
        raise CopyError(
            "table_gap",
            f"the table {table.name} does not have its first records any more: its retention "
            "passed, or somebody deleted them. Write all rows into a new topic whose records are "
            "kept (cleanup.policy=compact), and let the statement read that",
        )


def _ends_of(ends: Ends[Statement], topic: Topic) -> dict[int, int]:
    """Partition -> its end now."""
    bounds = ends.source_log.bounds(topic.name, range(topic.partitions))
    return {partition: end for partition, (_, end) in bounds.items()}


def _has_rows(ends: Ends[Statement]) -> bool:
    """Whether anything was ever written to the destination."""
    topic = ends.destination.topic(ends.flow.destination)
    if topic is None:
        return False
    bounds = ends.destination_log.bounds(topic.name, range(topic.partitions))
    return any(end for _, end in bounds.values())


def _table(ends: Ends[Statement], name: str) -> Topic:
    found = ends.source.topic(name)
    if found is None:
        raise CopyError(
            "source_missing",
            f"the table {name} does not exist on cluster {ends.source.name}: create it again, or "
            f"{ends.end}",
        )
    require_clean(found, ends.source.name, ends.nothing, ends.restart)
    return found
