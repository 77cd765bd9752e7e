"""A broker whose threads that clean topics and end transactions have much to do for a domain."""

import gzip
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform.security.principals import Principal
from local_platform.settings import PlatformSettings
from mesh_events.kafka.connection import Connection
from tests.conftest import new_settings
from tests.integration.local_platform.bounded import broker, connected, log_of, owner
from tests.integration.local_platform.clients import wait_until
from tests.integration.local_platform.raw_kafka import RawConnection
from tests.odd_batches import batch, packed, record

pytestmark = pytest.mark.platform

DAY_MS = 24 * 3600 * 1000
GZIP = 1
RECORDS, BATCHES = 100_000, 30
"""Records of a batch, and batches of a topic: the cleaner takes far longer for it than a slice."""
SLICE = {"mesh.cleaner.slice.ms": 500, "mesh.cleaner.slice.most.ms": 1000}
OFTEN = {"log.cleaner.backoff.ms": "200"}
BUSY, OTHER = owner("busy"), owner("other")
READ_BYTES = 256 * 1024
"""What the broker of the test of markers reads at once."""
TOPICS, TRANSACTIONS = 100, 200
"""Markers of one transaction come to 25 KB then, by the names of its topics."""


@dataclass
class Log:
    """A compacted topic with one partition, which is dirty once it has a second segment."""

    admin: Connection
    settings: PlatformSettings
    name: str
    who: Principal | None

    def client(self) -> closing[RawConnection]:
        """A connection of who appends to it."""
        address = self.admin.bootstrap_servers
        return closing(
            connected(self.admin, self.who) if self.who else RawConnection(address, self.admin)
        )

    def fill(self, one: bytes, count: int) -> None:
        """Create the topic and append `count` copies of a batch."""
        wanted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
        admin = AdminClient(self.admin.config())
        admin.create_topics([NewTopic(self.name, 1, 1, config=wanted)])[self.name].result(20)
        with self.client() as client:
            for _ in range(count):
                wait_until(lambda: client.produce(self.name, {0: one}) == {0}, "it is taken", 30)

    def roll(self) -> int:
        """Append a record of today, which begins a segment; the bytes before that."""
        before = self.size()
        with self.client() as client:
            assert client.produce(self.name, {0: batch(record())}) == {0}
        return before

    def size(self) -> int:
        while True:
            # one is renamed when another one takes its place
            with suppress(FileNotFoundError):
                return sum(one.stat().st_size for one in self.files("log"))

    def is_being_cleaned(self) -> bool:
        """Whether what is kept of it is being written: half of the work is done."""
        return any(self.files("cleaned"))

    def files(self, ending: str) -> Iterator[Path]:
        return self.settings.home.rglob(f"{self.name}-0/*.{ending}")


def a_week_ago() -> int:
    return int(time.time() * 1000) - 7 * DAY_MS


def test_others_topics_and_those_of_no_domain_are_cleaned_before_logs_that_take_long() -> None:
    """Kafka is through with a log before it takes another, the filthiest first."""
    settings = new_settings()
    many = b"".join(record(b"", b"", delta=at) for at in range(RECORDS))
    dear = packed(gzip.compress(many), RECORDS, GZIP, time_ms=a_week_ago())
    ordinary = batch(record(), time_ms=a_week_ago())
    with broker(SLICE, [BUSY, OTHER], settings, OFTEN) as admin:
        long = [Log(admin, settings, f"busy.{number}", BUSY) for number in range(2)]
        others = [Log(admin, settings, "other.t", OTHER), Log(admin, settings, "mesh.t", None)]
        for log in long:
            log.fill(dear, BATCHES)
        for log in others:
            log.fill(ordinary, 20)
        sizes = {log.name: log.roll() for log in long}
        wait_until(lambda: any(log.is_being_cleaned() for log in long), "a long one is begun", 60)
        sizes |= {log.name: log.roll() for log in others}

        def are_clean(logs: list[Log]) -> bool:
            return all(log.size() < sizes[log.name] for log in logs)

        wait_until(lambda: are_clean(others), "the others are clean", 60)
        assert f"is not cleaned to its end: topics of {OTHER.name} wait" in log_of(settings)
        # they have their turn when nobody waits
        wait_until(lambda: are_clean(long), "the long ones are clean", 300)


def test_transactions_end_however_many_markers_are_to_be_written() -> None:
    """Kafka sends all in one request: one larger than a broker reads was sent again for ever."""
    names = [f"busy.{number:03}".ljust(249, "x") for number in range(TOPICS)]
    bounds = {"mesh.markers.bytes": 1024}
    reads = {"socket.request.max.bytes": str(READ_BYTES)}
    with broker(bounds, [BUSY, OTHER], more=reads) as admin, ExitStack() as clients:
        client = AdminClient(admin.config())
        for made in client.create_topics([NewTopic(name, 1, 1) for name in names]).values():
            made.result(30)
        client.create_topics([NewTopic("other.t", 1, 1)])["other.t"].result(20)
        mine = [connected(admin, BUSY) for _ in range(16)]
        for one in mine:
            clients.callback(one.close)
        first = mine[0]
        wait_until(lambda: first.find_transaction_coordinator("busy.0") == 0, "it is found", 30)
        producers = {}
        for number in range(TRANSACTIONS):
            # the first one of a partition of Kafka's log waits until that is loaded
            assert first.init_producer_id(f"busy.{number}") == 0
            producers[f"busy.{number}"] = found = first.producer_of(f"busy.{number}")
            first.add_topics_to_transaction(f"busy.{number}", names, found)
        for number, (name, producer) in enumerate(producers.items()):
            mine[number % len(mine)].ask_to_commit(name, producer)
        login = replace(admin, user=OTHER.name, password=OTHER.password)
        other = Producer(login.config(**{"transactional.id": "other.one"}))
        other.init_transactions(60)
        for _ in range(20):
            other.begin_transaction()
            other.produce("other.t", b"x")
            other.commit_transaction(60)
        reader = connected(admin, BUSY)
        clients.callback(reader.close)
        # a marker is a record: the offset behind all of them is there once each has its own
        wait_until(
            lambda: all(reader.fetch(name, 0, TRANSACTIONS) == 0 for name in names),
            "all transactions have ended",
            60,
        )
