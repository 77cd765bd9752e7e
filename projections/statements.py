"""Streaming SQL: the statements of domains and how far each has come."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from immutables import Map

from mesh_events.intents import domain_of
from mesh_events.rows import StatementState
from mesh_events.statements import (
    Begin,
    StatementActivated,
    StatementAdded,
    StatementAdvanced,
    StatementFact,
    StatementFailed,
    StatementHalted,
    StatementIntent,
    StatementUpdated,
    Wording,
)
from projections import life
from projections.copied_facts import remembered
from projections.lineage.runs import EndedRun, with_end
from projections.links import Desired, forward
from projections.table import Table

State = StatementState
_LONGEST_OFFSET = 18  # digits
STATEMENT_SOUND = "statement_sound"
"""The check whose evidence tells for LATEST where the stream ended."""
DESTINATION_FREE = "destination_free"
"""The check whose evidence tells of one that comes back: its topics' ends, its stream's begin."""
TOPIC_ID = "topic_id"
"""Name under which a check tells Kafka's id of what it looked at."""
STREAM_ID = "stream_id"
"""Name under which it tells Kafka's id of the stream."""
BEGIN_OF = "begin/"
"""Begins the names under which it tells the first offsets of the stream's partitions."""
END_OF = "end/"
"""Begins the names under which a check tells the ends of partitions."""
DEAD_END_OF = "dead/"
"""The same for the dead letters."""
DEAD_LETTERS = ".dead"
"""What the name of a destination's dead-letter topic ends in."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A text of SQL that fills a topic of its domain from others on the same cluster.

    `positions` maps partition -> stream offset before which every record was dealt with, and what
    came of it is safely in the destination or with the dead letters; `written` and `dead` are the
    offsets behind what stood in the two when it last stood still. One that came back to its topics
    found records there already: `out_begin` and `dead_begin` are the topics' own ends at that time.
    `told` holds the ids of the facts counted last at this generation. The operator has stopped one
    that is `held`. `correlation` is the conversation of the last word on it, `activated` the
    generation at which it last ran.
    """

    id: str
    cluster: str
    sql: str
    stream: str
    tables: tuple[str, ...]
    names: Map[str, str]
    application: str | None
    destination: str
    description: str
    begin: Begin
    desired: Desired
    state: State
    generation: int
    correlation: str
    created_generation: int
    created_at: int
    changed: int
    changed_at: int
    incarnation: int = 0
    principal: str | None = None
    run: str | None = None
    stream_topic_id: str | None = None
    table_topic_ids: Map[str, str] = field(default_factory=Map)
    table_partitions: Map[str, int] = field(default_factory=Map)
    destination_topic_id: str | None = None
    schema_id: int | None = None
    stream_schema_id: int | None = None
    positions: Map[str, int] = field(default_factory=Map)
    written: Map[str, int] = field(default_factory=Map)
    dead: Map[str, int] = field(default_factory=Map)
    out_begin: Map[str, int] = field(default_factory=Map)
    dead_begin: Map[str, int] = field(default_factory=Map)
    failure: str | None = None
    failure_code: str | None = None
    told: tuple[str, ...] = ()
    held: bool = False
    ended: tuple[EndedRun, ...] = ()
    activated: int | None = None

    @property
    def domain(self) -> str:
        """The domain that it belongs to."""
        return domain_of(self.id)

    @property
    def dead_letters(self) -> str:
        """Topic of the records that cannot be read."""
        return self.destination + DEAD_LETTERS

    @property
    def reads(self) -> tuple[str, ...]:
        """The stream, then the tables."""
        return (self.stream, *self.tables)

    @property
    def writes(self) -> tuple[str, ...]:
        """The destination, then the dead letters."""
        return (self.destination, self.dead_letters)

    @property
    def source_cluster(self) -> str:
        """Where it reads: where it writes."""
        return self.cluster

    @property
    def source_topic(self) -> str:
        """The stream."""
        return self.stream

    @property
    def source_topic_id(self) -> str | None:
        """Kafka's id of the stream's topic when it last ran."""
        return self.stream_topic_id

    @property
    def topic(self) -> str:
        """The destination."""
        return self.destination

    @property
    def is_active(self) -> bool:
        """Whether the log says that it runs."""
        return self.state is State.ACTIVE

    @property
    def is_at_rest(self) -> bool:
        """Whether the log says that it stands still as desired."""
        return self.state is State.STOPPED

    @property
    def is_over(self) -> bool:
        """Whether the log says that it is gone."""
        return self.state is State.DELETED

    @property
    def stands(self) -> bool:
        """Whether it was not deleted."""
        return self.desired is not Desired.DELETED

    def begin_of(self, topic: str) -> dict[int, int]:
        """Partition -> end of a topic that it fills when it came to it; empty: it made the topic.

        Records before that are of an earlier life, or of somebody else.
        """
        begin = self.out_begin if topic == self.destination else self.dead_begin
        return {int(partition): end for partition, end in begin.items()}

    def filled(self, topic_id: str | None) -> bool:
        """Whether it was deleted, and its destination was the topic with this id of Kafka's."""
        return self.is_over and topic_id is not None and topic_id == self.destination_topic_id


Statements = Table[str, Statement]
"""Statement id -> statement."""
EMPTY: Statements = Map()


