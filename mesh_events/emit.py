"""Saying something on the log: signed, acknowledged by Kafka, at most once on the log per call.

with Emitter.at_home("west", actor="reporting") as west:
    receipt = west.emit(AccessRequested(meta=west.meta(), ...))
    outcome = west.outcome(receipt, timeout=10)
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mesh_events import topics
from mesh_events.codec import Wire, decode, encode, has_valid_signature
from mesh_events.decisions import Decision, IntentAccepted, IntentQuarantined, IntentRejected
from mesh_events.errors import InfrastructureError, WaitTimeoutError
from mesh_events.kafka import Connection, translated, translating
from mesh_events.meta import MESH_DOMAIN, Event, Meta, new_id, now
from mesh_events.read import LogReader
from mesh_events.record import SIGNER, Record
from mesh_events.references import resolve
from mesh_events.settings import HomeSettings, Profile, key_path
from mesh_events.signing import SigningKey

if TYPE_CHECKING:
    from mesh_events.registry import Registry

DELIVERY_TIMEOUT_S = 30
_DECISIONS = (IntentAccepted, IntentRejected, IntentQuarantined)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where an event stands: Kafka has acknowledged it at `offset`."""

    id: str
    offset: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was decided: `accepted`, or a code and a reason; `offset` is the decision's."""

    accepted: bool
    offset: int
    code: str = ""
    reason: str = ""


