"""The people's copy of what was set aside; the decision on the log is what counts."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import structlog
from confluent_kafka import Producer

from mesh_events import topics
from mesh_events.decisions import Decision
from mesh_events.kafka.connection import Connection
from mesh_events.record import Fault, Record

log = structlog.get_logger(__name__)

SAMPLES = 8
"""Unusable records that are kept until their decision, and at most copied of one range."""
_PREFIX_BYTES = 64 * 1024


class Copy(NamedTuple):
    """A record that was set aside, and why; `left_out` others of its range are not copied."""

    record: Record
    code: str
    reason: str
    left_out: int = 0


class Samples:
    """A few of the undecided unusable records; used by the threads that fold and that decide."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[tuple[Record, Fault]] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, record: Record, fault: Fault) -> None:
        """Keep a record if there is room."""
        with self._lock:
            if len(self._kept) < SAMPLES:
                self._kept.append((record, fault))

    def keep(self, is_open: Callable[[int], bool]) -> None:
        """Keep only records that are undecided."""
        with self._lock:
            self._kept = deque(one for one in self._kept if is_open(one[0].offset))

    def take(self, event: Decision, size: int) -> list[Copy]:
        """The records that a decision sets aside, of `size` in all; they are kept no longer."""
        with self._lock:
            found = [one for one in self._kept if event.decides(one[0].offset)]
            self._kept = deque(one for one in self._kept if one not in found)
        left_out = size - len(found)
        return [Copy(record, fault.code, fault.reason, left_out) for record, fault in found]


class Quarantine:
    """Copies set-aside records to `mesh.quarantine`, keyed by their offset on the log.

    At most the first 64 KiB of a value are copied; the whole stands on the log.
    """

    def __init__(self, connection: Connection) -> None:
        self._producer = Producer(connection.config(enable_idempotence=True))

    def copy(self, one: Copy) -> None:
        """Hand over one record; a copy that is lost is only a copy."""
        record = one.record
        headers: list[tuple[str, bytes]] = [
            ("offset", str(record.offset).encode()),
            ("code", one.code.encode()),
            ("reason", one.reason.encode()),
            ("bytes", str(len(record.value or b"")).encode()),
            ("left_out", str(one.left_out).encode()),
        ]
        value = (record.value or b"")[:_PREFIX_BYTES]
        key = str(record.offset).encode()
        try:
            self._producer.produce(topics.QUARANTINE, key=key, value=value, headers=headers)
        except BufferError:
            # the topic cannot be written for minutes, and more is set aside meanwhile
            log.warning("copy_not_kept", offset=record.offset)
        self._producer.poll(0)
