"""The mesh that most faults share: all servers, domains that trade, a link, and who may not read.

Services are killed as the supervisor knows them and come back by their minders; the run starts
and stops workers of its own beside the governor.
"""

import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import requests
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import LocalPlatform, PlatformSettings
from local_platform.state import ServiceStatus
from mesh_events.errors import MeshError
from mesh_events.intents import AccessRevoked, Intent, ProductUpdated
from tests.conftest import free_port_base
from tests.faults.run.load import Pausable, Speaking, Trade, Writing
from tests.faults.run.prober import Attempt, Probing
from tests.faults.run.transcript import Transcript
from tests.faults.worker import WorkerProcess
from tests.mesh_kit import Application, Domain, Mesh, eventually, fresh, register_schema
from tests.plain_reader import Plain

Answer = TypeVar("Answer")
PARTITIONS = 2
WORKER_PORTS = (84, 85, 86)
WAIT_S = 120
"""For a single step: a server that starts again on a busy machine needs a minute."""


@dataclass
class Copied:
    """A product with a link: its source in east, its copy under the same name in west."""

    owner: Domain
    product: str
    topic: str
    reader: Application
    request: str
    link: str


@dataclass
class Stage:
    """A running mesh under load."""

    kit: Mesh
    settings: PlatformSettings
    platform: LocalPlatform
    workers: list[WorkerProcess] = field(default_factory=list)
    spares: list[tuple[Domain, str, Application, str]] = field(default_factory=list)

    @classmethod
    def start(cls, lifetime_s: float, port_base: int | None = None) -> "Stage":
        """Start every server, found a mesh, let domains begin to trade."""
        home = Path(tempfile.mkdtemp(prefix="sdm-faults-"))
        home.chmod(0o755)
        settings = PlatformSettings(
            home=home, port_base=port_base or free_port_base(), lifetime_s=lifetime_s
        )
        platform = LocalPlatform(settings)
        stage = cls(Mesh(platform.up(), home), settings, platform)
        try:
            stage.people()
        except BaseException:
            stage.close(keep=False)
            raise
        return stage

    def people(self) -> None:
        """Owners, buyers, products, a link, and those who may not read."""
        kit = self.kit
        self.owner, self.other = kit.register_domain("maker"), kit.register_domain("mill")
        self.near, self.far = kit.register_domain("near"), kit.register_domain("far", "west")
        self.trades = [self._trade(self.owner), self._trade(self.other)]
        self.pulse_product, _ = self.owner.product("pulse")
        self.copied = self.link("stream")
        login = kit.login(self.owner.name)
        self.writing = Writing(login, self.copied.topic, PARTITIONS)
        self.speaking = [Speaking(trade) for trade in self.trades]
        self.probing = Probing()
        self._strangers()
        self.transcript = Transcript(self.plain(), kit.profile.governor_key)
        for each in self.busy:
            each.start()
            each.resume()

    @property
    def busy(self) -> list[Pausable]:
        """Everything that goes on beside the faults."""
        return [*self.speaking, self.writing, self.probing]

    def _trade(self, owner: Domain) -> Trade:
        product, _ = owner.product("goods")
        applications = [self.near.application("shop").name for _ in range(4)]
        return Trade(owner, self.near, product, applications)

    def link(self, stem: str) -> Copied:
        """A product of the owner that the far domain's application reads from its own cluster."""
        topic = self.new_topic(stem)
        product = f"{self.owner.name}.{fresh(stem)}"
        self.kit.accepted(self.owner.publish(product, topic))
        reader = self.far.application("reader")
        request = self.far.request(product, reader.name)
        self.owner.grant(product, request, active=False)
        self.kit.wait_for(
            lambda image: image.access.requests[request].active_at, "the copy may be read", WAIT_S
        )
        return Copied(self.owner, product, topic, reader, request, f"{product}@west")

    def new_topic(self, stem: str) -> str:
        """A topic of the owner with its schema and some partitions."""
        topic = f"{self.owner.name}.{fresh(stem)}"
        admin = AdminClient(self.kit.login(self.owner.name).config())
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(15)
        register_schema(self.kit.endpoints, f"{topic}-value", '"string"')
        return topic

    def _strangers(self) -> None:
        """Some never had a right, some lost it; a few more will lose it during the faults."""
        never = (self.near.application("never"), self.far.application("never"))
        for application in never:
            self.forbid(application, self.copied.topic, "one without a grant")
        lost = self.far.application("lost")
        request = self.far.request(self.copied.product, lost.name)
        self.owner.grant(self.copied.product, request)
        self.owner.revoke(self.copied.product, request)
        self.forbid(lost, self.copied.topic, "one whose grant was revoked")
        for _ in range(12):
            spare = self.near.application("spare")
            request = self.near.request(self.copied.product, spare.name)
            self.owner.grant(self.copied.product, request)
            self.spares.append((self.owner, self.copied.product, spare, request))

    def forbid(self, application: Application, topic: str, why: str) -> None:
        """From now on this application is tried and must never read."""
        login = self.kit.login(application.name, application.domain.cluster)
        self.probing.add(Attempt(login.config(), topic, f"{why} ({application.name})"))

    def revoke_one(self, *, forbid: bool = True) -> Callable[[], None]:
        """Say a revocation now; the returned call waits until it is reported as applied.

        From that report on the one who lost the right is tried like all who have none, unless
        it is not to be forbidden yet.
        """
        owner, product, application, request = self.spares.pop()
        intent = owner.make(AccessRevoked, product=product, request=request, reason="fault")
        patiently(lambda: owner.emitter.emit(intent), time.monotonic() + WAIT_S)

        def removed() -> None:
            deadline = time.monotonic() + WAIT_S
            while not patiently(
                lambda: self.kit.image().access.requests[request].removed_at or False, deadline
            ):
                assert time.monotonic() < deadline, f"{request} is not removed"
                time.sleep(0.1)
            if forbid:
                self.forbid(application, self.copied.topic, "one revoked during a fault")

        return removed

    def revocation(self, copied: Copied) -> Intent:
        """The end of the one grant of a link."""
        return self.owner.make(
            AccessRevoked, product=copied.product, request=copied.request, reason="fault"
        )

    def link_is(self, state: str, link: str, seconds: float = WAIT_S) -> None:
        """Wait until the log says so of a link."""
        self.kit.wait_for(
            lambda image: (found := image.links.get(link)) is not None and found.state == state,
            f"{link} is {state}",
            seconds,
        )

    def soon(self, condition: Callable[[], bool], what: str, seconds: float = WAIT_S) -> None:
        """Wait for a condition that may ask a server that is not there yet."""

        def holds() -> bool:
            with suppress(KafkaException, MeshError):
                return condition()
            return False

        eventually(holds, what, seconds)

    def governs(self, seconds: float = WAIT_S) -> None:
        """Wait until the mesh's own governor says that it governs."""
        url = f"{self.kit.endpoints.governor_url}/ready"

        def ready() -> bool:
            with suppress(requests.RequestException):
                return requests.get(url, timeout=5).status_code == requests.codes.ok
            return False

        eventually(ready, "the governor governs", seconds)

    def plain(self, cluster: str = "east") -> Plain:
        """The mesh as an outsider reads it."""
        return Plain(self.kit.admin_login(cluster).config(), self.kit.endpoints.registry_url)

    def kill(self, service: str, sign: signal.Signals = signal.SIGKILL) -> ServiceStatus:
        """Kill a service's process; its minder starts it again."""
        return self.platform.kill(service, sign)

    def back(self, before: ServiceStatus) -> None:
        """Wait until a killed service is ready in a new process."""
        self.platform.wait_ready(before.name, after=before, timeout_s=WAIT_S)

    def worker(self, crash_at: str | None = None, **more: str) -> WorkerProcess:
        """Start a worker beside the mesh's own; `more` are variables of its environment."""
        taken = {each.port for each in self.workers if each.process.poll() is None}
        ports = (self.settings.port_base + offset for offset in WORKER_PORTS)
        port = next(port for port in ports if port not in taken)
        self.workers.append(WorkerProcess(self.settings.home, port, crash_at, more))
        return self.workers[-1]

    def pulse(self, began: float, seconds: float = WAIT_S) -> float:
        """Seconds from `began` (monotonic) until an intent that is said now is decided."""
        deadline = time.monotonic() + seconds
        intent = self.owner.make(ProductUpdated, product=self.pulse_product, tags=[fresh("beat")])
        receipt = patiently(lambda: self.owner.emitter.emit(intent), deadline)
        patiently(lambda: self.kit.decided(receipt.offset, 2), deadline)
        return time.monotonic() - began

    def mark(self) -> dict[int, int]:
        """Where the source ends now: what comes behind is new."""
        deadline = time.monotonic() + WAIT_S
        return patiently(lambda: self.ends("east", self.copied.topic), deadline)

    def first_copied(
        self, began: float, mark: dict[int, int] | None = None, seconds: float = WAIT_S
    ) -> float:
        """Seconds from `began` until a record behind the mark (of now, by default) is copied."""
        deadline = time.monotonic() + seconds
        source = mark or self.mark()
        while time.monotonic() < deadline:
            tail = patiently(lambda: self.copied_to(self.copied.topic), deadline)
            if any(tail.get(partition, -1) >= end for partition, end in source.items()):
                return time.monotonic() - began
            time.sleep(0.05)
        raise AssertionError(f"no new record in {self.copied.topic} of west in {seconds:g} s")

    def ends(self, cluster: str, topic: str) -> dict[int, int]:
        """Partition -> end offset."""
        with outsider(self.kit.admin_login(cluster).config()) as consumer:
            return {
                partition: consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=5
                )[1]
                for partition in range(PARTITIONS)
            }

    def copied_to(self, topic: str) -> dict[int, int]:
        """Partition -> source offset of the last record of the copy."""
        found = {}
        ends = self.ends("west", topic)
        with outsider(self.kit.admin_login("west").config()) as consumer:
            for partition, end in ends.items():
                if end == 0:
                    continue
                consumer.assign([TopicPartition(topic, partition, end - 1)])
                message = consumer.poll(5)
                if message is None or message.error() is not None:
                    continue
                source = dict(message.headers() or [])["mesh.source"]
                found[partition] = int(source.rsplit(b"/", 1)[1])
        return found

    def tell(self) -> dict[str, object]:
        """How much the load and the prober did."""
        said = sum(len(each.said) for each in self.speaking)
        return {
            "intents_acknowledged": said,
            "records_acknowledged": len(self.writing.acknowledged.records),
            "probes": dict(self.probing.counted),
            "log_end": self.transcript.records[-1]["offset"] if self.transcript.records else -1,
        }

    def close(self, *, keep: bool) -> None:
        """Stop what was started; `keep` leaves the servers and their data."""
        for each in self.workers:
            each.stop()
        with suppress(AttributeError):
            for busy in self.busy:
                busy.stop()
            for busy in self.busy:
                busy.join(35)
        if not keep:
            self.platform.down()
            shutil.rmtree(self.settings.home, ignore_errors=True)


class outsider:  # noqa: N801 - a context, as in `with outsider(config)`
    """A consumer without a group that is closed at the end."""

    def __init__(self, config: dict[str, object]) -> None:
        self._consumer = Consumer(
            {**config, "group.id": fresh("outsider"), "enable.auto.commit": False}
        )

    def __enter__(self) -> Consumer:
        return self._consumer

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


def patiently(call: Callable[[], Answer], deadline: float) -> Answer:
    """Call until it works: servers are down meanwhile; the last error after the deadline."""
    while True:
        try:
            return call()
        except (MeshError, KafkaException, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


__all__ = ["PARTITIONS", "WAIT_S", "Copied", "Stage", "eventually", "outsider", "patiently"]
