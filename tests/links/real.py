"""Links on real servers: topics of one test's own, a source to write and a copy to read."""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from openlineage.client.event_v2 import RunState

from local_platform import Endpoints
from mesh_events.intents import Engine
from processors.clusters.kafka import KafkaAdmin
from processors.connect.principals import group_of
from processors.connect.rest import Connect
from processors.connect.secrets import ConnectSecrets
from processors.controllers.flows import fence
from processors.controllers.flows.ends import ClusterLogs, Reach
from processors.controllers.flows.pace import Pace
from processors.controllers.flows.partition_limit import MOST_PARTITIONS
from processors.controllers.links.links import LinksController, Mirrors
from processors.lineage.events import JobRun
from processors.mirror.engine import MirrorEngine
from processors.spark.error_files import ErrorFiles
from projections.identity import Cluster
from spark_streams.spark import SparkEngine
from tests.links.harness import ControllerHarness
from tests.mesh_fixtures import TESTERS, connect_worker, domain_server

QUICK = Pace(look=0.2, advance=0.5, lineage=0.5, retry_first=0.2, retry_most=2, stall=30, grace=0.5)
"""The first query of a server starts slowly, and is not to be restarted for that."""
DOMAIN = "east"
"""Whose products are copied."""
Record = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""(offset, key, value, headers)."""


@dataclass
class LineageList:
    """Lineage that is kept for the test to look at."""

    told: list[tuple[RunState, JobRun, str | None]] = field(default_factory=list)

    def tell(self, kind: RunState, run: JobRun, reason: str | None = None) -> None:
        self.told.append((kind, run, reason))


class RealLink:
    """One link from east to west with its controller; `partitions` of a fresh source topic."""

    pace = QUICK
    engine = Engine.SPARK
    errors: ErrorFiles | None = None
    logs: ClusterLogs | None = None
    """Set for links that share their connections; the next controller gets them."""
    most_partitions = MOST_PARTITIONS
    pause_s = 0.05
    """Between two looks of the controller, seconds."""

    def __init__(self, endpoints: Endpoints, partitions: int = 3, **config: str) -> None:
        self.endpoints = endpoints
        self.admins = {
            name: KafkaAdmin(name, endpoints.administration(name)) for name in endpoints.clusters
        }
        self.topic = f"{DOMAIN}.t{uuid.uuid4().hex[:10]}"
        self.partitions = partitions
        self.east.create_topic(self.topic, partitions, config)
        until(lambda: self.east.topic(self.topic) is not None)
        clusters = [
            Cluster(name, one.bootstrap_servers, one.admin_user, one.admin_password, 0)
            for name, one in sorted(endpoints.clusters.items())
        ]
        self.harness = ControllerHarness(clusters, self.topic, self.topic, self.engine)
        self.lineage = LineageList()
        self.controller = self.new_controller()

    @property
    def east(self) -> KafkaAdmin:
        return self.admins["east"]

    @property
    def west(self) -> KafkaAdmin:
        return self.admins["west"]

    def new_engine(self) -> SparkEngine:
        """An engine as another process has it; the first one waits for the server to start."""
        return SparkEngine(*domain_server(self.endpoints, DOMAIN), self.topic)

    def new_controller(self) -> LinksController:
        """Another process's controller, as far as the controller can tell."""
        if self.engine is Engine.SPARK:
            # its start is no part of what a test waits for
            self.new_engine().close()
        return LinksController(
            Reach(
                lambda _, name: self.admins[name],
                self.logs or ClusterLogs(self.endpoints.tls),
                errors=self.errors,
                most_partitions=self.most_partitions,
            ),
            lambda _: self.new_engine(),
            self.lineage,
            lambda _: json.dumps("bytes"),
            self.pace,
            mirrors=self.new_mirrors(),
        )

    def new_mirrors(self) -> Mirrors | None:
        """What links by MirrorMaker are kept with."""

    def reconcile(self) -> None:
        self.controller.reconcile(self.harness.image, self.harness)

    def reconcile_until(self, condition: Callable[[], bool], timeout: float = 120) -> None:
        """Let the controller look again and again until something is so."""

        def look() -> bool:
            self.reconcile()
            return condition()

        until(
            look, timeout, lambda: f"{self.harness.link}\n{self.harness.facts[-3:]}", self.pause_s
        )

    def close(self) -> None:
        """Stop the query and delete both topics."""
        engine = self.new_engine()
        engine.stop(self.harness.name)
        # an open client can keep Python from ending
        engine.close()
        self.controller.close()
        for admin in self.admins.values():
            admin.withdraw(admin.rights(topic=self.topic))
            admin.delete_topic(self.topic)

    def recreate(self, admin: KafkaAdmin) -> None:
        """Delete the topic at one end and make it again."""
        before = admin.topic(self.topic)
        admin.delete_topic(self.topic)

        def made() -> bool:
            admin.create_topic(self.topic, self.partitions, {})
            found = admin.topic(self.topic)
            return found is not None and before is not None and found.id != before.id

        until(made)

    def produce(self, *records: tuple[int, bytes | None, bytes | None, list | None]) -> None:
        """Write (partition, key, value, headers) to the source."""
        producer = Producer(self.east.login.config(linger_ms=5, message_max_bytes=4_000_000))
        for partition, key, value, headers in records:
            producer.produce(self.topic, value, key, partition, headers=headers)
            producer.poll(0)
        assert producer.flush(30) == 0

    def source(self) -> dict[int, list[Record]]:
        return everything(self.east, self.topic, committed=True)

    def copy(self) -> dict[int, list[Record]]:
        return everything(self.west, self.topic)

    def caught_up(self) -> bool:
        """As many records in the copy as in the source."""
        return count(self.copy()) == count(self.source())

    def is_told(self) -> bool:
        """Whether it has caught up, and the lineage has its run, which the next look tells."""
        told = {run.run for _, run, _ in self.lineage.told}
        return self.harness.link.run in told and self.caught_up()


