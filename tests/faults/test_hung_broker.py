"""A broker that hangs for longer than clients wait: each long-lived client gets on afterwards."""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from openlineage.client.event_v2 import RunState

from local_platform import Endpoints, LocalPlatform
from mesh_events import topics
from mesh_events.emit import LogWriter
from mesh_events.errors import MeshError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.meta import new_id
from mesh_events.read import LogReader
from mesh_events.schema.registry import Registry
from processors.clusters.kafka import KafkaAdmin
from processors.governor.row_writer import RowWriter
from processors.lineage.events import JobRun, LineageTopic
from processors.lineage.reader import LineageReader
from processors.log.end import LogEnd
from projections.rows import all_rows
from spark_streams.log import KafkaLog
from tests import sample_history as story
from tests.conftest import new_settings, start
from tests.kafka_client import eventually
from tests.memory_log import MemoryLog, key

pytestmark = pytest.mark.platform
HANG_S, RECOVERY_S = 90.0, 45.0
"""Longer than a request, a session and a login may take; and so soon all goes on after it."""
ROWS = "mesh.catalog"


class OneSchema(Registry):
    """A registry that gives every schema the same id; nobody here reads by it."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.schema_id = lambda _: 1  # type: ignore[assignment]


@dataclass
class Client:
    """A client in use; `done` grows whenever what it does has succeeded."""

    name: str
    act: Callable[[], object]
    done: int = 0
    fault: str = ""

    def use(self, over: threading.Event) -> None:
        """Use it over and over, as the worker does after an expected failure."""
        while not over.wait(0.2):
            try:
                self.done += bool(self.act())
            except MeshError as error:
                self.fault = str(error)


@pytest.fixture
def broker() -> Iterator[tuple[LocalPlatform, Endpoints]]:
    settings = new_settings()
    platform = LocalPlatform(settings, ("kafka-east",))
    try:
        yield platform, start(platform)
    finally:
        platform.down()
        shutil.rmtree(settings.home, ignore_errors=True)


def hang(platform: LocalPlatform) -> None:
    """Stop east's broker for HANG_S: no condition shows that clients gave it up."""
    platform.kill("kafka-east", signal.SIGSTOP)
    try:
        time.sleep(HANG_S)
    finally:
        platform.kill("kafka-east", signal.SIGCONT)


def rows_controller(connection: Connection) -> Callable[[], object]:
    """Reads what is new up to the end, and rests."""
    reader = PartitionReader(connection, ROWS, None)

    def act() -> bool:
        low, end = reader.bounds()
        if reader.position >= end:
            return False
        reader.seek(max(low, reader.position))
        found = list(reader.to_end())
        reader.rest()
        return bool(found)

    return act


def log_end(connection: Connection) -> Callable[[], object]:
    """Counts only an end that moved on."""
    there, seen = LogEnd(connection), [0]

    def act() -> bool:
        before, seen[0] = seen[0], there.offset() or seen[0]
        return seen[0] > before

    return act


def lineage_reader(connection: Connection) -> Callable[[], object]:
    """Reads one event and commits its place, as the forwarding does; opened anew after an error."""
    opened: list[LineageReader] = []

    def act() -> bool:
        if not opened:
            opened.append(LineageReader(connection))
        try:
            if opened[0].first() is None:
                return False
            opened[0].dealt_with()
            opened[0].save()
        except MeshError:
            opened.pop().close()
            raise
        return True

    return act


def ends(connection: Connection) -> Callable[[], object]:
    """Asks for the ends of a topic, and its last record, as flows do."""
    log = KafkaLog(connection)

    def act() -> bool:
        bounds = log.bounds(ROWS, [0])
        return bool(log.last(ROWS, bounds))

    return act


def lineage(connection: Connection) -> Callable[[], object]:
    """Tells an event; the topic does not raise, so its acknowledgement is asked for."""
    topic = LineageTopic(connection)
    run = JobRun("n", "j", new_id(), "LINK", (), (), {})

    def act() -> bool:
        topic.tell(RunState.RUNNING, run)
        # for a minute after a failure `tell` does not wait for it
        return topic._producer.flush(1) == 0

    return act


def rows(connection: Connection) -> Callable[[], object]:
    """Writes a row."""
    log = MemoryLog()
    story.published(log)
    writer, row = RowWriter(connection, OneSchema()), next(iter(all_rows(log.image)))

    def act() -> bool:
        writer.write([row])
        writer.flush()
        return True

    return act


def appends(connection: Connection) -> Callable[[], object]:
    """Appends a record to the log."""
    log = MemoryLog()
    story.published(log)
    writer = LogWriter(connection, OneSchema(), key("governor"), key("root").public)
    event = log.event_at(log.image.offset)
    return lambda: writer.append(event)


@pytest.mark.long
def test_every_long_lived_client_gets_on_after_a_broker_that_hung(
    broker: tuple[LocalPlatform, Endpoints],
) -> None:
    platform, endpoints = broker
    connection = endpoints.administration("east")
    admin = KafkaAdmin("east", connection)
    for topic in (topics.GOVERNANCE, topics.LINEAGE, ROWS):
        admin.create_topic(topic, 1, {})
        eventually(lambda topic=topic: admin.topic(topic), f"{topic} is there")
    reader = LogReader(connection)
    clients = [
        Client("the rows controller's reader", rows_controller(connection)),
        Client("the end of the log", log_end(connection)),
        Client("a standby's and sdm's reader", lambda: list(reader.follow(0.1))),
        Client("the reader of the lineage", lineage_reader(connection)),
        Client("the ends of topics", ends(connection)),
        Client("the writer of the lineage", lineage(connection)),
        Client("the writer of rows", rows(connection)),
        Client("the writer of the log", appends(connection)),
        Client("an administrator's client", lambda: admin.topic(ROWS)),
    ]
    over = threading.Event()
    threads = [threading.Thread(target=one.use, args=(over,), daemon=True) for one in clients]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: all(one.done for one in clients), "all work", 60)
        hang(platform)
        # what was answered before the hang is not counted
        over.wait(1)
        for one in clients:
            one.done, one.fault = 0, ""

        def stuck() -> list[str]:
            return [f"{one.name}: {one.fault}" for one in clients if not one.done]

        deadline = time.monotonic() + RECOVERY_S
        while stuck() and time.monotonic() < deadline:
            over.wait(0.5)
        assert stuck() == []
    finally:
        over.set()
        for thread in threads:
            thread.join(40)
