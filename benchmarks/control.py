"""The control plane's latencies: intent to row, grant to first read, revocation to refusal."""

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from benchmarks.report import spread, surroundings, tell
from local_platform import Endpoints
from mesh_events import topics
from mesh_events.emit import Emitter
from mesh_events.intents import (
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    ApplicationRegistered,
    DomainRegistered,
    Intent,
    ProductPublished,
    ProductUpdated,
    Quality,
)
from mesh_events.kafka import Connection
from mesh_events.read import LogReader, PartitionReader, decode_row
from mesh_events.references import resolve
from mesh_events.registry import Registry
from mesh_events.settings import Profile, key_path
from mesh_events.signing import SigningKey
from processors.clusters import KafkaAdmin
from processors.rights import reader
from processors.settings import OPERATOR, WorkerSettings
from projections.image import EMPTY, Image
from projections.replay import replay

_Found = TypeVar("_Found")
UPDATES = 300
UPDATES_PER_S = 20


class Bench:
    """Two domains on east, one on west, and a product with a record to read."""

    def __init__(self, endpoints: Endpoints, home: Path, partitions: int = 1) -> None:
        self.settings = WorkerSettings.load()
        self.profile = Profile.load(home)
        self.registry = Registry(endpoints.registry_url)
        self.clusters = {
            name: KafkaAdmin(name, endpoints.administration(name)) for name in endpoints.clusters
        }
        self._reader = LogReader(self.clusters["east"].login)
        self._image = EMPTY
        self._operator = Emitter(
            self.settings.governance(OPERATOR),
            self.registry,
            SigningKey.load(key_path(home, "operator")),
            domain="mesh",
            actor="benchmark",
            governor_key=self.profile.governor_key,
        )
        tag = uuid.uuid4().hex[:6]
        self.owner = self._domain(f"own{tag}", "east")
        self.here = self._domain(f"here{tag}", "east")
        self.there = self._domain(f"there{tag}", "west")
        self.product = f"own{tag}.orders"
        self.apps = {"shared cluster": f"here{tag}.app", "over the link": f"there{tag}.app"}
        self._publish(endpoints, partitions)

    def image(self) -> Image:
        """The image now."""
        self._image = replay(self._reader.to_end(), self._image)
        return self._image

    def say(self, emitter: Emitter, intent: Intent) -> None:
        """Emit and wait for the acceptance."""
        receipt = emitter.emit(intent)
        outcome = emitter.outcome(receipt)
        if not outcome.accepted:
            raise SystemExit(f"{intent.type_name()} was refused: {outcome.reason}")

    def login(self, principal: str, cluster: str) -> Connection:
        """The issued login of a principal."""
        password = resolve(self.settings.secrets().reference(cluster, principal))
        return self.clusters[cluster].connection(principal, password)

    def _domain(self, name: str, cluster: str) -> Emitter:
        key = SigningKey.generate()
        self.say(
            self._operator,
            DomainRegistered(
                meta=self._operator.meta(),
                domain=name,
                owner="benchmark",
                cluster=cluster,
                public_key=key.public,
            ),
        )
        wait(lambda: len(self.image().identity.domains[name].rights) == len({"east", cluster}))
        wait(lambda: self.image().identity.credentials[name, "east"].issued)
        login = self.login(name, "east")
        emitter = Emitter(
            login,
            self.registry,
            key,
            domain=name,
            actor="benchmark",
            governor_key=self.profile.governor_key,
        )
        self.say(emitter, ApplicationRegistered(meta=emitter.meta(), application=f"{name}.app"))
        wait(lambda: self.image().identity.applications[f"{name}.app"].rights)
        return emitter

    def _publish(self, endpoints: Endpoints, partitions: int) -> None:
        east = self.clusters["east"]
        east.create_topic(self.product, partitions, {})
        writer = SchemaRegistryClient(
            {
                "url": endpoints.registry_url,
                "basic.auth.user.info": (
                    f"{endpoints.registry_user}:{resolve(endpoints.registry_password)}"
                ),
                "timeout": 10,
            }
        )
        writer.register_schema(f"{self.product}-value", Schema('"string"', "AVRO"))
        producer = Producer(east.login.config())
        producer.produce(self.product, b"\x00\x00\x00\x00\x01\x06abc")
        producer.flush(10)
        self.say(
            self.owner,
            ProductPublished(
                meta=self.owner.meta(),
                product=self.product,
                topic=self.product,
                description="figures",
                owner="benchmark",
                quality=Quality.RAW,
                sla=3,
                acknowledged=True,
            ),
        )