class RealMirror(RealLink):
    """The same link, copied by MirrorMaker; the copy is read as `read_committed`."""

    engine = Engine.MIRRORMAKER

    def new_mirrors(self) -> Mirrors:
        engine = self.new_mirror()
        return Mirrors(lambda _: engine, lambda _: group_of(TESTERS))

    def new_mirror(self) -> MirrorEngine:
        """What copies, as another process has it."""
        api = Connect(*connect_worker(self.endpoints))
        return MirrorEngine(api, ConnectSecrets(self.endpoints.connect_secrets))

    def close(self) -> None:
        self.new_mirror().stop(self.harness.name)
        super().close()
        for admin in self.admins.values():
            admin.withdraw(
                one for one in admin.rights() if fence.is_writer(one.principal, self.harness.name)
            )

    def copy(self) -> dict[int, list[Record]]:
        return everything(self.west, self.topic, committed=True)


def assert_exact(link: RealLink) -> None:
    """Key, value, headers, partition and order are the source's, with the provenance behind."""
    source, copy = link.source(), link.copy()
    topic_id = link.east.topic(link.topic).id
    assert copy.keys() == source.keys()
    for partition, records in source.items():
        expected = [
            (
                key,
                value,
                (*headers, ("mesh.source", f"east/{topic_id}/{partition}/{offset}".encode())),
            )
            for offset, key, value, headers in records
        ]
        assert [record[1:] for record in copy[partition]] == expected


def count(records: dict[int, list[Record]]) -> int:
    return sum(len(found) for found in records.values())


def everything(
    admin: KafkaAdmin, topic: str, *, committed: bool = False
) -> dict[int, list[Record]]:
    """Partition -> every record of a topic up to its end of now."""
    consumer = Consumer(
        {
            **admin.login.config(),
            "group.id": f"t-{uuid.uuid4().hex}",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    partitions = list(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    found: dict[int, list[Record]] = {p: [] for p in partitions}
    left, deadline = set(partitions), time.monotonic() + 60
    while left and time.monotonic() < deadline:
        for message in consumer.consume(5000, 0.2):
            if message.error() is not None:
                left.discard(message.partition())
            else:
                found[message.partition()].append(_record(message))
    consumer.close()
    assert not left, f"{topic}: no end of partitions {left}"
    return found


def _record(message: Message) -> Record:
    return (
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def until(
    condition: Callable[[], bool],
    timeout: float = 30,
    told: Callable[[], str] = lambda: "",
    pause_s: float = 0.05,
) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {told()}"
        time.sleep(pause_s)
