"""What one start of a statement has found out: where it goes on, and what is done with a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import Topic
from processors.controllers.flows.copy_settings import copied_settings, max_record_bytes
from processors.controllers.flows.ends import Ends, until
from processors.lineage.events import Origin
from projections.statements import Statement
from spark_streams import provenance
from spark_streams.errors import CopyError
from spark_streams.log import Bounds
from spark_streams.sql.plan import Plan
from spark_streams.sql.running import work
from spark_streams.sql.running.again import again
from spark_streams.sql.running.frame import Result
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.resolve import Input
from spark_streams.standing import Budget, Filled, standing
from spark_streams.tail import Tails, positions, read_tail

_LARGEST = "max.message.bytes"


class StatementEnds(Ends[Statement]):
    """A statement's cluster: what it reads and what it fills is there."""

    what = "statement"
    end = "delete the statement"
    anew = "delete the statement and add it again"
    nothing = "delete the statement, delete its topics, and add it again"
    restart = "stop and start the statement"
    moves = True

    def is_fresh(self, found: Topic | None) -> bool:
        """Whether it has no topic yet; one that came back knows which it has to be."""
        del found
        return self.flow.destination_topic_id is None

    def is_complete(self) -> bool:
        """Whether the topic of the dead letters is there."""
        return self.destination.topic(self.flow.dead_letters) is not None

    def make_destination(self, source: Topic) -> Topic:
        """Make both topics with the stream's partitions, and wait until the cluster shows them."""
        # a dead letter is the stream's record, with two headers more
        config = {_LARGEST: copied_settings(source.config)[_LARGEST]}
        # rows of a table stay, and the latest of each is enough
        rows = {"cleanup.policy": "compact"} if parse(self.flow.sql).of_rows else {}
        for name in self.flow.writes:
            more = rows if name == self.flow.destination else {}
            self.destination.create_topic(name, source.partitions, config | more)
        self._require_alone(self._marks())
        found = [self._appeared(name) for name in self.flow.writes]
        return found[0]

    def _appeared(self, name: str) -> Topic:
        return until(lambda: self.destination.topic(name), f"the new topic {name} to appear")


