"""Clients without the right to read, who try all the time and must never succeed."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.faults.run.load import Pausable

REFUSED = {
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "_AUTHENTICATION",
    # to whom has no right, a topic that exists looks like one that does not
    "UNKNOWN_TOPIC_OR_PART",
    "_UNKNOWN_TOPIC",
    "_UNKNOWN_PARTITION",
}


@dataclass(frozen=True)
class Attempt:
    """A login that tries to read a topic; `why` says why it may not."""

    config: Mapping[str, Any]
    topic: str
    why: str

    def make(self, seconds: float = 3) -> str:
        """What came of one try: "refused", "no answer", or what was read.

        Assigned, not subscribed: no right of a group is needed, only that of the topic. An end of
        the partition is a read as well: it tells how much there is.
        """
        consumer = Consumer(
            {
                **self.config,
                "group.id": f"{self.config['sasl.username']}.{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            # the right to read implies that to see the topic: who cannot see it cannot read it
            seen = consumer.list_topics(self.topic, timeout=seconds).topics[self.topic].error
            if seen is not None:
                return self._told(seen)
            consumer.assign([TopicPartition(self.topic, 0, 0)])
            return self._outcome(consumer, time.monotonic() + seconds)
        except KafkaException as failed:
            return self._told(failed.args[0])
        finally:
            consumer.close()

    def _outcome(self, consumer: Consumer, deadline: float) -> str:
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                return f"offset {message.offset()}"
            told = self._told(error)
            if told != "no answer":
                return told
        return "no answer"

    def _told(self, error: KafkaError) -> str:
        if error.code() == KafkaError._PARTITION_EOF:
            return "the end of the partition"
        return "refused" if error.name() in REFUSED else "no answer"


class Probing(Pausable):
    """Tries every attempt in turn; `leaks` tells what must not have been read."""

    def __init__(self) -> None:
        super().__init__("prober")
        self._attempts: list[Attempt] = []
        self._guard, self._next = threading.Lock(), 0
        self._refused: set[int] = set()
        self.counted: Counter[str] = Counter()
        self.leaks: list[str] = []

    def add(self, attempt: Attempt) -> None:
        """From now on this one is tried as well: there must be no right for it any more."""
        with self._guard:
            self._attempts.append(attempt)

    def once(self) -> None:
        with self._guard:
            number = self._next % len(self._attempts)
            self._next += 1
        self._try(number)
        self._over.wait(0.05)

    def _try(self, number: int) -> None:
        attempt = self._attempts[number]
        outcome = attempt.make()
        self.take(attempt, outcome)
        if outcome == "refused":
            self._refused.add(number)

    def unproven(self, seconds: float) -> list[str]:
        """Who is not refused now, though tried again for `seconds`; while held.

        What came of tries before says nothing: the fault may have begun behind them.
        """
        deadline = time.monotonic() + seconds
        self._refused.clear()
        left = [number for number in range(len(self._attempts)) if number not in self._refused]
        while left and time.monotonic() < deadline:
            for number in left:
                self._try(number)
            left = [number for number in left if number not in self._refused]
        return [
            f"{self._attempts[number].why} at {self._attempts[number].topic}" for number in left
        ]

    def take(self, attempt: Attempt, outcome: str) -> None:
        """Note what came of a try."""
        if outcome in ("refused", "no answer"):
            self.counted[outcome] += 1
            return
        self.counted["read"] += 1
        self.leaks.append(f"{attempt.why} read {attempt.topic}: {outcome}")
