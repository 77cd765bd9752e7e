"""Looking into a topic without consuming it: where its partitions begin and end, what is last.

A `PartitionLog` is the port; `KafkaLog` is the real one. No groups, no commits.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mesh_events.errors import InfrastructureError
from mesh_events.kafka import Connection, header_list, translated, translating

Bounds = Mapping[int, tuple[int, int]]
"""Partition -> (first offset, end offset)."""
TIMEOUT_S = 15.0
_POLL_S = 0.05
_TRY_S = 2.0
_STEP = 16
MOST_CONSUMERS = 8
"""Threads that one log answers at the same time; the next one waits for the first that is done."""


@dataclass(frozen=True, slots=True)
class Last:
    """The last record of a partition; `headers` in their order, names may repeat."""

    offset: int
    headers: tuple[tuple[str, bytes | None], ...]


class PartitionLog(Protocol):
    """A cluster's topics, as one login sees them. Methods raise MeshError subclasses only."""

    def bounds(self, topic: str, partitions: Iterable[int]) -> Bounds:
        """Where the partitions begin and end now."""

    def last(self, topic: str, within: Bounds) -> dict[int, Last]:
        """The last record in each range; partitions without a record there are left out."""

    def close(self) -> None:
        """Leave Kafka."""


class KafkaLog:
    """Topics of a real cluster; each thread that asks has a consumer of its own meanwhile.

    A topic that does not answer holds up who asks for it, and nobody else.

    Args:
        connection: a login that may describe and read what it is asked for.
        committed: end offsets and records as `read_committed` sees them.
        timeout_s: how long to wait for an answer, seconds.
    """

    def __init__(
        self, connection: Connection, *, committed: bool = False, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._timeout_s = timeout_s
        self._where = f"at {connection.bootstrap_servers} as {connection.user}"
        self._config = {
            **connection.config(),
            # the client library wants a name; no group is ever joined
            "group.id": f"{connection.user}.log",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            # only the last record of a range is wanted
            "queued.max.messages.kbytes": 16_384,
        }
        self._room = threading.BoundedSemaphore(MOST_CONSUMERS)
        # the one that was used last is used next: the others are there for who comes beside it
        self._idle = [Consumer(self._config)]

    def close(self) -> None:
        """Leave Kafka."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        """A consumer that no other thread uses meanwhile."""
        with self._room:
            try:
                consumer = self._idle.pop()
            except IndexError:
                consumer = Consumer(self._config)
            try:
                yield consumer
            finally:
                self._idle.append(consumer)

    def bounds(self, topic: str, partitions: Iterable[int]) -> Bounds:
        """Where the partitions begin and end now."""
        doing = f"asking for the ends of {topic} {self._where}"
        with translating(doing), self._consumer() as consumer:
            return {partition: self._ends(consumer, topic, partition) for partition in partitions}

    def _ends(self, consumer: Any, topic: str, partition: int) -> tuple[int, int]:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                low, high = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=min(_TRY_S, self._timeout_s)
                )
            except KafkaException as error:
                if error.args[0].code() not in _MOVED or time.monotonic() > deadline:
                    raise
                # what the client remembers of the leader is out of date: it died, or the topic is
                # a new one
                with suppress(KafkaException):
                    consumer.list_topics(topic, timeout=_TRY_S)
                time.sleep(_POLL_S)
            else:
                return int(low), int(high)

    def last(self, topic: str, within: Bounds) -> dict[int, Last]:
        """The last record in each range.

        Ends of transactions, aborted and compacted records leave offsets without a record, so
        that ranges are searched from the back in growing steps.
        """
        found: dict[int, Last] = {}
        left = {p: (low, high) for p, (low, high) in within.items() if low < high}
        step = 1
        while left:
            ranges = {p: (max(low, high - step), high) for p, (low, high) in left.items()}
            found |= self._search(topic, ranges)
            left = {
                p: (low, ranges[p][0])
                for p, (low, _) in left.items()
                if p not in found and ranges[p][0] > low
            }
            step *= _STEP
        return found

    def _search(self, topic: str, ranges: Bounds) -> dict[int, Last]:
        """The last record of each [start, end), read from the start."""
        doing = f"reading the end of {topic} {self._where}"
        found: dict[int, Last] = {}
        left = {p: high for p, (_, high) in ranges.items()}
        with translating(doing), self._consumer() as consumer:
            consumer.assign([TopicPartition(topic, p, start) for p, (start, _) in ranges.items()])
            deadline = time.monotonic() + self._timeout_s
            while left:
                message = consumer.poll(0.5)
                if message is not None:
                    deadline = self._take(message, left, found, doing)
                elif time.monotonic() > deadline:
                    raise InfrastructureError(
                        f"{doing}: no answer for partitions {sorted(left)}", retriable=True
                    )
            consumer.unassign()
        return found

    def _take(
        self, message: Any, left: dict[int, int], found: dict[int, Last], doing: str
    ) -> float:
        """Count a message in, and say until when to wait for the next one."""
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
            if not error.retriable() and error.code() not in _PASSING:
                raise translated(error, doing)
        elif partition in left:
            if error is None and offset < left[partition]:
                found[partition] = Last(offset, tuple(header_list(message)))
            # an end-of-partition event carries the offset behind the last one
            if offset >= left[partition] - (1 if error is None else 0) or error is not None:
                del left[partition]
        return time.monotonic() + self._timeout_s


_MOVED = {
    KafkaError._TIMED_OUT,  # noqa: SLF001 - the library's name
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - the client's own word for the same
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
}
_PASSING = {
    KafkaError._TRANSPORT,  # noqa: SLF001 - it reconnects by itself
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
}
