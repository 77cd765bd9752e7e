"""A mesh whose cluster east is one or two brokers with clocks of their own."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import requests
from confluent_kafka import ElectionType, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from local_platform import LocalPlatform
from local_platform.files import empty_folder
from local_platform.kafka_tools import command
from local_platform.site import Site
from local_platform.supervision.process import spawn
from mesh_events.files import write_atomically
from mesh_events.topics import GOVERNANCE
from self_service.cli.app import app
from tests.conftest import LIFETIME_S, new_settings
from tests.faults.run.three_brokers import Process
from tests.faults.worker import WorkerProcess
from tests.integration.clock.broker import ClockedBroker
from tests.mesh_kit import Mesh, eventually

MINUTE = 60_000
HOUR = 60 * MINUTE

START_S = 400
GOVERNING = ("kafka-west", "registry", "bootstrap")
"""What a governor needs besides the cluster east."""
_WORKER_PORT = 180


class BrokerProcess(Process):
    """A broker that no supervisor minds: `sdm up` would end it as one that was left over."""

    def start(self) -> None:
        """Start it; `wait` returns when it is ready."""
        layout, command = self.service.site.layout, self.service.command()
        empty_folder(self.service.scratch)
        argv = ("timeout", "--signal=KILL", str(int(self.lifetime_s)), *command.argv)
        log = layout.log(self.service.name)
        self._popen = spawn(replace(command, argv=argv), self.service.name, layout.data, log)


@dataclass
class ClockedMesh:
    """A founded mesh, its brokers' clocks, and one worker at a time."""

    kit: Mesh
    site: Site
    brokers: dict[int, ClockedBroker]
    workers: list[WorkerProcess] = field(default_factory=list)

    def clock(self, off_ms: int, *numbers: int) -> None:
        """Set the clocks of these brokers, all without a number: so many ms ahead."""
        for number in numbers or self.brokers:
            self.brokers[number].clock.set(off_ms)

    def govern(self) -> WorkerProcess:
        """Stop the worker, if there is one, and wait until another governs."""
        for each in self.workers:
            each.stop()
        port = self.site.settings.port_base + _WORKER_PORT
        self.workers.append(WorkerProcess(self.site.layout.home, port))
        self.workers[-1].wait_ready()
        return self.workers[-1]

    def sdm(self, *arguments: str, code: int = 0) -> Any:
        """What `sdm ... -o json` answers."""
        variables = {"SDM_HOME": str(self.site.layout.home), "SDM_DOMAIN": None}
        given = [*arguments, "-o", "json"]
        done = CliRunner().invoke(app, given, env={**variables, "SDM_ACTOR": "tester-7"})
        assert done.exit_code == code, f"sdm {' '.join(given)}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def metrics(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """What the worker serves: (name, values of the labels) -> value."""
        answer = requests.get(f"http://127.0.0.1:{self.workers[-1].port}/metrics", timeout=10)
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return {
            (one.name, tuple(one.labels.values())): one.value
            for family in text_string_to_metric_families(answer.text)
            for one in family.samples
        }

    def finding(self) -> str | None:
        """The one finding of `sdm status`, None where there is none."""
        findings = self.sdm("status")["findings"]
        assert len(findings) <= 1
        return str(findings[0]["code"]) if findings else None

    @cached_property
    def _admin(self) -> AdminClient:
        # kept: the futures of one that was collected fail
        return self.kit.admin()

    @property
    def leader(self) -> int:
        """The broker that leads the log's partition."""
        found = self._admin.describe_topics(TopicCollection([GOVERNANCE]))[GOVERNANCE]
        return int(found.result(15).partitions[0].leader.id)

    def move_leader(self, number: int) -> None:
        """Let another broker lead the log's partition."""
        others = [other for other in self.brokers if other != number]
        log = {"topic": GOVERNANCE, "partition": 0, "replicas": [number, *others]}
        self._reassign({"version": 1, "partitions": [log]})

        def elected() -> bool:
            # an election that is not needed, or not possible yet, is refused
            place = TopicPartition(GOVERNANCE, 0)
            self._admin.elect_leaders(ElectionType.PREFERRED, [place]).result(15)
            return self.leader == number

        eventually(elected, f"broker {number} leads the log", 60)

    def _reassign(self, plan: dict[str, Any]) -> None:
        home = self.site.layout.conf
        config, wanted = home / "tool.properties", home / "reassignment.json"
        login = self.kit.admin_login().java()
        write_atomically(
            config, "".join(f"{name}={value}\n" for name, value in login.items()), mode=0o600
        )
        write_atomically(wanted, json.dumps(plan))
        arguments = ("--reassignment-json-file", str(wanted), "--execute")
        servers = self.kit.admin_login().bootstrap_servers
        tool = command(self.site, "reassign-partitions", servers, config, arguments)
        subprocess.run(tool, check=True, capture_output=True, timeout=120)


@contextmanager
def clocked_mesh(
    brokers: int = 1, *, off_ms: int = 0, services: Sequence[str] = GOVERNING
) -> Iterator[ClockedMesh]:
    """A mesh that is founded while all brokers of east are `off_ms` ahead; gone at the end."""
    settings = new_settings()
    platform = LocalPlatform(settings, services)
    platform.fetch()
    site = Site.of(settings)
    site.make_folders()
    nodes = {number: ClockedBroker(site, number, brokers) for number in range(1, brokers + 1)}
    servers = [BrokerProcess(node, LIFETIME_S) for node in nodes.values()]
    mesh: ClockedMesh | None = None
    try:
        for node, server in zip(nodes.values(), servers, strict=True):
            node.clock.set(off_ms)
            node.prepare()
            server.start()
        for server in servers:
            server.wait()
        endpoints = platform.up(timeout_s=START_S)
        mesh = ClockedMesh(Mesh(endpoints, settings.home), site, nodes)
        yield mesh
    finally:
        if mesh is not None:
            for each in mesh.workers:
                each.stop()
            mesh.kit.close()
        platform.down()
        for server in servers:
            server.kill()
        shutil.rmtree(settings.home, ignore_errors=True)
