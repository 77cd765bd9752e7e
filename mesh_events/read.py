"""Reading the log and the rows: from any position to the end, or on and on.

Positions are plain offsets: keep the last one you handled, and start at the next to resume.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mesh_events import avro, topics
from mesh_events.codec import build, schema_id_of, unframe
from mesh_events.errors import InfrastructureError, StateFaultError, UnusableRecordError
from mesh_events.kafka import (
    Connection,
    is_denied,
    is_login_refused,
    plain_headers,
    translated,
    translating,
)
from mesh_events.record import Record
from mesh_events.rows import Row
from mesh_events.vocabulary import ROW_TYPES

if TYPE_CHECKING:
    # its client takes longer to import than all of this
    from mesh_events.registry import Registry

_TUNED = {
    # measured: together they double the rate of a long replay
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 262_144,
    "fetch.max.bytes": 67_108_864,
    "max.partition.fetch.bytes": 16_777_216,
    "fetch.wait.max.ms": 50,
}
_BRIEF = {
    # what is fetched ahead and not wanted costs more than another question
    "queued.min.messages": 1000,
    "fetch.max.bytes": 1_048_576,
    "max.partition.fetch.bytes": 1_048_576,
    "fetch.wait.max.ms": 10,
}


class PartitionReader:
    """Partition 0 of one topic from an offset on, without a group and without commits.

    `position` is the offset to go on from: behind the last message that was handed out, however
    many came with it. With None for `start` nothing is fetched until `seek`. One that is `brief` is
    quick to read a few records here and there, and slow to read very many.
    """

    def __init__(
        self, connection: Connection, topic: str, start: int | None = 0, *, brief: bool = False
    ) -> None:
        self._topic = topic
        self._doing = f"reading {topic} at {connection.bootstrap_servers} as {connection.user}"
        self._consumer = Consumer(
            {
                **connection.config(),
                **(_BRIEF if brief else _TUNED),
                # never joined, but Kafka asks for the right to it: a name below the user's own
                "group.id": f"{connection.user}.reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # what stands on the log counts, in a transaction or not: every reader must agree
                "isolation.level": "read_uncommitted",
                # an offset that is not there (any more) is a fault, never a silent jump
                "auto.offset.reset": "error",
                "error_cb": self._note,
            }
        )
        self._refused: KafkaError | None = None
        # fetched, and not handed out yet: who stops reading in the middle goes on there
        self._ahead: deque[Message] = deque()
        self._fetched = 0
        if start is not None:
            self.seek(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    @property
    def position(self) -> int:
        """The offset to go on from."""
        return int(self._ahead[0].offset()) if self._ahead else self._fetched

    def seek(self, offset: int) -> None:
        """Go on reading at `offset`."""
        self._ahead.clear()
        self._fetched = offset
        self._consumer.assign([TopicPartition(self._topic, 0, offset)])

    def rest(self) -> None:
        """Fetch nothing until `seek`; who waits at an end asks for more twenty times a second."""
        self._fetched = self.position
        self._ahead.clear()
        self._consumer.unassign()

    def bounds(self, timeout: float = 15) -> tuple[int, int]:
        """(first offset, end offset) of the partition now. Raises as `poll`."""
        place, deadline = TopicPartition(self._topic, 0), time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            try:
                with translating(self._doing):
                    low, high = self._consumer.get_watermark_offsets(
                        place, timeout=max(0.1, min(left, 1.0))
                    )
                return int(low), int(high)
            except InfrastructureError:
                self._hear_refusal()
                if left <= 1.0:
                    raise
                self._learn_leader()

    def poll(self, timeout: float) -> Iterator[Message]:
        """What has arrived, in offset order; waits up to `timeout` seconds for the first.

        What a caller does not take is handed out by the next call. Raises RefusedError,
        ConfigurationError or InfrastructureError for what Kafka refuses.
        """
        if not self._ahead:
            self._ahead.extend(self._fetch(timeout))
        return self._handed_out()

    def _handed_out(self) -> Iterator[Message]:
        while self._ahead:
            yield self._ahead.popleft()

    def _fetch(self, timeout: float) -> list[Message]:
        good: list[Message] = []
        with translating(self._doing):
            messages = self._some(timeout)
        self._raise_refusal()
        for message in messages:
            error = message.error()
            if error is None:
                good.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's name
                # markers of transactions take offsets and never arrive: only this tells of them
                self._fetched = max(self._fetched, message.offset())
            elif error.code() not in _PASSING:
                raise translated(error, self._doing)
        if good:
            self._fetched = max(self._fetched, good[-1].offset() + 1)
        return good

    def has_records(self, start: int, end: int, timeout: float = 5) -> bool:
        """Whether any record, not only markers of transactions, stands in [start, end).

        True also if that could not be found out within `timeout` seconds. Fetches nothing
        afterwards; `seek` goes on.
        """
        self.seek(start)
        deadline = time.monotonic() + timeout
        try:
            while self.position < end and time.monotonic() < deadline:
                if any(True for _ in self.poll(0.2)):
                    return True
            return self.position < end
        finally:
            self.rest()

    def to_end(self, timeout: float = 60) -> Iterator[Message]:
        """Every message up to the end as it was when the call began."""
        _, end = self.bounds()
        deadline = time.monotonic() + timeout
        while self.position < end:
            found = False
            for message in self.poll(0.2):
                found = True
                yield message
            if found:
                deadline = time.monotonic() + timeout
            elif time.monotonic() > deadline:
                raise InfrastructureError(
                    f"{self._doing}: stuck at offset {self.position} of {end}", retriable=True
                )

    def _note(self, error: KafkaError) -> None:
        if is_login_refused(error):
            self._refused = error

    def _raise_refusal(self) -> None:
        refused, self._refused = self._refused, None
        if refused is not None:
            raise translated(refused, self._doing)

    def _learn_leader(self) -> None:
        """Ask who leads now; raises RefusedError for who may not know.

        What is known of a partition that is not fetched lasts for minutes, also when its leader
        has died: measured, the question went to the dead broker until that came back.
        """
        found = None
        with suppress(KafkaException):
            found = self._consumer.list_topics(self._topic, timeout=1.0).topics.get(self._topic)
        if found is not None and found.error is not None and is_denied(found.error):
            raise translated(found.error, self._doing)

    def _hear_refusal(self) -> None:
        """A refused login is tried over and over, and only a poll is told of it."""
        assigned = self._consumer.assignment()
        # no record may get lost in this one
        self._consumer.pause(assigned)
        self._consumer.poll(0)
        self._consumer.resume(assigned)
        self._raise_refusal()

    def _some(self, timeout: float) -> list[Message]:
        """One poll that waits, then whatever else is there already."""
        first = self._consumer.poll(timeout)
        return [] if first is None else [first, *self._consumer.consume(10_000, 0)]


_PASSING = {
    KafkaError._TRANSPORT,  # noqa: SLF001 - it reconnects by itself
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
}


def to_record(message: Message) -> Record:
    """A message of the governance log as the folds take it."""
    return Record(
        offset=message.offset(),
        time=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=plain_headers(message),
    )


class LogReader:
    """The governance log from an offset on; `start` and `brief` as of `PartitionReader`."""

    def __init__(
        self, connection: Connection, start: int | None = 0, *, brief: bool = False
    ) -> None:
        self.partition = PartitionReader(connection, topics.GOVERNANCE, start, brief=brief)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.partition.close()

    def to_end(self) -> Iterator[Record]:
        """Every record up to the end of now; raises StateFaultError if the beginning is missing."""
        low, _ = self.partition.bounds()
        if low > self.partition.position:
            raise StateFaultError(
                f"{topics.GOVERNANCE} begins at offset {low}: records before it were deleted, "
                "so its state cannot be rebuilt; restore the log"
            )
        return map(to_record, self.partition.to_end())

    def since(self, offset: int) -> Iterator[Record]:
        """Every record from an offset on, up to the end of now; raises as `to_end`."""
        self.partition.seek(offset)
        return self.to_end()

    def between(self, first: int, last: int) -> Iterator[Record]:
        """The records from offset `first` to `last`; nothing is fetched afterwards.

        Raises as `to_end`.
        """
        try:
            for record in self.since(first):
                if record.offset > last:
                    return
                yield record
                if record.offset == last:
                    return
        finally:
            self.partition.rest()

    def follow(self, timeout: float) -> Iterator[Record]:
        """Records as they come, until `timeout` seconds have passed."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            yield from map(to_record, self.partition.poll(min(left, 1.0)))


