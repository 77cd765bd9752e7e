"""Bringing the log's records to the governor's fold, by a client of the mesh's own.

Faust tells that there is more: what its client has read is not taken, see `consumer`. What a worker
has appended itself need not be read back, unless much stands before it.
"""

import asyncio
import threading
from collections.abc import Sequence

from mesh_events.kafka.connection import Connection
from mesh_events.read import LogReader
from mesh_events.record import Record
from processors.governor.governor import Governor
from projections.integrity.trusted_prefix import IntegrityError

FEW = 64
"""So many records that are behind are waited for; more are read at once."""


class LogFold:
    """One worker's fold; records are folded under `lock`, whoever brings them.

    Args:
        connection: login that reads the log.
        governor: takes the records in offset order, and passes over what it has.
    """

    def __init__(self, connection: Connection, governor: Governor) -> None:
        self._connection, self._governor = connection, governor
        self._reader: LogReader | None = None
        self._reading = threading.Lock()
        self.lock = asyncio.Lock()

    @property
    def offset(self) -> int:
        """Of the last record that is folded."""
        return self._governor.image.offset

    async def read_to(self, offset: int) -> None:
        """Fold what is there, unless the record at this offset is folded."""
        async with self.lock:
            if offset > self.offset:
                await asyncio.to_thread(self._read)

    async def echo(self, records: Sequence[Record]) -> None:
        """Fold what was just appended: no need to read it back, unless something stands between."""
        async with self.lock:
            if records[0].offset - 1 - self.offset > FEW:
                await asyncio.to_thread(self._read)
                return
            for record in records:
                # the reader may have brought the first of them already
                if record.offset > self.offset + 1:
                    return
                self._governor.fold([record], ours=True)

    async def catch_up(self) -> None:
        """Fold up to the end of the log as it is now."""
        async with self.lock:
            await asyncio.to_thread(self._read)

    def _read(self) -> None:
        # a task that is cancelled leaves its thread reading, and frees the other lock: two threads
        # with one reader would take records from each other
        with self._reading:
            try:
                self._read_once()
            except IntegrityError:
                # now without believing anything
                self._read_once()

    def _read_once(self) -> None:
        if self._reader is None:
            self._reader = LogReader(self._connection, None)
        try:
            self._governor.fold(self._reader.since(self.offset + 1))
        except BaseException:
            reader, self._reader = self._reader, None
            reader.partition.close()
            raise
        self._reader.partition.rest()
        self._governor.caught_up()