@dataclass
class StatementPlan:
    """One start of a statement.

    schema, schema_id: of the result's values.
    tables: topic -> the table as its cluster has it.
    """

    statement: Statement
    plan: Plan
    schema: str
    schema_id: int
    tables: Mapping[str, Topic]
    _result: Result | None = field(default=None, init=False)

    def start(
        self,
        ends: Ends[Statement],
        source: Topic,
        destination: Topic,
        origin: provenance.Origin,
        *,
        fresh: bool,
    ) -> Mapping[int, int]:
        """From the floor on, passing over what is in the destination or with the dead letters.

        The two topics are written each by itself: one may be ahead of the other. What a record
        becomes may be another one than before, so that each is asked for by its own place.
        """
        del fresh
        statement, log = self.statement, ends.destination_log
        tails = [
            read_tail(log, topic, source.partitions, origin, statement.begin_of(topic))
            for topic in statement.writes
        ]
        # a topic that was emptied meanwhile no longer tells what stood in it
        told = [_numbered(one) for one in (statement.written, statement.dead)]
        bounds = ends.source_log.bounds(source.name, range(source.partitions))
        floor = self._floor(bounds)
        _require_there(floor, bounds, ends.anew)
        budget = Budget()
        stood = [
            standing(log, filled, floor, origin, budget)
            for filled in _filled(statement, tails, told)
        ]
        behind = [
            _furthest(known, positions(tail), {p: one.next for p, one in found.items()})
            for known, tail, found in zip(told, tails, stood, strict=True)
        ]
        _require_not_truncated(behind, bounds, ends.anew)
        self._result = Result(
            topic=statement.destination,
            dead=statement.dead_letters,
            schema_id=self.schema_id,
            schema=self.schema,
            out_from=behind[0],
            dead_from=behind[1],
            again=again(*stood),
            most_bytes=max_record_bytes(destination),
        )
        return floor

    def _floor(self, bounds: Bounds) -> dict[int, int]:
        """Partition -> stream offset before which everything was dealt with."""
        # what is known of the stream before its first start is where it is to begin
        known = _numbered(self.statement.positions)
        # where something is known, a partition that is missing was added since, and begins at 0
        # a table is read from its first record, which may have been deleted a moment ago
        is_whole = bool(known) or self.plan.stream.of_rows
        return {p: known.get(p, 0 if is_whole else bounds[p][0]) for p in sorted(bounds)}

    def work(self, writer: str, login: Connection) -> work.Statement:
        """What is done with each record."""
        assert self._result is not None  # noqa: S101 - `start` comes first
        plan, ids = self.plan, self._table_ids
        return work.Statement(
            writer, plan.query, plan.stream, plan.tables, self._result, login, ids
        )

    @property
    def _table_ids(self) -> dict[str, str]:
        return {name: found.id for name, found in self.tables.items()}

    def more(self) -> Mapping[str, Any]:
        """The schemas of the result and of the stream, and which tables are read."""
        return {
            "schema_id": self.schema_id,
            "stream_schema_id": self.plan.stream_schema_id,
            "table_topic_ids": self._table_ids,
            "table_partitions": {name: found.partitions for name, found in self.tables.items()},
        }

    def schemas(self) -> dict[str, str]:
        """Topic -> Avro schema of its values, of all that is read and of the result."""
        found = {table.name: table.shape.shape.schema for table in self.plan.tables.values()}
        found[self.statement.stream] = self.plan.stream.shape.schema
        return {**found, self.statement.destination: self.schema}

    def columns(self) -> dict[str, tuple[Origin, ...]]:
        """Column of the result -> the columns that it is made of."""
        return {
            out.name: tuple(self._origin(one) for one in out.inputs) for out in self.plan.query.out
        }

    def decides(self) -> tuple[Origin, ...]:
        """Columns by which rows are found, and records kept."""
        query = self.plan.query
        joining = [self._origin(one, "JOIN") for look in query.lookups for one in look.inputs]
        filtering = [self._origin(one, "FILTER") for one in query.filters]
        return tuple(dict.fromkeys([*joining, *filtering]))

    def _origin(self, read: Input, decides: str = "") -> Origin:
        table = self.plan.tables.get(read.alias)
        topic = self.statement.stream if table is None else table.name
        if decides:
            return Origin(topic, read.column, "INDIRECT", decides)
        return Origin(topic, read.column)


def _filled(
    statement: Statement, tails: Sequence[Tails], told: Sequence[Mapping[int, int]]
) -> list[Filled]:
    """The destination, then the dead letters, whose last two headers are the mesh's."""
    begins = [statement.begin_of(topic) for topic in statement.writes]
    out, dead = zip(statement.writes, tails, told, begins, strict=True)
    return [Filled(*out), Filled(*dead, says=True)]


def _numbered(told: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in told.items()}


def _furthest(*known: Mapping[int, int]) -> dict[int, int]:
    return {p: max(one.get(p, 0) for one in known) for p in {p for one in known for p in one}}


def require_no_more_partitions(ends: Ends[Statement], source: Topic) -> None:
    """Raise CopyError where a topic that is filled has more partitions than the stream.

    One that has fewer gets as many, in the course of the start.
    """
    for topic in (ends.destination.topic(name) for name in ends.flow.writes):
        if topic is not None and topic.partitions > source.partitions:
            raise CopyError(
                "partitions_differ",
                f"{source.name} has {source.partitions} partitions, {topic.name} has "
                f"{topic.partitions}, and Kafka removes none: add partitions to {source.name}, or "
                "add another statement that fills another topic",
            )


def _require_there(floor: Mapping[int, int], bounds: Bounds, anew: str) -> None:
    for partition, position in floor.items():
        low, _ = bounds[partition]
        if position < low:
            raise CopyError(
                "source_gap",
                f"partition {partition}: the statement goes on at offset {position}, but the "
                f"stream begins at {low}; keep records there for longer, then {anew}",
            )


def _require_not_truncated(behind: list[dict[int, int]], bounds: Bounds, anew: str) -> None:
    """The floor is no later than what was found from there on."""
    for partition, (_, end) in bounds.items():
        furthest = max(found.get(partition, 0) for found in behind)
        if furthest > end:
            raise CopyError(
                "source_truncated",
                f"partition {partition}: records up to offset {furthest} were dealt with, but the "
                f"stream ends at {end}: restore it, or {anew}, from the latest record on",
            )
