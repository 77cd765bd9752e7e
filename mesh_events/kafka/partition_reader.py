"""Partition 0 of one topic, read by librdkafka, and byte by byte where that is not sure.

librdkafka believes what a record says of its offset, cannot read some that brokers take, and does
not say where a batch begins; see `batches`. It drops a record whose offset delta puts it before the
fetch position, and the next record of the batch can claim the expected offset. So librdkafka reads
the end of the partition alone, and its records are held until there is one for each offset up to
the high watermark: none was dropped then, and each has its own offset.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.batches import stored
from mesh_events.kafka.connection import (
    Connection,
    is_denied,
    is_login_refused,
    translated,
    translating,
)

if TYPE_CHECKING:
    # its client takes longer to import than all of this
    from mesh_events.kafka.raw_fetch import RawPartition

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

    Of a topic that is `gapless`, each offset has a record or a transaction's marker. What
    librdkafka leaves out there, gives another offset or cannot read is read byte by byte, and so
    is what stands before the end; see `batches`.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        start: int | None = 0,
        *,
        brief: bool = False,
        gapless: bool = False,
    ) -> None:
        self._connection, self._gapless, self._brief = connection, gapless, brief
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
        # come, one for each offset from `_sure` up to `_fetched`, and not sure to be those
        self._held: list[Message] = []
        self._sure = self._fetched = 0
        self._held_since = 0.0
        # up to here bytes are read, many at once but for the first
        self._by_bytes, self._widely = 0, False
        self._raw: RawPartition | None = None
        self._moved, self._assigned = time.monotonic(), False
        if start is not None:
            self.seek(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()
        if self._raw is not None:
            self._raw.close()

    @property
    def position(self) -> int:
        """The offset to go on from."""
        return int(self._ahead[0].offset()) if self._ahead else self._sure

    def seek(self, offset: int) -> None:
        """Go on reading at `offset`.

        What stands there is read byte by byte in a topic without gaps: only the beginning of a
        batch tells which record is which.
        """
        self._ahead.clear()
        self._go_back_to(offset)
        self._widely = False
        self._by_bytes = offset + 1 if self._gapless and offset > 0 else 0
        if self._by_bytes:
            self._unassign()
        else:
            self._assign()

    def _go_back_to(self, offset: int) -> None:
        """Forget what is held; `offset` is the next one that is wanted."""
        self._held.clear()
        self._sure = self._fetched = offset

    def _assign(self) -> None:
        self._moved, self._assigned = time.monotonic(), True
        self._consumer.assign([TopicPartition(self._topic, 0, self._fetched)])

    def _unassign(self) -> None:
        self._assigned = False
        self._consumer.unassign()

    def rest(self) -> None:
        """Fetch nothing until `seek`; who waits at an end asks for more twenty times a second."""
        self._go_back_to(self.position)
        self._ahead.clear()
        self._unassign()

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

    def _fetch(self, timeout: float) -> list[Any]:
        if self._fetched < self._by_bytes:
            return self._stored(timeout)
        if not self._assigned:
            self._assign()
        with translating(self._doing):
            messages = self._some(min(timeout, _LONG_S) if self._held else timeout)
        self._raise_refusal()
        good, is_odd = self._taken(messages)
        if messages:
            self._moved = time.monotonic()
        if not is_odd and (not self._gapless or self._is_at_end()):
            return good + self._released()
        if is_odd or self._is_stuck() or self._is_held_long():
            # from here on by bytes: the next call does
            self._leave_to_bytes()
        return good

    def _taken(self, messages: list[Message]) -> tuple[list[Message], bool]:
        """Hold what has come; (what came before an end, whether the next one is odd)."""
        good: list[Message] = []
        for message in messages:
            error = message.error()
            if self._is_odd(message):
                return good, True
            if error is None:
                if not self._held:
                    self._held_since = time.monotonic()
                self._held.append(message)
                self._fetched = max(self._fetched, message.offset() + 1)
            elif error.code() == _AT_END:
                # markers of transactions take offsets and never arrive: only this tells of them
                self._fetched = max(self._fetched, message.offset())
                # nothing of what came before stands behind the end of then
                good += self._released()
            elif error.code() not in _PASSING:
                raise translated(error, self._doing)
        return good, False

    def _released(self) -> list[Message]:
        """What is held, of which each is the record at its offset."""
        good, self._held = self._held, []
        self._sure = self._fetched
        return good

    def _is_at_end(self) -> bool:
        """Whether a record is held for each offset up to the high watermark, and none beyond it.

        The cached one may be older than the records of its own fetch response, so the broker is
        asked as well.
        """
        return (
            bool(self._held)
            and self._high_watermark(cached=True) == self._fetched
            and self._high_watermark(timeout=1.0) == self._fetched
        )

    def _high_watermark(self, **how: Any) -> int | None:
        """As librdkafka knows it or the broker says; None without an answer."""
        with suppress(KafkaException):
            place = TopicPartition(self._topic, 0)
            return int(self._consumer.get_watermark_offsets(place, **how)[1])
        return None

    def _is_held_long(self) -> bool:
        """Whether ever more comes, so that the end is not reached."""
        is_old = bool(self._held) and time.monotonic() > self._held_since + _LONG_S
        return is_old or len(self._held) > _MOST_HELD

    def _is_odd(self, message: Message) -> bool:
        """Whether records are missing before this one, it is no next one, or none could be read."""
        if not self._gapless:
            return False
        error = message.error()
        if error is None:
            # to this client a length of null that has bits above 32 is one of nothing
            is_empty = message.key() == b"" or message.value() == b""
            return is_empty or bool(message.offset() != self._fetched)
        if error.code() == _AT_END:
            return bool(message.offset() > self._fetched)
        if error.code() == _NOT_THERE:
            # far away says the record that stands there; librdkafka asked for what is behind it
            low, end = self.bounds()
            return low <= self._fetched <= end
        return error.code() in _UNREAD

    def _is_stuck(self) -> bool:
        """Whether nothing has come for a while, although there is something."""
        if not self._gapless or time.monotonic() < self._moved + _STUCK_S:
            return False
        end = self._high_watermark(cached=True)
        return end is not None and end > self._fetched

    def _leave_to_bytes(self) -> None:
        """Read what stands at the position, and all behind it up to the end of then, by bytes."""
        self._unassign()
        self._go_back_to(self._sure)
        self._by_bytes = self._fetched + 1

    def _stored(self, timeout: float) -> list[Any]:
        """What stands at the position, as its bytes tell."""
        first, found = self._fetched, list[Any]()
        try:
            answer = self._raw_partition().fetch(first, _WIDE if self._widely else _NARROW)
        except InfrastructureError:
            # this client knows what to say of it, and for how long to be patient
            with translating(self._doing):
                self._consumer.poll(min(timeout, 0.2))
            self._raise_refusal()
            self._learn_leader()
            return []
        if answer is None or answer.end == first:
            # nothing is there: whatever comes begins with a batch
            self._by_bytes = 0
            return []
        if answer.end < first:
            # a new leader does not know yet how far all others have come
            return []
        for behind, records in stored(answer.data):
            found += [one for one in records if one.offset() >= first]
            self._sure = self._fetched = max(self._fetched, behind)
        self._by_bytes, self._widely = answer.end, not self._brief
        return found

    def _raw_partition(self) -> "RawPartition":
        from mesh_events.kafka.raw_fetch import RawPartition

        if self._raw is None:
            self._raw = RawPartition(self._connection, self._topic)
        return self._raw

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


_STUCK_S = 1.0
"""Without a record that is there: a login, or a new leader, hardly ever takes so long."""
_LONG_S, _MOST_HELD = 0.2, 10_000
"""For so long, and so many, records are held; then bytes are read."""
_NARROW, _WIDE = 64 * 1024, 4 * 1024 * 1024
"""Bytes of one answer: where one batch is asked for, and where many are."""
_AT_END = KafkaError._PARTITION_EOF  # noqa: SLF001
_NOT_THERE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
_UNREAD = {
    # a whole batch, and none of its records at the position or behind it: so it says of its offsets
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError._BAD_MSG,  # noqa: SLF001
    KafkaError._UNDERFLOW,  # noqa: SLF001
    KafkaError.INVALID_MSG,
}
"""What librdkafka says of a batch that it cannot read; brokers take none that is too large."""
_PASSING = {
    KafkaError._TRANSPORT,  # noqa: SLF001 - it reconnects by itself
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
}