class LogWriter:
    """Appends signed events to the governance log, one by one, each acknowledged by Kafka.

    The producer is idempotent: Kafka's own retries never write a record twice. A second call
    with the same event writes it again, and the mesh counts the first one only.

    `acknowledged` is called when Kafka's answer is here and nobody has taken note of it yet.
    """

    def __init__(
        self,
        connection: Connection,
        registry: "Registry",
        key: SigningKey,
        acknowledged: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry, self.key, self._acknowledged = registry, key, acknowledged
        # one append at a time: each waits for the delivery report of its own record
        self._lock = threading.Lock()
        self._doing = f"writing {topics.GOVERNANCE} as {connection.user}"
        self._producer = Producer(
            connection.config(
                enable_idempotence=True,
                acks="all",
                linger_ms=0,
                delivery_timeout_ms=DELIVERY_TIMEOUT_S * 1000,
                message_max_bytes=topics.MAX_LOG_BYTES,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what is still on its way."""
        self._producer.flush(DELIVERY_TIMEOUT_S)

    def append(self, event: Event, key: SigningKey | None = None) -> Receipt:
        """Sign and append; returns once Kafka has acknowledged. Raises as `append_record`."""
        return Receipt(event.meta.id, self.append_record(event, key).offset)

    def append_record(self, event: Event, key: SigningKey | None = None) -> Record:
        """Sign and append; the record as it stands on the log, once Kafka has acknowledged.

        Raises RefusedError (no right to write), ConfigurationError (login, unknown schema) or
        InfrastructureError. After the latter the event may or may not stand on the log: append
        the very same event again.
        """
        return self.append_records([event], key)[0]

    def append_records(
        self, events: Sequence[Event], key: SigningKey | None = None
    ) -> list[Record]:
        """Sign and append several events without waiting for each; the records, in their order.

        Raises as `append_record`; then any of them may or may not stand on the log, in their order.
        """
        signer = key or self.key
        wires = [
            encode(event, self._registry.schema_id(event.type_name()), signer) for event in events
        ]
        found: list[tuple[KafkaError | None, int, int]] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self._acknowledged()
            # the log's own append time: the topic overrides what a producer says
            place = (-1, -1) if error else (message.offset(), message.timestamp()[1])
            found.append((error, *place))

        with self._lock, translating(self._doing):
            for wire in wires:
                self._hand_over(wire, on_delivery)
            self._wait(found, len(wires))
        failed = next((error for error, _, _ in found if error is not None), None)
        if failed is not None:
            raise translated(failed, self._doing)
        if len(found) < len(wires):
            raise InfrastructureError(f"{self._doing}: Kafka does not answer", retriable=True)
        return [
            Record(offset, time, wire.key, wire.value, dict(wire.headers))
            for wire, (_, offset, time) in zip(wires, found, strict=True)
        ]

    def _hand_over(
        self, wire: Wire, on_delivery: Callable[[KafkaError | None, Message], None]
    ) -> None:
        try:
            self._produce(wire, on_delivery)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            # the client remembers an earlier refusal for a while: ask Kafka
            self._producer.list_topics(topics.GOVERNANCE, timeout=DELIVERY_TIMEOUT_S)
            self._produce(wire, on_delivery)

    def _produce(
        self, wire: Wire, on_delivery: Callable[[KafkaError | None, Message], None]
    ) -> None:
        self._producer.produce(
            topics.GOVERNANCE,
            value=wire.value,
            key=wire.key,
            headers=wire.headers,
            partition=0,
            on_delivery=on_delivery,
        )

    def _wait(self, found: list[Any], count: int) -> None:
        for _ in range(DELIVERY_TIMEOUT_S * 10):
            self._producer.poll(0.1)
            if len(found) >= count:
                return


class Emitter(LogWriter):
    """A domain's voice: makes `meta`, appends intents, waits for decisions.

    Args:
        connection: the domain's login on the governance cluster.
        registry: knows the schemas' ids.
        key: the domain's signing key.
        domain: for whom it speaks.
        actor: the person or service that says it, for the audit.
        governor_key: whose decisions `outcome` waits for.
        producer: name/version of the emitting software; this package by default.
    """

    def __init__(
        self,
        connection: Connection,
        registry: "Registry",
        key: SigningKey,
        *,
        domain: str,
        actor: str,
        governor_key: str | None = None,
        producer: str | None = None,
    ) -> None:
        super().__init__(connection, registry, key)
        self._governor_key = governor_key
        self._connection = connection
        self._domain, self._actor = domain, actor
        self._software = producer or software()

    @classmethod
    def at_home(cls, domain: str, *, actor: str, home: Path | None = None) -> "Emitter":
        """The voice of a domain whose key and login lie in `home`, by default `SDM_HOME`.

        Raises ConfigurationError: no mesh, key or login there.
        """
        from mesh_events.registry import Registry

        home = home or HomeSettings().home
        mesh = Profile.load(home)
        password = resolve(f"file:{home / 'secrets' / mesh.governance_cluster / domain}")
        return cls(
            Connection(mesh.bootstrap_servers, domain, password, mesh.tls(home)),
            Registry(mesh.registry_url),
            SigningKey.load(key_path(home, domain)),
            domain=domain,
            actor=actor,
            governor_key=mesh.governor_key,
        )

    def meta(self, correlation: str | None = None, causation: str | None = None) -> Meta:
        """A fresh `meta`; without a correlation the event begins a conversation of its own."""
        identity = new_id()
        return Meta(
            id=identity,
            time=now(),
            actor=self._actor,
            domain=self._domain,
            correlation=correlation or identity,
            causation=causation,
            producer=self._software,
        )

    def emit(self, intent: Event) -> Receipt:
        """Append an intent; see `LogWriter.append`."""
        return self.append(intent)

    def outcome(self, receipt: Receipt, timeout: float = 30) -> Outcome:
        """Wait until the governor has decided the intent at `receipt`; see `outcome_of`."""
        return outcome_of(
            receipt, self._connection, self._registry, self._governor_key, timeout=timeout
        )


def outcome_of(
    receipt: Receipt,
    connection: Connection,
    registry: "Registry",
    governor_key: str | None,
    *,
    timeout: float,
) -> Outcome:
    """Wait until the governor has decided the intent at `receipt`.

    This is the first answer under the governor's key. A governor that was paused and replaced
    may answer too late for it to count: who must be certain folds the log (`projections`).

    Raises WaitTimeoutError after `timeout` seconds; the intent is still undecided then.
    """
    schemas = _KnownSchemas(registry)
    with LogReader(connection, receipt.offset + 1) as reader:
        for record in reader.follow(timeout):
            event = decision_in(record, schemas, governor_key)
            if event is not None and event.offset == receipt.offset:
                return _outcome(event, record.offset)
    raise WaitTimeoutError(
        f"no decision on {receipt.id} at offset {receipt.offset} within {timeout:g} s: see "
        f"that the governor runs (`sdm status`), then look again with `sdm trace {receipt.id}`"
    )


def decision_in(
    record: Record, schemas: Mapping[int, str], governor_key: str | None
) -> Decision | None:
    """The decision in a record that this key has signed, None for any other record.

    Nothing of a stranger's record is decoded: its writer could have registered a schema that keeps
    a reader busy for ever.
    """
    named = record.headers.get(SIGNER)
    if governor_key is None or named != governor_key.encode() or not has_valid_signature(record):
        return None
    event = decode(record, schemas, verify=False).event
    return event if isinstance(event, _DECISIONS) else None


class _KnownSchemas(dict[int, str]):
    """Schema id -> text, asked from the registry when first met; never empty, never guessing."""

    def __init__(self, registry: "Registry") -> None:
        super().__init__({-1: ""})
        self._registry = registry

    def get(self, schema_id: int, default: Any = None) -> Any:
        """The schema's text, or `default` if the registry has none."""
        try:
            return self._registry.schema_text(schema_id)
        except InfrastructureError as error:
            if error.retriable:
                raise
            return default


def _outcome(event: Decision, offset: int) -> Outcome:
    if isinstance(event, IntentRejected | IntentQuarantined):
        return Outcome(False, offset, event.code, event.reason)
    return Outcome(True, offset)


def mesh_meta(
    identity: str, actor: str, correlation: str | None = None, causation: str | None = None
) -> Meta:
    """`meta` of what the mesh itself says, now; without a correlation it begins a conversation."""
    return Meta(
        id=identity,
        time=now(),
        actor=actor,
        domain=MESH_DOMAIN,
        correlation=correlation or identity,
        causation=causation,
        producer=software(),
    )


@cache
def software() -> str:
    """This software as name/version, for `meta.producer`."""
    try:
        return f"sdm/{metadata.version('streaming-data-mesh')}"
    except metadata.PackageNotFoundError:
        return "sdm/source"