class RowReader:
    """The rows of one projection, in the order of their topic.

    What is not a row is passed over: only an administrator can write it, and the mesh writes the
    right row behind it.

    Args:
        connection: login that may read the topic.
        registry: where the rows' schemas are found.
        row_topic: mesh.catalog, mesh.access or mesh.links.
        start: offset to resume from.
    """

    def __init__(
        self, connection: Connection, registry: "Registry", row_topic: str, start: int = 0
    ) -> None:
        self.partition = PartitionReader(connection, row_topic, start)
        self._registry = registry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.partition.close()

    def to_end(self) -> Iterator[tuple[int, Row]]:
        """(offset, row) up to the end of now."""
        return self._rows(self._to_end())

    def latest(self) -> dict[str, Row]:
        """Key -> latest row; a tombstone takes away a row that was not the mesh's."""
        found: dict[bytes, Row] = {}
        for message in self._to_end():
            key = message.key() or b""
            if message.value() is None:
                found.pop(key, None)
            elif (row := self.decode(message)) is not None:
                found[key] = row
        return {row.key: row for row in found.values()}

    def _to_end(self) -> Iterator[Message]:
        low, _ = self.partition.bounds()
        if self.partition.position < low:
            self.partition.seek(low)
        return self.partition.to_end()

    def _rows(self, messages: Iterable[Message]) -> Iterator[tuple[int, Row]]:
        for message in messages:
            row = self.decode(message)
            if row is not None:
                yield message.offset(), row

    def follow(self, timeout: float) -> Iterator[tuple[int, Row]]:
        """(offset, row) as they come, until `timeout` seconds have passed."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            yield from self._rows(self.partition.poll(min(left, 1.0)))

    def decode(self, message: Message) -> Row | None:
        """The row in a message, None for anything else under another key or without a row.

        Raises InfrastructureError if the registry does not answer.
        """
        value, key = message.value(), message.key()
        try:
            row = None if value is None else decode_row(value, self._registry)
        except UnusableRecordError:
            return None
        except InfrastructureError as error:
            # a registry that answers has no such schema: the id is no row's
            if error.retriable:
                raise
            return None
        return row if row is not None and row.key.encode() == key else None


def decode_row(value: bytes, registry: "Registry") -> Row:
    """The row in a framed value; raises UnusableRecordError for anything else."""
    writer = registry.schema_text(schema_id_of(value))
    name = str(avro.parsed(writer)["name"]).removeprefix(f"{avro.NAMESPACE}.")
    model: Any = ROW_TYPES.get(name)
    if model is None:
        raise StateFaultError(f"{name} is not a row of this mesh: bring this program up to date")
    row: Row = build(model, unframe(value, writer, avro.text_of(name)))
    return row
