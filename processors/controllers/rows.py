"""The rows controller: what stands on the projections' topics is what the image says, always.

Rows are published by the governor as it folds. This controller reads the topics from the outside
and writes again what is missing, foreign or went back, such as after a crash between two rows.
"""

from collections.abc import Callable

import structlog

from mesh_events.errors import InfrastructureError, MeshError, WaitTimeoutError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.read import decode_row
from mesh_events.rows import Row
from mesh_events.schema.registry import Registry
from mesh_events.topics import ROW_TOPICS
from processors.controllers.controller import Leadership, guarded
from processors.governor.row_writer import RowWriter
from projections.image import Image, RowKey
from projections.rows import all_rows, row

log = structlog.get_logger(__name__)
_FOREIGN = object()
"""Stands for a record on a row topic that no version of the mesh has written."""


class RowsController:
    """Keeps the latest row of every key as read from Kafka, and repairs what differs."""

    name = "rows"

    def __init__(
        self,
        connection: Connection,
        registry: Registry,
        writer: RowWriter,
        current: Callable[[], Image],
    ) -> None:
        self._connection, self._registry, self._writer = connection, registry, writer
        self._current = current
        self._readers: dict[str, PartitionReader] = {}
        self._latest: dict[RowKey, Row | object | None] = {}
        self._suspects: dict[RowKey, tuple[object, object]] = {}
        self._complete_in: int | None = None
        """The leadership in which every row was looked at once."""

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Read what is new on the topics; repair what is wrong at two looks in a row.

        A row that was published since the look is on its way: at the next look it is there.
        One that is lost ends the worker.
        """
        try:
            self._writer.flush()
        except WaitTimeoutError as error:
            log.warning("rows_not_read", error=str(error))
            return
        try:
            seen = self._read()
        except InfrastructureError as error:
            log.warning("rows_not_read", error=str(error))
            return
        # what was folded while another worker led was published by nobody here
        if self._complete_in != leadership.epoch:
            seen |= {(found.topic, found.key) for found in all_rows(image)}
        leadership.check()
        latest = self._current()
        before, self._suspects = self._suspects, {}
        for key in seen | before.keys():
            found = (self._latest.get(key), row(latest, key))
            if found[0] != found[1]:
                self._suspects[key] = found
        self._complete_in = leadership.epoch
        certain = [key for key, found in self._suspects.items() if before.get(key) == found]
        if certain:
            self._repair(sorted(certain))

    def _repair(self, wrong: list[RowKey]) -> None:
        # the governor publishes under the same lock: nothing older can follow something newer
        with self._writer.lock:
            image = self._current()
            for topic, name in wrong:
                wanted = row(image, (topic, name))
                if wanted is None:
                    self._writer.tombstone(topic, name.encode(errors="surrogateescape"))
                else:
                    self._writer.write([wanted])
        log.info("rows_repaired", count=len(wrong))

    def _read(self) -> set[RowKey]:
        """Take in everything up to the end; returns the keys that were met."""
        seen: set[RowKey] = set()
        for topic in ROW_TOPICS:
            reader = self._readers.get(topic)
            if reader is None:
                reader = self._readers[topic] = PartitionReader(self._connection, topic, None)
            low, end = reader.bounds()
            if reader.position >= end:
                continue
            reader.seek(max(low, reader.position))
            for message in reader.to_end():
                key = (message.key() or b"").decode(errors="surrogateescape")
                self._latest[topic, key] = self._row(message.value(), topic, key)
                seen.add((topic, key))
            reader.rest()
        return seen

    def _row(self, value: bytes | None, topic: str, key: str) -> Row | object | None:
        """The row in a value; None for a tombstone, _FOREIGN for what is not a row of ours."""
        if value is None:
            return None
        try:
            with guarded(f"a record on {topic}"):
                return decode_row(value, self._registry)
        except MeshError as error:
            log.warning("foreign_row", topic=topic, key=key, error=str(error))
            return _FOREIGN
