"""The port to what runs links and statements, and the values that pass through it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from mesh_events.kafka.connection import Connection
from spark_streams.provenance import Origin

Answer = TypeVar("Answer")


class Work(Protocol):
    """What is done with each record on its way."""

    def apply(self, session: Any, records: Any, origin: Origin) -> Any:
        """Records for the sink, each with its topic, from those of the source.

        Args:
            session: of the server that runs it; it may be told settings and functions.
            records: as Spark's Kafka source gives them.
            origin: what they were read from.

        Returns:
            DataFrame[topic: string, key: binary, value: binary, partition: int, headers: array];
            at most one for each record, in the same partition, with `mesh.source` as last header.
        """


@dataclass(frozen=True, slots=True)
class CopySpec:
    """One incarnation of one link or statement.

    link: its id.
    writer: principal of this incarnation; never used before.
    source, destination: where and as whom to read and write.
    start: partition -> source offset of the first record to be copied, for every partition.
    max_record_bytes: largest record that the destination takes.
    work: what is done with each record; None: it is copied as it is.
    """

    link: str
    writer: str
    source: Connection
    source_topic: str
    origin: Origin
    destination: Connection
    destination_topic: str
    start: Mapping[int, int] = field(hash=False)
    max_record_bytes: int
    work: Work | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class Running:
    """The engine has a living query of this incarnation."""

    writer: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The query of this incarnation ended by itself.

    reason: in a sentence, with nothing of a record.
    text: the error in full, for a local file.
    """

    writer: str
    reason: str
    text: str = ""


States = Mapping[str, tuple[Running | Failed, ...]]
"""Link or statement -> what the engine knows of it; one that is left out does not run."""


class FlowEngine(Protocol):
    """Runs flows. Every call is bounded in time; one caller at a time.

    Every method raises EngineError (`engine_unavailable`) if the engine does not answer.
    """

    @property
    def is_stopped(self) -> bool:
        """Whether it runs nothing, and is started when it is next asked."""

    def states(self) -> States:
        """Every living query, also those started by an earlier process, and those that failed."""

    def require_room(self, link: str, partitions: int) -> None:
        """Raise EngineError `engine_full` where a copy of so many partitions would find no room.

        Whatever runs of the link itself was stopped before.
        """

    def start(self, spec: CopySpec) -> None:
        """Start a copy and return when it lives.

        Raises:
            EngineError: also `engine_full` or `query_failed`.
        """

    def stop(self, link: str) -> None:
        """Stop every query of a link and forget its failures; none is fine."""

    def progress(self, link: str) -> Mapping[int, int]:
        """Partition -> source offset before which everything was dealt with and is written.

        As the living query last told, which is seldom; {} as long as it has not.
        """

    def ask(self, doing: str, act: Callable[[Any], Answer]) -> Answer:
        """What comes of `act`, which is given a session of the engine; `doing` is for errors."""

    def close(self) -> None:
        """Leave the engine; the copies go on."""
