"""Standing by: while another worker owns the log, this one folds what comes, and does nothing else.

Whoever takes over then reads a moment of the log and not all of it.
"""

import asyncio

import structlog

from mesh_events.errors import MeshError, StateFaultError
from mesh_events.kafka.connection import Connection
from mesh_events.read import LogReader
from processors.governor.governor import Governor

log = structlog.get_logger(__name__)
LOOK_S = 0.1
"""So long a look at the log waits for something new; a worker that takes over waits for one."""
AGAIN_S = 1.0
"""Wait before the next look at a log that could not be read."""


class Standby:
    """The fold of a worker that waits.

    Args:
        connection: login that reads the log.
        governor: takes the records in offset order, and passes over what it has.
        folding: held while records are folded.
    """

    def __init__(self, connection: Connection, governor: Governor, folding: asyncio.Lock) -> None:
        self._connection, self._governor, self._folding = connection, governor, folding
        self._waits = asyncio.Event()
        self._waits.set()
        self._reached = False

    @property
    def is_near(self) -> bool:
        """Whether it has folded what was on the log when it began to follow it."""
        return self._reached

    def over(self) -> None:
        """The log is ours now: it is read in another way."""
        self._waits.clear()
        self._reached = False

    def again(self) -> None:
        """The log is another's."""
        self._waits.set()

    async def run(self) -> None:
        """Follow the log whenever it is another's, until cancelled."""
        while True:
            await self._waits.wait()
            try:
                await self._follow()
            except StateFaultError:
                raise
            except MeshError as error:
                self._reached = False
                log.warning("standby_cannot_read", error=str(error))
                await asyncio.sleep(AGAIN_S)

    async def _follow(self) -> None:
        await asyncio.to_thread(self._governor.begin)
        with LogReader(self._connection, self._governor.image.offset + 1) as reader:
            end = (await asyncio.to_thread(reader.partition.bounds))[1]
            while self._waits.is_set():
                async with self._folding:
                    await asyncio.to_thread(self._look, reader)
                self._reached = self._waits.is_set() and reader.partition.position >= end

    def _look(self, reader: LogReader) -> None:
        self._governor.fold(reader.follow(LOOK_S))
