"""What goes on in the mesh while it is broken: domains that speak, records that are written.

Whatever Kafka acknowledged is noted; the judge asks for it afterwards.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle

from confluent_kafka import KafkaError, KafkaException, Producer

from mesh_events.emit import Receipt
from mesh_events.errors import InfrastructureError
from mesh_events.intents import (
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    Intent,
    ProductUpdated,
)
from mesh_events.kafka.connection import Connection
from tests.mesh_kit import Domain

PAUSE_S = 0.2
"""Between two intents: few enough for a machine with two cores that also restarts servers."""


class Pausable(threading.Thread):
    """A thread that does one thing after the other, and can be held between two of them."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._go, self._idle, self._over = (threading.Event() for _ in range(3))
        self.failures: list[str] = []

    def once(self) -> None:
        """Do the next thing, and return within seconds if `stopping`."""
        raise NotImplementedError

    def run(self) -> None:
        while not self._over.is_set():
            if not self._go.wait(0.1):
                self._idle.set()
                continue
            self._idle.clear()
            try:
                self.once()
            except Exception as error:  # noqa: BLE001 - a dead load would prove nothing
                self.failures.append(f"{self.name}: {type(error).__name__}: {error}")
                self._over.wait(1)

    def resume(self) -> None:
        self._go.set()

    def hold(self, seconds: float) -> bool:
        """Hold it; whether it stands still within `seconds`."""
        self._go.clear()
        self._idle.clear()
        return self._idle.wait(seconds)

    def stop(self) -> None:
        self._over.set()
        self._go.set()


@dataclass(frozen=True)
class Said:
    """An intent that Kafka acknowledged: id, offset, type, and when that was (monotonic)."""

    id: str
    offset: int
    kind: str
    at: float


@dataclass
class Trade:
    """A product and the applications that get it and lose it again and again."""

    owner: Domain
    buyer: Domain
    product: str
    applications: Sequence[str]

    def intents(self) -> Iterator[tuple[Domain, Callable[[], Intent]]]:
        """(who speaks, what), without an end; a later one names an earlier one's id."""
        for n, application in zip(count(), cycle(self.applications), strict=False):
            yield self.owner, self._update(n)
            asked = self._request(application)
            yield self.buyer, partial(_itself, asked)
            yield self.owner, self._answer(AccessGranted, asked)
            yield self.owner, self._update(n, "granted")
            yield self.owner, self._answer(AccessRevoked, asked, reason="enough")

    def _answer(self, kind: type[Intent], asked: Intent, **more: str) -> Callable[[], Intent]:
        about = {"product": self.product, "request": asked.meta.id}
        return lambda: self.owner.make(kind, **about, **more)

    def _update(self, n: int, *tags: str) -> Callable[[], Intent]:
        return lambda: self.owner.make(
            ProductUpdated, product=self.product, description=f"turn {n}", tags=list(tags)
        )

    def _request(self, application: str) -> Intent:
        return self.buyer.make(
            AccessRequested, product=self.product, application=application, reason="to trade"
        )


class Speaking(Pausable):
    """One trade's domains, each intent until Kafka has acknowledged it."""

    def __init__(self, trade: Trade) -> None:
        super().__init__(f"intents of {trade.product}")
        self._intents = trade.intents()
        self.said: list[Said] = []

    def once(self) -> None:
        sender, make = next(self._intents)
        intent = make()
        receipt = self._acknowledged(sender, intent)
        if receipt is not None:
            self.said.append(Said(receipt.id, receipt.offset, intent.type_name(), time.monotonic()))
        self._over.wait(PAUSE_S)

    def _acknowledged(self, sender: Domain, intent: Intent) -> Receipt | None:
        """The very same event again and again: it may stand on the log already."""
        while not self._over.is_set():
            try:
                return sender.emitter.emit(intent)
            except InfrastructureError:
                self._over.wait(0.2)
        return None


@dataclass
class Acknowledged:
    """Records of a source that Kafka acknowledged: (partition, offset) -> value."""

    records: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def note(self, error: KafkaError | None, message: object) -> None:
        if error is None:
            place = (message.partition(), message.offset())  # type: ignore[attr-defined]
            self.records[place] = message.value()  # type: ignore[attr-defined]


class Writing(Pausable):
    """Records into a source, some of them in transactions, of which every second one is aborted.

    Args:
        login: may write the topic and use transactional ids of its own prefix.
        topic: the source.
        partitions: how many it has.
    """

    def __init__(self, login: Connection, topic: str, partitions: int) -> None:
        super().__init__(f"records of {topic}")
        self._login, self._topic, self._partitions = login, topic, partitions
        self._plain = Producer(login.config(linger_ms=5, acks="all"))
        self._numbers, self._turns = count(), count()
        self._in_transaction: Producer | None = None
        self.acknowledged = Acknowledged()

    def once(self) -> None:
        for _ in range(10):
            self._produce(self._plain, b"plain", self.acknowledged.note)
        self._plain.poll(0)
        if next(self._turns) % 5 == 0:
            # what was in a transaction counts only if the source has it as committed
            with suppress(KafkaException):
                self._transaction()
                self._over.wait(0.05)
                return
            self._in_transaction = None
        self._over.wait(0.1)

    def hold(self, seconds: float) -> bool:
        """Also wait until Kafka has answered for every record."""
        return super().hold(seconds) and self._plain.flush(seconds) == 0

    def _produce(self, producer: Producer, kind: bytes, note: Callable[..., None]) -> None:
        n = next(self._numbers)
        value = b"%s %d %s" % (kind, n, uuid.uuid4().hex.encode())
        producer.produce(
            self._topic,
            value,
            None if n % 7 == 0 else b"key %d" % (n % 97),
            n % self._partitions,
            headers=[("n", str(n).encode())] if n % 3 else None,
            on_delivery=note,
        )

    def _transaction(self) -> None:
        if self._in_transaction is None:
            made = Producer(
                self._login.config(
                    transactional_id=f"{self._login.user}.load", transaction_timeout_ms=10_000
                )
            )
            made.init_transactions(10)
            self._in_transaction = made
        producer = self._in_transaction
        producer.begin_transaction()
        aborted = next(self._turns) % 2 == 0
        for _ in range(5):
            self._produce(producer, b"aborted" if aborted else b"committed", _ignored)
        if aborted:
            producer.flush(10)
            producer.abort_transaction(10)
        else:
            producer.commit_transaction(10)


def _itself(intent: Intent) -> Intent:
    return intent


def _ignored(_error: object, _message: object) -> None:
    return
