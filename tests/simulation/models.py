"""Models of what workers talk to; every call passes a place where the worker can be interrupted."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh_events.emit import Receipt
from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection
from mesh_events.meta import Event
from mesh_events.record import Record
from mesh_events.rows import Row
from mesh_events.signing import SigningKey
from processors.clusters.kafka import Login, Topic
from processors.clusters.rights import Acl, Binding
from projections.image import Image
from spark_streams.engine import CopySpec, States
from spark_streams.last import Last
from spark_streams.log import Ahead, Bounds
from tests.links.memory import MemoryCluster, MemoryEngine, MemoryLogs
from tests.memory_log import MemoryLog, record_of, sign
from tests.simulation.interrupts import Interrupts


class Writer:
    """Appends to the log in memory, as one worker's `LogWriter`."""

    def __init__(
        self,
        log: MemoryLog,
        interrupts: Interrupts,
        key: SigningKey,
        may_act: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log, self._interrupts, self.key = log, interrupts, key
        self._may_act = may_act

    def append(self, event: Event, key: SigningKey | None = None) -> Receipt:
        return Receipt(event.meta.id, self.append_record(event, key).offset)

    def append_record(self, event: Event, key: SigningKey | None = None) -> Record:
        wire = sign(event, key or self.key)
        self._may_act(f"append {event.type_name()}")

        def put() -> Record:
            self._log.put(record_of(wire, 0, 0))
            return self._log.records[-1]

        return self._interrupts.effect(f"append {event.type_name()}", put)

    def append_records(self, events: Sequence[Event]) -> list[Record]:
        """Kafka may lose one of several records and take those behind it."""
        done: list[Record] = []
        failed: InfrastructureError | None = None
        for event in events:
            try:
                done.append(self.append_record(event))
            except InfrastructureError as error:
                failed = error
        if failed is not None:
            raise failed
        return done


@dataclass
class RowTopics:
    """Row topic -> (key, row) in the order of the topic."""

    topics: dict[str, list[tuple[str, Row | None]]] = field(default_factory=dict)

    def put(self, topic: str, key: str, row: Row | None) -> None:
        self.topics.setdefault(topic, []).append((key, row))

    def latest(self) -> dict[tuple[str, str], Row]:
        found: dict[tuple[str, str], Row] = {}
        for topic, rows in self.topics.items():
            for key, row in rows:
                found.pop((topic, key), None)
                if row is not None:
                    found[topic, key] = row
        return found


class Rows:
    """One worker's `RowWriter`; a row that Kafka did not take is told at the next call."""

    def __init__(self, topics: RowTopics, interrupts: Interrupts) -> None:
        self.lock = threading.RLock()
        self._topics, self._interrupts = topics, interrupts

    def write(self, rows: Iterable[Row]) -> None:
        for row in list(rows):

            def put(row: Row = row) -> None:
                self._topics.put(row.topic, row.key, row)

            self._interrupts.effect(f"row {row.key}", put)

    def tombstone(self, topic: str, key: bytes) -> None:
        self._interrupts.effect(
            f"tombstone {key!r}", lambda: self._topics.put(topic, key.decode(), None)
        )

    def flush(self) -> None:
        return


@dataclass
class RowMessage:
    """What a reader of a row topic gets; the row itself stands for its bytes."""

    _key: str
    _value: Any

    def key(self) -> bytes:
        return self._key.encode()

    def value(self) -> Any:
        return self._value


class RowReader:
    """A `PartitionReader` of a row topic; the topics stand in place of the connection."""

    def __init__(self, topics: RowTopics, topic: str, start: int | None = 0) -> None:
        self._rows = topics.topics.setdefault(topic, [])
        self._fetches = start is not None
        self.position = start or 0

    def bounds(self) -> tuple[int, int]:
        return 0, len(self._rows)

    def seek(self, offset: int) -> None:
        self._fetches, self.position = True, offset

    def rest(self) -> None:
        self._fetches = False

    def to_end(self) -> Iterable[RowMessage]:
        assert self._fetches, "who rests gets nothing"
        new, self.position = self._rows[self.position :], len(self._rows)
        return [RowMessage(key, row) for key, row in new]


class Admin:
    """One worker's connection to a cluster: a `ClusterAdmin` and a `PartitionLog`."""

    def __init__(
        self,
        cluster: MemoryCluster,
        interrupts: Interrupts,
        granted: Callable[[str, list[Binding]], None],
        may_act: Callable[[str], None],
    ) -> None:
        self._cluster, self._interrupts, self._granted = cluster, interrupts, granted
        self._may_act = may_act
        self.name, self.bootstrap_servers = cluster.name, cluster.bootstrap_servers

    def _do(self, what: str, do: Callable[[], Any]) -> Any:
        return self._interrupts.effect(f"{what} on {self.name}", do)

    def _change(self, what: str, do: Callable[[], Any]) -> None:
        self._may_act(f"{what} on {self.name}")
        self._do(what, do)

    def ping(self) -> int:
        return self._cluster.ping()

    def topic(self, name: str) -> Topic | None:
        found: Topic | None = self._do("topic", lambda: self._cluster.topic(name))
        return found

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str], replicas: int = -1
    ) -> None:
        del replicas
        self._change("create topic", lambda: self._cluster.create_topic(name, partitions, config))

    def add_partitions(self, name: str, partitions: int) -> None:
        self._change("add partitions", lambda: self._cluster.add_partitions(name, partitions))

    def delete_topic(self, name: str) -> None:
        self._change("delete topic", lambda: self._cluster.delete_topic(name))

    def rights(self, principal: str | None = None, topic: str | None = None) -> set[Binding]:
        found: set[Binding] = self._do("rights", lambda: self._cluster.rights(principal, topic))
        return found

    def acls(self, principal: str | None = None) -> set[Acl]:
        found: set[Acl] = self._do("acls", lambda: self._cluster.acls(principal))
        return found

    def grant(self, bindings: Iterable[Binding]) -> None:
        wanted = list(bindings)

        def give() -> None:
            self._cluster.grant(wanted)
            self._granted(self.name, wanted)

        self._change("grant", give)

    def withdraw(self, rights: Iterable[Binding | Acl]) -> None:
        unwanted = list(rights)
        self._change("withdraw", lambda: self._cluster.withdraw(unwanted))

    def login_of(self, principal: str) -> Login:
        found: Login = self._do("login", lambda: self._cluster.login_of(principal))
        return found

    def lets_in(self, principal: str, password: str) -> bool:
        found: bool = self._do("log in", lambda: self._cluster.lets_in(principal, password))
        return found

    def set_password(self, principal: str, password: str) -> None:
        self._do("password", lambda: self._cluster.set_password(principal, password))

    def set_quotas(self, quotas: Mapping[str, Mapping[str, float]]) -> None:
        self._do("quotas", lambda: self._cluster.set_quotas(quotas))

    def retire_login(self, principal: str) -> None:
        self._do("retire login", lambda: self._cluster.retire_login(principal))

    def connection(self, principal: str, password: str) -> Connection:
        return self._cluster.connection(principal, password)

    def bounds(self, topic: str, partitions: Iterable[int]) -> Bounds:
        wanted = list(partitions)
        found: Bounds = self._do("bounds", lambda: self._bounds(topic, wanted))
        return found

    def _bounds(self, topic: str, partitions: list[int]) -> Bounds:
        if topic not in self._cluster.topics:
            raise InfrastructureError(f"no topic {topic} on {self.name}", retriable=True)
        return self._cluster.bounds(topic, partitions)

    def last(self, topic: str, within: Bounds, *, headers: bool = True) -> dict[int, Last]:
        del headers
        if topic not in self._cluster.topics:
            raise InfrastructureError(f"no topic {topic} on {self.name}", retriable=True)
        return self._cluster.last(topic, within)

    def first(self, topic: str, within: Bounds, most_s: float) -> dict[int, Ahead]:
        if topic not in self._cluster.topics:
            raise InfrastructureError(f"no topic {topic} on {self.name}", retriable=True)
        return self._cluster.first(topic, within, most_s)

    def close(self) -> None:
        return


