"""Streaming SQL on the log: what domains want of their statements, and what came of it.

A statement reads topics of its domain's home cluster and fills another topic there. Its text may
call a topic by the name of a product; `names` tells which topic is meant, so that the log says what
is read even when a catalog has changed since.
"""

from enum import StrEnum

from pydantic import Field

from mesh_events.facts import Fact
from mesh_events.intents import Intent


class Begin(StrEnum):
    """Where a new statement begins in its stream; UNKNOWN is what an older reader sees."""

    UNKNOWN = "UNKNOWN"
    EARLIEST = "EARLIEST"
    LATEST = "LATEST"


class StatementIntent(Intent):
    """What all intents about a statement name."""

    statement: str = Field(description="Statement id, <domain>.<name>")

    @property
    def key(self) -> str:
        """`statement/<domain>/<name>`."""
        return f"statement/{self.statement.replace('.', '/', 1)}"


class Wording(StatementIntent):
    """A statement's text and what it reads: what adding and updating one have in common."""

    sql: str = Field(description="The text, [INSERT INTO topic] SELECT ... FROM topic")
    stream: str = Field(description="Topic that is read record by record")
    tables: list[str] = Field(
        default_factory=list, description="Topics in which the latest row of a key is looked up"
    )
    names: dict[str, str] = Field(
        default_factory=dict, description="Name in the text -> topic, for names that are no topics"
    )
    application: str | None = Field(
        default=None, description="Application under whose grants other domains' topics are read"
    )


class StatementAdded(Wording):
    """Emitted by a domain: from now on this text fills a topic of the domain."""

    destination: str = Field(description="Topic that is filled, <domain>.<something>")
    description: str = Field(default="", description="What it is for")
    begin: Begin = Field(
        default=Begin.EARLIEST, description="EARLIEST or LATEST record of the stream"
    )


class StatementUpdated(Wording):
    """Emitted by a domain: another text goes on where the one before it stands."""


class StatementStopped(StatementIntent):
    """Emitted by the domain or the operator: the statement stands still, its topic stays."""

    reason: str = Field(default="", description="Why, for the audit")


class StatementStarted(StatementIntent):
    """Emitted by the domain or the operator: a statement that stood still goes on."""

    reason: str = Field(default="", description="Why, for the audit")


class StatementDeleted(StatementIntent):
    """Emitted by the domain or the operator: the statement ends; its topic stays the domain's."""

    reason: str = Field(default="", description="Why, for the audit")


class StatementFact(Fact):
    """What all facts about a statement name."""

    statement: str = Field(description="Statement id, <domain>.<name>")
    generation: int = Field(description="Generation of the statement that this satisfies")

    @property
    def key(self) -> str:
        """`statement/<domain>/<name>`."""
        return f"statement/{self.statement.replace('.', '/', 1)}"


class StatementActivated(StatementFact):
    """The statement runs: each record of the stream is dealt with once."""

    incarnation: int = Field(description="Counts the starts of this statement, from 1")
    principal: str = Field(description="Principal that writes the destination in this incarnation")
    run: str = Field(description="OpenLineage run id of this incarnation")
    stream_topic_id: str = Field(description="Kafka's id of the stream's topic")
    table_topic_ids: dict[str, str] = Field(description="Table -> Kafka's id of its topic")
    destination_topic_id: str = Field(description="Kafka's id of the destination")
    schema_id: int = Field(description="Schema of the destination's values in the registry")
    positions: dict[str, int] = Field(
        description="Partition -> stream offset from which on records are dealt with"
    )
    table_partitions: dict[str, int] = Field(
        default_factory=dict, description="Table -> number of partitions of its topic"
    )
    stream_schema_id: int | None = Field(
        default=None, description="Schema by which the stream's values are read"
    )


class StatementAdvanced(StatementFact):
    """Every record before `positions` was dealt with, and what came of it is in its topic."""

    positions: dict[str, int] = Field(description="Partition -> stream offset")


class StatementHalted(StatementFact):
    """The statement stands still as desired, or is deleted; nobody writes for it any more."""

    positions: dict[str, int] = Field(description="Partition -> stream offset")
    written: dict[str, int] = Field(
        default_factory=dict,
        description="Partition -> stream offset behind the last record of the destination",
    )
    dead: dict[str, int] = Field(
        default_factory=dict,
        description="Partition -> stream offset behind the last of the dead letters",
    )


class StatementFailed(StatementFact):
    """The statement cannot run; `retriable` tells whether its controller tries again by itself."""

    code: str = Field(description="Stable code of the failure")
    reason: str = Field(description="What happened and the next step")
    retriable: bool = Field(description="The controller tries again by itself")


STATEMENT_INTENTS: tuple[type[Intent], ...] = (
    StatementAdded,
    StatementUpdated,
    StatementStopped,
    StatementStarted,
    StatementDeleted,
)
STATEMENT_FACTS: tuple[type[Fact], ...] = (
    StatementActivated,
    StatementAdvanced,
    StatementHalted,
    StatementFailed,
)
