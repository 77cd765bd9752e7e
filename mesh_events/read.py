"""Reading the log and the rows: from any position to the end, or on and on.

Positions are plain offsets: keep the last one you handled, and start at the next to resume.
"""

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Message
from fastavro.schema import SchemaParseException, UnknownType

from mesh_events import avro, topics
from mesh_events.codec import build, schema_id_of, unframe
from mesh_events.errors import InfrastructureError, StateFaultError, UnusableRecordError
from mesh_events.kafka.connection import Connection, plain_headers
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.record import FaultCode, Record
from mesh_events.rows import Row
from mesh_events.vocabulary import ROW_TYPES

if TYPE_CHECKING:
    # its client takes longer to import than all of this
    from mesh_events.schema.registry import Registry


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
        self.partition = PartitionReader(
            connection, topics.GOVERNANCE, start, brief=brief, gapless=True
        )

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


def _name_of(schema: str) -> str:
    """The name of a record's schema without our namespace; raises UnusableRecordError."""
    try:
        parsed: Any = avro.parsed(schema)
        if isinstance(parsed, dict) and parsed.get("type") == "record":
            return str(parsed["name"]).removeprefix(f"{avro.NAMESPACE}.")
    except (ValueError, TypeError, KeyError, RecursionError, SchemaParseException, UnknownType):
        pass
    raise UnusableRecordError(FaultCode.UNKNOWN_SCHEMA, "its schema is not of a record of Avro")


def decode_row(value: bytes, registry: "Registry") -> Row:
    """The row in a framed value; raises UnusableRecordError for anything else."""
    writer = registry.schema_text(schema_id_of(value))
    name = _name_of(writer)
    model: Any = ROW_TYPES.get(name)
    if model is None:
        raise StateFaultError(f"{name} is not a row of this mesh: bring this program up to date")
    row: Row = build(model, unframe(value, writer, avro.text_of(name)))
    return row
