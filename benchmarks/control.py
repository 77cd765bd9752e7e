"""The control plane's latencies: intent to row, grant to first read, revocation to refusal."""

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from benchmarks.latency import UPDATES, WARM_UP, row_latency
from benchmarks.members import Members, wait
from benchmarks.report import spread, surroundings, tell
from local_platform import Endpoints
from mesh_events.emit import Emitter
from mesh_events.intents import AccessGranted, AccessRequested, AccessRevoked
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from processors.clusters.rights import reader
from projections.image import Image


class Bench(Members):
    """Two domains on east, one on west, and a product with a record to read."""

    def __init__(self, endpoints: Endpoints, home: Path, partitions: int = 1) -> None:
        super().__init__(endpoints, home)
        self.owner = self._member(f"own{self.tag}", "east")
        self.here = self._member(f"here{self.tag}", "east")
        self.there = self._member(f"there{self.tag}", "west")
        self.product = f"own{self.tag}.orders"
        self.apps = {
            "shared cluster": f"here{self.tag}.app",
            "over the link": f"there{self.tag}.app",
        }
        self.publish(self.owner, self.product, partitions)

    def _member(self, name: str, cluster: str) -> Emitter:
        emitter = self.domain(name, cluster)
        self.application(emitter, f"{name}.app")
        return emitter


def run(endpoints: Endpoints, home: Path, rounds: int) -> None:
    """All latencies of the control plane, with the floor of a bare write and read."""
    around = surroundings() | {"warm_up": WARM_UP}
    bench = Bench(endpoints, home)
    figures: dict[str, dict[str, Any]] = {
        "floor: record written -> read": spread(_floor(bench)),
        "intent -> row on mesh.catalog": spread(row_latency(bench, bench.owner, bench.product)),
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
        for _ in range(WARM_UP + UPDATES):
            start = time.perf_counter()
            producer.produce(bench.product, b"x" * 300, partition=0)
            producer.flush(10)
            wait(lambda: reader.poll(0.5), 10)
            took.append(time.perf_counter() - start)
    return took[WARM_UP:]


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
        bench.submit(consumer, asked)
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
    return access.state == "REVOKED" and (link is None or link.state == "DELETED")


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
