"""A copy stays exact while the Spark server that makes it is killed again and again."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from local_platform import Endpoints
from mesh_events.facts import LinkActivated
from processors.controllers.links import links
from projections.links import State
from spark_streams.log import KafkaLog
from spark_streams.spark import SparkEngine
from tests.conftest import new_settings
from tests.faults.copy_checker import differences, missing, read
from tests.faults.spark_server import SparkServer
from tests.links.real import QUICK, RealLink
from tests.selection import draws

pytestmark = pytest.mark.slow

KILLS = 10
WAIT_S = 400
"""For each single step: a busy machine needs a minute to start a server, a quiet one 5 s."""
RATE = 1500
"""Records per second while the server is being killed; it comes back to a backlog of seconds."""


class KilledLink(RealLink):
    """A link whose Spark server belongs to this test."""

    # a server that has just been started may need long for the first record
    pace = replace(QUICK, look=2, stall=60)
    # the server that is being started needs the processor more than the controller does
    pause_s = 0.5

    def __init__(self, endpoints: Endpoints, server: SparkServer) -> None:
        self.server = server
        super().__init__(endpoints, partitions=4)
        self._west = KafkaLog(self.west.login)

    def new_engine(self) -> SparkEngine:
        return SparkEngine(self.server.remote, self.server.token, self.topic)

    def close(self) -> None:
        self._west.close()
        self.controller.close()
        for admin in self.admins.values():
            admin.delete_topic(self.topic)

    def copied(self) -> int:
        return sum(end for _, end in self._west.bounds(self.topic, range(4)).values())

    def incarnations(self) -> int:
        return len(self.harness.said(LinkActivated))

    def kill_under_load(self, chance: random.Random) -> None:
        """Kill the server while it copies, or while it is just about to; start it again."""
        before, seed = self.incarnations(), chance.random()
        self.reconcile_until(lambda: self.incarnations() > before or self.is_running(), WAIT_S)
        if seed > 0.2:
            stood = self.copied()
            self.reconcile_until(lambda: self.copied() > stood, WAIT_S)
        # at any moment: between two records, in the middle of a batch, at the first flush
        time.sleep(chance.random())
        self.server.kill()
        self.server.start()
        self.reconcile_until(lambda: self.incarnations() > before, WAIT_S)

    def is_running(self) -> bool:
        return self.harness.link.state is State.ACTIVE

    def compare(self) -> tuple[list[str], int]:
        """(what is wrong with the copy, how many records it has fewer than the source)."""
        copy = read(self.west.login.config(), self.topic)
        source = read(self.east.login.config(), self.topic)
        origin = f"east/{self.east.topic(self.topic).id}"
        return differences(source, copy, origin), missing(source, copy)


class Load(Thread):
    """Writes records of every kind to the source until it is told to stop."""

    def __init__(self, link: RealLink, seed: int) -> None:
        super().__init__(daemon=True)
        self._topic, self._chance, self._stop_asked = link.topic, random.Random(seed), Event()
        self._producer = Producer(link.east.login.config(linger_ms=5))
        self.written = 0

    def run(self) -> None:
        began = time.monotonic()
        while not self._stop_asked.wait(0.05):
            while self.written < (time.monotonic() - began) * RATE:
                partition, key, value, headers = self._record(self.written)
                self._producer.produce(self._topic, value, key, partition, headers=headers)
                self._producer.poll(0)
                self.written += 1
        assert self._producer.flush(60) == 0

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(60)
        assert not self.is_alive()

    def _record(self, n: int) -> tuple:
        roll = self._chance.random()
        key = None if roll < 0.2 else f"key {n % 97}".encode()
        value = None if roll > 0.9 else f"{n} ".encode() * self._chance.randint(1, 40)
        headers = None if roll < 0.5 else [("n", str(n).encode()), ("null", None), ("n", b"2")]
        return n % 4, key, value, headers


@pytest.fixture(scope="module")
def server() -> Iterator[SparkServer]:
    made = SparkServer(new_settings())
    made.start()
    yield made
    made.remove()


@pytest.fixture
def link(platform: Endpoints, server: SparkServer) -> Iterator[KilledLink]:
    made = KilledLink(platform, server)
    yield made
    made.close()


@pytest.mark.timeout(900)
@pytest.mark.long
def test_the_copy_is_exact_after_ten_kills_of_the_server_under_load(link: KilledLink) -> None:
    chance = draws("kills")
    load = Load(link, 1)
    load.start()
    try:
        for _ in range(KILLS):
            link.kill_under_load(chance)
    finally:
        load.stop()
    link.reconcile_until(lambda: link.copied() >= load.written, WAIT_S)
    assert link.compare() == ([], 0)
    assert link.copied() == load.written
    assert link.incarnations() >= KILLS


@pytest.mark.long
def test_the_checker_sees_a_link_that_starts_one_behind_its_tail(
    link: KilledLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    link.produce(*[(n % 4, None, str(n).encode(), None) for n in range(400)])
    link.reconcile_until(lambda: link.incarnations() == 1 and link.copied() == 400, WAIT_S)
    assert link.compare() == ([], 0)
    right = links.start_positions

    def wrong(*arguments, **options):
        return {p: position + 1 for p, position in right(*arguments, **options).items()}

    link.harness.pause()
    link.reconcile_until(lambda: link.harness.link.state is State.PAUSED)
    link.produce(*[(n % 4, None, str(n).encode(), None) for n in range(400)])
    monkeypatch.setattr(links, "start_positions", wrong)
    link.harness.resume()
    link.reconcile_until(lambda: link.copied() == 796, WAIT_S)
    findings, fewer = link.compare()
    assert len(findings) == 4
    assert fewer == 4


def test_the_checker_sees_what_is_doubled_changed_or_out_of_order() -> None:
    source = {0: [(n, b"k", str(n).encode(), []) for n in range(3)]}
    exact = [(n, b"k", str(n).encode(), [("mesh.source", f"o/0/{n}".encode())]) for n in range(3)]
    assert differences(source, {0: exact}, "o") == []
    assert differences(source, {0: exact[:2]}, "o") == []
    assert missing(source, {0: exact[:2]}) == 1
    for wrong in (
        [*exact, exact[2]],
        [exact[1], exact[0], exact[2]],
        [exact[0], exact[2]],
        [(0, b"K", *exact[0][2:]), *exact[1:]],
        [(0, b"k", b"0", [*exact[0][3], ("more", b"")]), *exact[1:]],
    ):
        assert differences(source, {0: wrong}, "o") != []