def wait(look: Callable[[], _Found | None], seconds: float = 60) -> _Found:
    """Look again and again, at most so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.005)
    raise SystemExit("what the benchmark waits for did not happen: see `sdm status`")


def run(endpoints: Endpoints, home: Path, rounds: int) -> None:
    """All latencies of the control plane, with the floor of a bare write and read."""
    around = surroundings()
    bench = Bench(endpoints, home)
    figures: dict[str, dict[str, Any]] = {
        "floor: record written -> read": spread(_floor(bench)),
        "intent -> row on mesh.catalog": spread(_rows(bench)),
    }
    figures["floor: right given by hand -> first read"] = spread(_right_floor(bench, rounds))
    for label, consumer in (("shared cluster", bench.here), ("over the link", bench.there)):
        granted, refused = _access(bench, consumer, bench.apps[label], rounds)
        figures[f"grant -> first read, {label}"] = spread(granted)
        figures[f"revoke -> refused, {label}"] = spread(refused)
    tell("control", around, figures)


def _floor(bench: Bench) -> list[float]:
    """Write a record, read it: what any path over Kafka costs at least."""
    east = bench.clusters["east"]
    producer = Producer(east.login.config(linger_ms=0, acks="all", enable_idempotence=True))
    took: list[float] = []
    with PartitionReader(east.login, bench.product, 1) as reader:
        reader.poll(1)
        for _ in range(UPDATES):
            start = time.perf_counter()
            producer.produce(bench.product, b"x" * 300, partition=0)
            producer.flush(10)
            wait(lambda: reader.poll(0.5), 10)
            took.append(time.perf_counter() - start)
    return took


def _rows(bench: Bench) -> list[float]:
    """ProductUpdated emitted -> its row read by an independent consumer, at a steady rate."""
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}
    done = threading.Event()
    reader = PartitionReader(bench.clusters["east"].login, topics.CATALOG)
    reader.seek(reader.bounds()[1])

    def watch() -> None:
        while not done.is_set() and len(seen) < UPDATES:
            for message in reader.poll(0.2):
                row = decode_row(message.value(), bench.registry)
                seen.setdefault(str(getattr(row, "description", "")), time.perf_counter())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(UPDATES):
        text = f"update {number}"
        event = ProductUpdated(meta=bench.owner.meta(), product=bench.product, description=text)
        sent[text] = time.perf_counter()
        bench.owner.emit(event)
        time.sleep(max(0.0, 1 / UPDATES_PER_S - (time.perf_counter() - sent[text])))
    watcher.join(30)
    done.set()
    reader.close()
    return [seen[text] - start for text, start in sent.items() if text in seen]


def _access(
    bench: Bench, consumer: Emitter, application: str, rounds: int
) -> tuple[list[float], list[float]]:
    """A consumer that tries all the time; it is granted and revoked `rounds` times."""
    cluster = "east" if consumer is bench.here else "west"
    login = bench.login(application, cluster)
    granted: list[float] = []
    refused: list[float] = []
    for _ in range(rounds):
        asked = AccessRequested(
            meta=consumer.meta(), product=bench.product, application=application, reason="figures"
        )
        bench.say(consumer, asked)
        about = {"product": bench.product, "request": asked.meta.id}
        start = time.perf_counter()
        bench.owner.emit(AccessGranted(meta=bench.owner.meta(), **about))
        reading = _first_read(login, bench.product)
        granted.append(time.perf_counter() - start)
        start = time.perf_counter()
        bench.owner.emit(AccessRevoked(meta=bench.owner.meta(), reason="figures", **about))
        _refusal(reading)
        refused.append(time.perf_counter() - start)
        _wait_for_end(bench, asked.meta.id)
    return granted, refused


def _wait_for_end(bench: Bench, request: str) -> None:
    wait(lambda: _ended(bench.image(), request))


def _ended(image: Image, request: str) -> bool:
    access = image.access.requests[request]
    link = image.links.get(access.link or "")
    return access.state == "REVOKED" and (link is None or link.state == "REMOVED")


def _first_read(login: Connection, topic: str) -> Consumer:
    """Asks all the time whether it may see the topic, then reads its first record.

    A fresh consumer reads: one that was refused waits a second before it tries again.
    """
    asking = Consumer(login.config(group_id=f"{login.user}.figures"))
    wait(lambda: asking.list_topics(topic, timeout=5).topics[topic].error is None, 120)
    asking.close()
    reading = Consumer(
        login.config(
            group_id=f"{login.user}.figures",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
    )
    reading.assign([TopicPartition(topic, 0, 0)])
    message = reading.poll(30)
    if message is None or message.error() is not None:
        raise SystemExit("the grant was never seen by the reader")
    return reading


def _right_floor(bench: Bench, rounds: int) -> list[float]:
    """An administrator gives the right by hand -> the same reader's first read."""
    application, east = bench.apps["shared cluster"], bench.clusters["east"]
    login = bench.login(application, "east")
    took: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        east.grant(reader(application, bench.product))
        _first_read(login, bench.product).close()
        took.append(time.perf_counter() - start)
        east.withdraw(reader(application, bench.product))
    return took


def _refusal(reading: Consumer) -> None:
    """Read on and on, from the beginning, until Kafka refuses."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = reading.poll(0.05)
        error = message.error() if message is not None else None
        if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            reading.close()
            return
    raise SystemExit("the revocation was never seen by the reader")