def added(
    statements: Statements,
    event: StatementAdded,
    cluster: str,
    sound: Mapping[str, str],
    free: Mapping[str, str],
    generation: int,
    time: int,
) -> Statements:
    """A statement is wanted; of one that was deleted before its starts count on.

    One that is to begin at the LATEST record begins where its check has seen the stream's end. One
    that comes back to the topic that it filled leaves out what it has dealt with before.

    Args:
        statements: those there are.
        event: the intent.
        cluster: where it runs.
        sound: the evidence of the check STATEMENT_SOUND.
        free: the evidence of the check DESTINATION_FREE.
        generation: offset of the intent's decision.
        time: ms since 1970.
    """
    before = statements.get(event.statement)
    statement = Statement(
        id=event.statement,
        cluster=cluster,
        sql=event.sql,
        stream=event.stream,
        tables=tuple(event.tables),
        names=Map(event.names),
        application=event.application,
        destination=event.destination,
        description=event.description,
        begin=event.begin,
        desired=Desired.RUNNING,
        state=State.CREATED,
        generation=generation,
        correlation=event.meta.correlation,
        created_generation=generation,
        created_at=time,
        changed=generation,
        changed_at=time,
        incarnation=before.incarnation if before is not None else 0,
        held=before.held if before is not None else False,
        ended=before.ended if before is not None else (),
        positions=_offsets(sound, END_OF) if event.begin is Begin.LATEST else Map(),
    )
    if before is not None and before.filled(free.get(TOPIC_ID)):
        statement = _back(statement, before, free)
    return statements.set(event.statement, statement)


def _back(statement: Statement, before: Statement, free: Mapping[str, str]) -> Statement:
    """It fills the topics that it filled before it was deleted.

    With the same stream it goes on at its floor, or behind what the stream has no more.
    """
    stream = free.get(STREAM_ID)
    back = replace(
        statement,
        stream_topic_id=stream,
        destination_topic_id=before.destination_topic_id,
        out_begin=_offsets(free, END_OF),
        dead_begin=_offsets(free, DEAD_END_OF),
    )
    if statement.begin is Begin.LATEST or stream is None or stream != before.stream_topic_id:
        return back
    return replace(
        back,
        positions=forward(before.positions, _offsets(free, BEGIN_OF)),
        written=before.written,
        dead=before.dead,
        stream_schema_id=before.stream_schema_id,
    )


def updated(
    statements: Statements, event: StatementUpdated, generation: int, time: int
) -> Statements:
    """Another text, from where the one before it stands."""
    statement = replace(statements[event.statement], **_wording(event))
    if statement.desired is Desired.RUNNING:
        statement = replace(statement, state=State.CREATED)
    return _decided(statements, statement, event, generation, time)


def redirected(
    statements: Statements,
    event: StatementIntent,
    desired: Desired,
    generation: int,
    time: int,
    *,
    by_operator: bool = False,
) -> Statements:
    """Somebody stopped, started or deleted it; what the operator stops is held."""
    statement = life.redirected(statements[event.statement], desired, by_operator=by_operator)
    return _decided(statements, statement, event, generation, time)


def reported(statements: Statements, event: StatementFact, offset: int, time: int) -> Statements:
    """Its controller reported; a report on an older generation, or a copy, changes nothing."""
    statement = statements.get(event.statement)
    if statement is None or not life.is_news(statement, event):
        return statements
    after = with_end(statement, _reported(statement, event), event, offset)
    if after == statement:
        return statements
    if not isinstance(event, StatementAdvanced):  # told often, and a copy moves nothing back
        after = replace(after, told=remembered(statement.told, event.meta.id))
    return statements.set(event.statement, replace(after, changed=offset, changed_at=time))


def _reported(statement: Statement, event: StatementFact) -> Statement:
    match event:
        case StatementActivated() if (
            # a late report must not name an old principal as the writer: the fence needs it
            statement.desired is Desired.RUNNING and event.incarnation >= statement.incarnation
        ):
            return replace(
                statement,
                state=State.ACTIVE,
                activated=statement.generation,
                incarnation=event.incarnation,
                principal=event.principal,
                run=event.run,
                stream_topic_id=event.stream_topic_id,
                table_topic_ids=Map(event.table_topic_ids),
                table_partitions=Map(event.table_partitions),
                destination_topic_id=event.destination_topic_id,
                schema_id=event.schema_id,
                stream_schema_id=event.stream_schema_id,
                positions=forward(statement.positions, event.positions),
                failure=None,
                failure_code=None,
            )
        case StatementAdvanced():
            return replace(statement, positions=forward(statement.positions, event.positions))
        case StatementHalted() if statement.desired is not Desired.RUNNING:
            return replace(
                life.halted(statement),
                positions=forward(statement.positions, event.positions),
                written=forward(statement.written, event.written),
                dead=forward(statement.dead, event.dead),
            )
        case StatementFailed():
            return life.failed(statement, event.reason, event.code)
    return statement


def _offsets(evidence: Mapping[str, str], prefix: str) -> Map[str, int]:
    """Partition -> offset, as far as it can be read: a fact must never stop the fold."""
    told = {
        name.removeprefix(prefix): text
        for name, text in evidence.items()
        if name.startswith(prefix)
    }
    return Map(
        {
            partition: int(text)
            for partition, text in told.items()
            if _is_offset(text) and _is_offset(partition)
        }
    )


def _is_offset(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_OFFSET


def _wording(event: Wording) -> dict[str, Any]:
    return {
        "sql": event.sql,
        "stream": event.stream,
        "tables": tuple(event.tables),
        "names": Map(event.names),
        "application": event.application,
    }


def _decided(
    statements: Statements,
    statement: Statement,
    event: StatementIntent,
    generation: int,
    time: int,
) -> Statements:
    return statements.set(statement.id, life.decided(statement, event, generation, time))
