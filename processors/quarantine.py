"""The people's copy of what was set aside; the decision on the log is what counts."""

from confluent_kafka import Producer

from mesh_events import topics
from mesh_events.decisions import IntentQuarantined
from mesh_events.kafka import Connection
from mesh_events.record import Record

_PREFIX_BYTES = 64 * 1024


class Quarantine:
    """Copies set-aside records to `mesh.quarantine`, keyed by their offset on the log.

    At most the first 64 KiB of a value are copied; the whole stands on the log.
    """

    def __init__(self, connection: Connection) -> None:
        self._producer = Producer(connection.config(enable_idempotence=True))

    def copy(self, record: Record, decision: IntentQuarantined) -> None:
        """Hand over one record; a copy that is lost is only a copy."""
        headers: list[tuple[str, bytes]] = [
            ("offset", str(record.offset).encode()),
            ("code", decision.code.encode()),
            ("reason", decision.reason.encode()),
            ("bytes", str(len(record.value or b"")).encode()),
        ]
        value = (record.value or b"")[:_PREFIX_BYTES]
        self._producer.produce(
            topics.QUARANTINE, key=str(record.offset).encode(), value=value, headers=headers
        )
        self._producer.poll(0)