class Logs(MemoryLogs):
    """One worker's looks into topics."""

    def __init__(self, admins: Mapping[str, Admin], clusters: dict[str, MemoryCluster]) -> None:
        super().__init__(clusters)
        self._admins = admins

    def source(self, _: Image, cluster: str) -> Admin:  # type: ignore[override]
        return self._admins[cluster]

    destination = source  # type: ignore[assignment]


class Engine:
    """One worker's session with the Spark server that all of them share."""

    is_stopped = False

    def __init__(self, engine: MemoryEngine, interrupts: Interrupts) -> None:
        self._engine, self._interrupts = engine, interrupts

    def states(self) -> States:
        return self._engine.states()

    def require_room(self, link: str, partitions: int) -> None:
        self._engine.require_room(link, partitions)

    def start(self, spec: CopySpec) -> None:
        self._interrupts.effect("start query", lambda: self._engine.start(spec))

    def stop(self, link: str) -> None:
        self._interrupts.effect("stop query", lambda: self._engine.stop(link))

    def close(self) -> None:
        return


class Secrets:
    """A `SecretStore` that keeps nothing: a principal's password is always the same."""

    def known(self, cluster: str, principal: str) -> list[str]:
        return [self.prepare(cluster, principal)]

    def prepare(self, cluster: str, principal: str) -> str:
        return f"{cluster} {principal}"

    def prepared(self, cluster: str, principal: str) -> str:
        return f"/secrets/{cluster}/.{principal}.next"

    def promote(self, cluster: str, principal: str, password: str) -> None:
        assert password == self.prepare(cluster, principal)

    def reference(self, cluster: str, principal: str) -> str:
        return f"file:/secrets/{cluster}/{principal}"


class Registry:
    """The latest schema of each subject that has one; `down` answers nothing."""

    def __init__(self, subjects: Iterable[str]) -> None:
        self._subjects, self.down = set(subjects), False

    def latest(self, subject: str) -> tuple[int, int] | None:
        if self.down:
            raise InfrastructureError("the registry does not answer", retriable=True)
        return (7, 1) if subject in self._subjects else None
