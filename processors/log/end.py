"""Where the log ends, as Kafka says: what a worker compares its fold with."""

from typing import Self

import structlog

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.topics import GOVERNANCE

log = structlog.get_logger(__name__)
_TIMEOUT_S = 5


class LogEnd:
    """Asks Kafka; every call is bounded in time, and no answer is an answer."""

    def __init__(self, connection: Connection) -> None:
        self._reader = PartitionReader(connection, GOVERNANCE, None, gapless=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def offset(self) -> int | None:
        """The offset behind the last record; None while Kafka does not answer."""
        try:
            return self._reader.bounds(timeout=_TIMEOUT_S)[1]
        except InfrastructureError as error:
            log.warning("log_unreachable", error=str(error))
            return None

    def only_markers(self, start: int, end: int) -> bool:
        """Whether nothing to be folded stands in [start, end).

        The marker of a transaction has an offset and is never folded.
        """
        try:
            return not self._reader.has_records(start, end)
        except InfrastructureError as error:
            log.warning("log_unreachable", error=str(error))
            return False
