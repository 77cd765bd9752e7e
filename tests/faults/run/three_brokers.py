"""A cluster of three brokers on one machine, from the same packages as the local platform.

Replication factor 3, two in-sync replicas needed: one broker may die without anything acknowledged
being lost. A registry and a founded mesh stand on it; links need more than this and are not here.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.errors import NotReadyError
from local_platform.jars.java import properties
from local_platform.ports import HOST
from local_platform.security.principals import ensure_principals, principals_of
from local_platform.services.base import Service
from local_platform.services.kafka import KafkaBroker
from local_platform.services.registry import Registry
from local_platform.site import Site
from local_platform.supervision.process import Identity, spawn, stop_group
from tests.conftest import free_port_base
from tests.faults.run.ground import Ground
from tests.faults.worker import REPOSITORY
from tests.mesh_kit import Mesh

NODES = (1, 2, 3)
START_S = 120
LOG = "mesh.governance"
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class Node(KafkaBroker):
    """One of the three: broker and controller, with a vote."""

    def __init__(self, site: Site, number: int) -> None:
        super().__init__(site, "east")
        self.number, self.name = number, f"kafka-east-{number}"
        self._settings = site.layout.conf / f"{self.name}.properties"

    def ports(self, number: int) -> tuple[int, int]:
        """(for clients, for controllers); the first node's are those of a cluster of one."""
        first = self.site.port("kafka-east")
        return first + 2 * (number - 1), first + 2 * (number - 1) + 1

    @property
    def servers(self) -> str:
        """Where clients find the cluster."""
        return ",".join(f"{HOST}:{self.ports(number)[0]}" for number in NODES)

    def _properties(self, log: Path) -> str:
        client, controller = (f"{HOST}:{port}" for port in self.ports(self.number))
        alone = KafkaBroker(self.site, "east")._properties(log)
        kept = [line for line in alone.splitlines() if not line.startswith(("controller.quorum.",))]
        voters = ",".join(f"{number}@{HOST}:{self.ports(number)[1]}" for number in NODES)
        listeners = f"CLIENT://{client},CONTROLLER://{controller}"
        own = {
            "node.id": str(self.number),
            "controller.quorum.voters": voters,
            "listeners": listeners,
            "advertised.listeners": listeners,
        }
        # of two lines with one name Kafka takes the last
        return "\n".join(kept) + "\n" + properties(own | REPLICATED)

    def _format_arguments(self, settings: Path) -> str:
        text = super()._format_arguments(settings)
        lines = [line for line in text.splitlines() if line != "--standalone"]
        lines[lines.index("--cluster-id") + 1] = self._cluster_id()
        return "\n".join(lines) + "\n"

    def _cluster_id(self) -> str:
        """The same for all three, made from what only this mesh has."""
        shared = self.site.credentials.password("east", "cluster-id")
        # a password may begin with "-", which Kafka's tool takes for an option
        return sha256(shared.encode()).hexdigest()[:22]

    def probe(self) -> None:
        """Three brokers are there, and the platform's own principals."""
        login = replace(self.site.login("east", "admin"), bootstrap_servers=self.servers)
        ensure_principals(login, principals_of("east", self.site.credentials.password))


@dataclass
class Process:
    """A server that this run starts, kills and starts again."""

    service: Service
    lifetime_s: float
    _popen: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Start it; `wait` tells when it is ready."""
        site, command = self.service.site, self.service.command()
        # a run that is killed cannot end it; then it ends by itself
        argv = ("timeout", "--signal=KILL", str(int(self.lifetime_s)), *command.argv)
        command = replace(command, argv=argv)
        log = site.layout.log(self.service.name)
        self._popen = spawn(command, self.service.name, site.layout.home, log)

    def wait(self) -> None:
        """Wait until it does real work."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.service.probe()
            except NotReadyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def kill(self) -> None:
        """End it as kill -9 does."""
        if self._popen is None:
            return
        leader = Identity.of(self._popen.pid)
        if leader is not None:
            stop_group(leader, signal.SIGKILL, 10)
        self._popen.wait(10)


@dataclass
class ThreeBrokers(Ground):
    """A mesh on three brokers, under load."""

    nodes: dict[int, Process] = field(kw_only=True)
    registry: Process = field(kw_only=True)

    def admin(self) -> AdminClient:
        """The super user's client."""
        return AdminClient(self.kit.admin_login().config())

    def leader(self) -> int:
        """The node that leads the log's partition."""
        return int(self._partition().leader.id)

    def in_sync(self) -> int:
        """How many replicas of the log are in sync."""
        return len(self._partition().isr)

    def _partition(self) -> Any:
        admin = self.admin()
        found = admin.describe_topics(TopicCollection([LOG]), request_timeout=10)[LOG]
        return found.result(15).partitions[0]


@contextmanager
def three_brokers(lifetime_s: float) -> Iterator[ThreeBrokers]:
    """Three brokers, a registry, a founded mesh and its governor; all gone at the end."""
    home = Path(tempfile.mkdtemp(prefix="sdm-faults-three-"))
    home.chmod(0o755)
    settings = PlatformSettings(home=home, port_base=free_port_base(), lifetime_s=lifetime_s)
    LocalPlatform(settings).fetch(lambda _: None)
    site = Site.of(settings)
    site.make_folders()
    first, *_ = brokers = [Node(site, number) for number in NODES]
    nodes = {each.number: Process(each, lifetime_s) for each in brokers}
    registry = Process(Registry(site), lifetime_s)
    ground: ThreeBrokers | None = None
    try:
        _start(nodes, registry)
        _found(site, first)
        ground = ThreeBrokers(
            Mesh(_endpoints(site, first), home),
            home,
            settings.port_base,
            nodes=nodes,
            registry=registry,
        )
        ground.worker().wait_ready(START_S)
        ground.people()
        ground.begin()
        yield ground
    finally:
        if ground is not None:
            ground.quiet()
        for process in (registry, *nodes.values()):
            process.kill()
        shutil.rmtree(home, ignore_errors=True)


def _start(nodes: dict[int, Process], registry: Process) -> None:
    for process in nodes.values():
        process.service.prepare()
        process.start()
    for process in nodes.values():
        process.wait()
    registry.service.prepare()
    registry.start()
    registry.wait()


def _endpoints(site: Site, node: Node) -> Endpoints:
    found = site.endpoints()
    east = found.clusters["east"].model_copy(update={"bootstrap_servers": node.servers})
    durable = {"replication_factor": 3, "min_insync_replicas": 2}
    found = found.model_copy(update={"clusters": {"east": east}, **durable})
    found.save(site.layout.home)
    return found


def _found(site: Site, node: Node) -> None:
    """Found the mesh, in the process that does it everywhere."""
    _endpoints(site, node)
    environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "processors.bootstrap"],
        cwd=REPOSITORY,
        env={**environment, "SDM_HOME": str(site.layout.home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=START_S,
    )
    if done.returncode:
        raise AssertionError(f"the bootstrap failed: {done.stderr.strip()[-800:]}")
