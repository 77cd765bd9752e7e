"""Writing numbered records so that each is on the topic once, also across crashes of the writer.

A batch of records and the number that follows them are committed in one transaction; the number is
the committed offset of a group that nobody reads with. Who opens the same identity later fences
this writer, and finds the number behind the last record that is there. Readers of committed records
see none of a batch that was not committed.
"""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection, translated, translating

_TIMEOUT_S = 30
_COMMIT_S = 10
_BATCH = 5_000
_AGE_S = 0.25
"""So long a record may wait for its batch: committing costs every partition a marker."""


class ExactWriter:
    """The one writer of an identity; whoever opens it later ends this one.

    Args:
        login: to write with; it may have transactions and groups named like `identity`.
        topic: the topic.
        identity: transactional id, and the group that keeps the number.
        first: the number where nothing was committed yet.

    Raises:
        RefusedError: Kafka refuses, here and in every method.
        InfrastructureError: Kafka does not answer, or another writer has taken over.
    """

    def __init__(self, login: Connection, topic: str, identity: str, first: int) -> None:
        self._topic = topic
        self._doing = f"writing {topic} at {login.bootstrap_servers} as {login.user}"
        self._failed: list[KafkaError] = []
        self._open_since: float | None = None
        self._waiting = 0
        self._producer = Producer(
            login.config(
                transactional_id=identity,
                transaction_timeout_ms=_TIMEOUT_S * 1000,
                delivery_timeout_ms=_TIMEOUT_S * 1000,
                allow_auto_create_topics=False,
            )
            | {"error_cb": self._told}
        )
        self._controller = Consumer(login.config(group_id=identity, enable_auto_commit=False))
        with translating(self._doing):
            self._producer.init_transactions(_TIMEOUT_S)
            # only now: before, a transaction of an earlier writer could still come to its end
            [found] = self._controller.committed([self._place()], _TIMEOUT_S)
        self.next = max(found.offset, first)

    def write(self, key: bytes | None, value: bytes | None) -> None:
        """Write the record with the number `next`; it counts once it is committed."""
        with translating(self._doing):
            if self._open_since is None:
                self._producer.begin_transaction()
                self._open_since = time.monotonic()
            self._produce(key, value)
        self.next += 1
        self._waiting += 1
        if self._failed:
            raise translated(self._failed[0], self._doing)

    def is_due(self, pause: float = 0) -> bool:
        """Whether what was written is to be committed before waiting `pause` seconds."""
        if self._open_since is None:
            return False
        age = time.monotonic() - self._open_since
        return self._waiting >= _BATCH or age + pause >= _AGE_S

    def commit(self) -> None:
        """Commit what was written, if anything was.

        While its broker is away the client library may wait for ever, whatever the timeout: a
        process that has to go on limits it from outside.
        """
        if self._open_since is None:
            return
        place = self._place(self.next)
        try:
            self._producer.send_offsets_to_transaction(
                [place], self._controller.consumer_group_metadata(), _COMMIT_S
            )
            self._producer.commit_transaction(_COMMIT_S)
        except KafkaException as error:
            # what became of a record says more than that its transaction cannot be committed
            cause = self._failed[0] if self._failed else error.args[0]
            raise self._fault(cause) from error
        self._open_since, self._waiting = None, 0

    def close(self) -> None:
        """End the writer; what was not committed is not there."""
        # a transaction that is left open would hold readers up until its timeout
        if self._open_since is not None:
            try:
                self._producer.abort_transaction(5)
            except KafkaException as error:
                if not self._failed:
                    self._failed.append(error.args[0])
        self._controller.close()

    def _fault(self, cause: KafkaError) -> Exception:
        if cause.code() in _FENCED:
            return InfrastructureError(
                f"{self._doing}: another process of this generator has taken over", retriable=True
            )
        return translated(cause, self._doing)

    def _produce(self, key: bytes | None, value: bytes | None) -> None:
        while not self._failed:
            try:
                self._producer.produce(
                    self._topic, key=key, value=value, on_delivery=self._delivered
                )
            except BufferError:
                # the client library's queue is full: let some go first
                self._producer.poll(0.5)
            else:
                self._producer.poll(0)
                return

    def _place(self, number: int = -1001) -> TopicPartition:
        return TopicPartition(self._topic, 0, number)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        # batches behind one that failed are purged, which says nothing
        if error is not None and error.code() != KafkaError._PURGE_QUEUE:  # noqa: SLF001 - librdkafka's own codes
            self._failed.append(error)

    def _told(self, error: Any) -> None:
        if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own codes
            self._failed.append(error)


_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}  # noqa: SLF001
)
