"""Reading `mesh.lineage` from where it was read last, which the topic's cluster remembers."""

import json
import time

import structlog
from confluent_kafka import Consumer, KafkaError, TopicPartition

from mesh_events import topics
from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection, translated, translating
from processors.controllers.forwarding import Written
from processors.controllers.run_ends import Recent
from projections.lineage.runs import End

log = structlog.get_logger(__name__)
_ANSWER_S = 10.0
_RECENT = 10_000
_ENDS = frozenset(one.value for one in End)
_LOOK_S = 0.2
"""So long a look waits for something new."""
_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - it reconnects by itself
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
    }
)


class LineageReader:
    """Partition 0 of the topic, which has no other, from the place that its group has committed.

    The group has no members: who reads is settled by who leads. Its name is below the user's own,
    as its right is. Without a place, or where the topic holds nothing there (any more), reading
    begins with the oldest event. Every method raises MeshError where Kafka does not answer.
    """

    def __init__(self, connection: Connection, topic: str = topics.LINEAGE) -> None:
        self._topic = topic
        self._doing = f"reading {topic} at {connection.bootstrap_servers} as {connection.user}"
        self._consumer = Consumer(
            connection.config(
                group_id=f"{connection.user}.lineage",
                enable_auto_commit=False,
                # a place that is gone is looked for anew, and told
                auto_offset_reset="error",
                queued_max_messages_kbytes=4096,
            )
        )
        self._first: Written | None = None
        try:
            self._saved = self._position = self._begin()
            self._consumer.assign([self._place(self._position)])
        except BaseException:
            self._consumer.close()
            raise

    def first(self) -> Written | None:
        """The first event that was not dealt with; None if there is none now."""
        if self._first is None:
            with translating(self._doing):
                message = self._consumer.poll(_LOOK_S)
            if message is None:
                return None
            error = message.error()
            if error is not None:
                if error.code() in _PASSING:
                    return None
                raise translated(error, self._doing)
            self._first = Written(message.offset(), message.value())
        return self._first

    def dealt_with(self) -> None:
        """Go on behind the first one."""
        if self._first is not None:
            self._position = self._first.offset + 1
            self._first = None

    def save(self) -> None:
        """Let Kafka remember how far it was read."""
        if self._position == self._saved:
            return
        with translating(f"committing a place: {self._doing}"):
            done = self._consumer.commit(offsets=[self._place(self._position)], asynchronous=False)
        for place in done or []:
            if place.error is not None:
                raise translated(place.error, f"committing a place: {self._doing}")
        self._saved = self._position

    def close(self) -> None:
        """Leave Kafka; what was not saved is read again."""
        self._consumer.close()

    def _begin(self) -> int:
        with translating(self._doing):
            (found,) = self._consumer.committed([self._place()], timeout=_ANSWER_S)
            if found.error is not None:
                raise translated(found.error, self._doing)
            low, end = self._consumer.get_watermark_offsets(self._place(), timeout=_ANSWER_S)
        if low <= found.offset <= end:
            return int(found.offset)
        if found.offset >= 0:
            log.warning("lineage_place_gone", place=found.offset, oldest=low, end=end)
        return int(low)

    def _place(self, *offset: int) -> TopicPartition:
        return TopicPartition(self._topic, 0, *offset)


def recent(connection: Connection, topic: str = topics.LINEAGE) -> Recent:
    """The last events of the topic, `_RECENT` at most.

    Raises MeshError where Kafka does not answer.
    """
    doing = f"reading {topic} at {connection.bootstrap_servers} as {connection.user}"
    settings = {"enable_auto_commit": False, "auto_offset_reset": "error"}
    consumer = Consumer(connection.config(group_id=f"{connection.user}.lineage", **settings))
    try:
        with translating(doing):
            low, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_ANSWER_S)
        first = max(low, end - _RECENT)
        consumer.assign([TopicPartition(topic, 0, first)])
        since: int | None = None
        ended: set[str] = set()
        position, deadline = first, time.monotonic() + _ANSWER_S
        while position < end:
            with translating(doing):
                message = consumer.poll(_LOOK_S)
            if message is None or message.error() is not None:
                if time.monotonic() > deadline:
                    raise InfrastructureError(f"{doing}: no answer", retriable=True)
                continue
            if since is None:
                since = message.timestamp()[1]
            position, deadline = message.offset() + 1, time.monotonic() + _ANSWER_S
            if (run := _ended(message.value())) is not None:
                ended.add(run)
    finally:
        consumer.close()
    return Recent(None if first == 0 else since, frozenset(ended))


def _ended(value: bytes | None) -> str | None:
    """The run whose end an event is; None for another one, and for what is no event."""
    try:
        event = json.loads(value or b"")
        return str(event["run"]["runId"]) if event["eventType"] in _ENDS else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
