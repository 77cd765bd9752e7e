"""Append events to the log: signed, acknowledged by Kafka, at most once on the log per call.

with Emitter.at_home("west", actor="reporting") as west:
    receipt = west.emit(AccessRequested(meta=west.meta(), ...))
    outcome = west.outcome(receipt, timeout=10)
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mesh_events import topics
from mesh_events.codec import Wire, encode, most_bytes
from mesh_events.errors import ConfigurationError, InfrastructureError, RefusedError
from mesh_events.intents import intents_login
from mesh_events.kafka.connection import Connection, translated, translating
from mesh_events.meta import MESH_DOMAIN, Event, Meta, new_id, now, require_actor
from mesh_events.outcome import Outcome, Receipt, decision_in, outcome_of
from mesh_events.record import FaultCode, Record
from mesh_events.references import resolve
from mesh_events.settings import HomeSettings, Profile, key_path
from mesh_events.signing import MeshKeys, SigningKey

if TYPE_CHECKING:
    from mesh_events.schema.registry import Registry

__all__ = [
    "Emitter",
    "LogWriter",
    "Outcome",
    "Receipt",
    "decision_in",
    "mesh_meta",
    "outcome_of",
    "software",
]

DELIVERY_TIMEOUT_S = 30
_THROTTLED, _THROTTLED_S = KafkaError.THROTTLING_QUOTA_EXCEEDED, 0.5
"""A broker refuses a login that is above its quota; the next request is after this delay, s."""


class LogWriter:
    """Appends signed events to the governance log, one by one, each acknowledged by Kafka.

    The producer is not idempotent: Kafka does not ask whose producer id a batch names. Who may
    write to the log could use another's, and the broker would drop the other's record as a repeat,
    or end its producer. What is written twice, by Kafka's own retries as well, counts once.

    `key` signs; `root_key` is the public key of the mesh's root: what is signed counts in that mesh
    only. `acknowledged` is called when Kafka's answer is here and nobody has taken note of it yet.
    """

    def __init__(
        self,
        connection: Connection,
        registry: "Registry",
        key: SigningKey,
        root_key: str,
        acknowledged: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry, self.key, self._acknowledged = registry, key, acknowledged
        self.root_key = root_key
        # one append at a time: each waits for the delivery report of its own record
        self._lock = threading.Lock()
        self._doing = f"writing {topics.GOVERNANCE} as {connection.user}"
        settings = connection.config(
            enable_idempotence=False,
            # without it a retry could change the order
            max_in_flight_requests_per_connection=1,
            acks="all",
            linger_ms=0,
            delivery_timeout_ms=DELIVERY_TIMEOUT_S * 1000,
            message_max_bytes=topics.MAX_LOG_BYTES,
        )
        self._producer = Producer(settings)

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

        Raises RefusedError (no right to write; `too_large`: readers would not decode it),
        ConfigurationError (login, unknown schema) or InfrastructureError. After the latter the
        event may or may not stand on the log: append the very same event again.
        """
        return self.append_records([event], key)[0]

    def append_records(
        self, events: Sequence[Event], key: SigningKey | None = None
    ) -> list[Record]:
        """Sign and append several events without waiting for each; the records, in their order.

        Where the login has appended more than its quota, that is tried again for a while. Raises as
        `append_record`; then any of them may or may not stand on the log, in their order. None of
        them does after `too_large`.
        """
        wires = [self._wire(event, key or self.key) for event in events]
        until = time.monotonic() + DELIVERY_TIMEOUT_S
        while True:
            found = self._delivered(wires)
            errors = [error for error, _, _ in found if error is not None]
            refused = [error for error in errors if error.code() == _THROTTLED]
            # nothing of them is on the log, so that their order stays
            if not refused or len(refused) < len(wires) or time.monotonic() > until:
                break
            time.sleep(_THROTTLED_S)
        if errors:
            raise translated(errors[0], self._doing)
        if len(found) < len(wires):
            raise InfrastructureError(f"{self._doing}: Kafka does not answer", retriable=True)
        return [
            Record(offset, at, wire.key, wire.value, dict(wire.headers))
            for wire, (_, offset, at) in zip(wires, found, strict=True)
        ]

    def _delivered(self, wires: Sequence[Wire]) -> list[tuple[KafkaError | None, int, int]]:
        """(error, offset, append time) of each that Kafka has answered for, in their order."""
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
        return found

    def _wire(self, event: Event, key: SigningKey) -> Wire:
        wire = encode(event, self._registry.schema_id(event.type_name()), key, self.root_key)
        most = most_bytes(type(event))
        if len(wire.value) > most:
            raise RefusedError(
                FaultCode.TOO_LARGE.value,
                f"{event.type_name()} {event.meta.id} has {len(wire.value)} bytes, at most "
                f"{most} are read from {topics.GOVERNANCE}: say less in it; "
                "data belongs in a topic of your own",
            )
        return wire

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
    """A domain's reporter: makes `meta`, appends intents, waits for decisions.

    Args:
        connection: the login of the domain's intents, see `intents_login`.
        registry: knows the schemas' ids.
        key: the domain's signing key.
        mesh: root and governor of the mesh, `Profile.keys`; `outcome` waits for that governor.
        domain: for whom it speaks.
        actor: id of the person or service that says it, for the audit; see `require_actor`.
        producer: name/version of the emitting software; this package by default.

    Raises RefusedError for an actor that the governor would refuse.
    """

    def __init__(
        self,
        connection: Connection,
        registry: "Registry",
        key: SigningKey,
        *,
        mesh: MeshKeys,
        domain: str,
        actor: str,
        producer: str | None = None,
    ) -> None:
        require_actor(actor, domain)
        super().__init__(connection, registry, key, mesh.root)
        self._mesh = mesh
        self._connection = connection
        self._domain, self._actor = domain, actor
        self._software = producer or software()

    @classmethod
    def at_home(cls, domain: str, *, actor: str, home: Path | None = None) -> "Emitter":
        """The reporter of a domain whose key and login lie in `home`, by default `SDM_HOME`.

        Raises ConfigurationError (no mesh, key or login there), or RefusedError (the actor).
        """
        from mesh_events.schema.registry import Registry

        home = home or HomeSettings().home
        mesh = Profile.load(home)
        login = intents_login(domain)
        secret = home / "secrets" / mesh.governance_cluster / login
        if not secret.exists():
            raise ConfigurationError(
                f"no login of {domain} at {secret}: register {domain} here, or copy the file"
            )
        password = resolve(f"file:{secret}")
        return cls(
            Connection(mesh.bootstrap_servers, login, password, mesh.tls(home)),
            Registry.at_home(home, mesh),
            SigningKey.load(key_path(home, domain)),
            mesh=mesh.keys,
            domain=domain,
            actor=actor,
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
        return outcome_of(receipt, self._connection, self._registry, self._mesh, timeout=timeout)


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
