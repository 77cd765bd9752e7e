"""The mesh that most faults share: all servers, domains that trade, a link, and who may not read.

Services are killed as the supervisor knows them, which starts them again; the run starts
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
from typing import Any

import requests
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import LocalPlatform, PlatformSettings
from local_platform.supervision.state import ServiceStatus
from mesh_events.intents import AccessRevoked, Intent
from tests.conftest import free_port_base
from tests.faults.run.ground import WAIT_S, Ground, outsider, patiently
from tests.faults.run.load import Pausable, Writing
from tests.faults.run.prober import Attempt, Probing
from tests.integration.statements.conftest import Stage as Flow
from tests.mesh_fixtures import spark_service
from tests.mesh_kit import Application, Domain, Mesh, eventually, fresh, register_schema

PARTITIONS = 2


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
class Stage(Ground):
    """All servers and a link, under load, with a prober."""

    platform: LocalPlatform = field(kw_only=True)
    spares: list[tuple[Domain, str, Application, str]] = field(default_factory=list)
    flow: Flow | None = None

    @classmethod
    def start(cls, lifetime_s: float, port_base: int | None = None) -> "Stage":
        """Start every server, found a mesh, let domains begin to trade."""
        home = Path(tempfile.mkdtemp(prefix="sdm-faults-"))
        home.chmod(0o755)
        settings = PlatformSettings(
            home=home, port_base=port_base or free_port_base(), lifetime_s=lifetime_s
        )
        platform = LocalPlatform(settings)
        try:
            stage = cls(Mesh(platform.up(), home), home, settings.port_base, platform=platform)
            stage.people()
            stage.begin()
        except BaseException:
            platform.down()
            shutil.rmtree(home, ignore_errors=True)
            raise
        return stage

    def kept_logs(self) -> Path:
        """A copy of the servers' logs that stays when the mesh is gone."""
        kept = Path(tempfile.mkdtemp(prefix="sdm-faults-logs-"))
        shutil.copytree(self.home / "logs", kept, dirs_exist_ok=True)
        return kept

    def people(self) -> None:
        """Also a domain of the other cluster with a link, and those who may not read."""
        super().people()
        self.far = self.kit.register_domain("far", "west")
        self.copied = self.link("stream")
        login = self.kit.login(self.owner.name)
        self.writing = Writing(login, self.copied.topic, PARTITIONS)
        self.probing = Probing()
        self._strangers()

    @property
    def spark(self) -> str:
        """The service that is the owner's Spark server."""
        return spark_service(self.owner.name)

    @property
    def busy(self) -> list[Pausable]:
        """Everything that goes on beside the faults."""
        return [*super().busy, self.writing, self.probing]

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
        self.spares.extend(self._spare() for _ in range(12))

    def next_spare(self) -> tuple[Domain, str, Application, str]:
        """Whom the next revocation hits: owner, product, application, request."""
        if not self.spares:
            self.spares.append(self._spare())
        return self.spares[-1]

    def _spare(self) -> tuple[Domain, str, Application, str]:
        spare = self.near.application("spare")
        request = self.near.request(self.copied.product, spare.name)
        self.owner.grant(self.copied.product, request)
        return self.owner, self.copied.product, spare, request

    def forbid(self, application: Application, topic: str, why: str) -> None:
        """From now on this application is tried and must never read."""
        login = self.kit.login(application.name, application.domain.cluster)
        self.probing.add(Attempt(login.config(), topic, f"{why} ({application.name})"))

    def revoke_one(self, *, forbid: bool = True) -> Callable[[], None]:
        """Say a revocation now; the returned call waits until it is reported as applied.

        From that report on the one who lost the right is tried like all who have none, unless
        it is not to be forbidden yet.
        """
        owner, product, application, request = self.next_spare()
        self.spares.pop()
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

    def governs(self, seconds: float = WAIT_S) -> None:
        """Wait until the mesh's own governor says that it governs."""
        url = f"{self.kit.endpoints.governor_url}/ready"

        def ready() -> bool:
            with suppress(requests.RequestException):
                return bool(requests.get(url, timeout=5).status_code == requests.codes.ok)
            return False

        eventually(ready, "the governor governs", seconds)

    def kill(self, service: str, sign: signal.Signals = signal.SIGKILL) -> ServiceStatus:
        """Kill a service's process; the supervisor starts it again."""
        return self.platform.kill(service, sign)

    def back(self, before: ServiceStatus) -> None:
        """Wait until a killed service is ready in a new process."""
        self.platform.wait_ready(before.name, after=before, timeout_s=WAIT_S)

    def mark(self) -> dict[int, int]:
        """Where the source ends now. Taken after a kill: what the dead had in hand is not new."""
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

    def tell(self) -> dict[str, Any]:
        """Also how much was written, and how often nobody could read."""
        return {
            **super().tell(),
            "records_acknowledged": len(self.writing.acknowledged.records),
            "probes": dict(self.probing.counted),
        }

    def close(self, *, keep: bool) -> None:
        """Stop what was started; `keep` leaves the servers and their data."""
        with suppress(AttributeError):
            self.quiet()
        if not keep:
            self.platform.down()
            shutil.rmtree(self.home, ignore_errors=True)


__all__ = ["PARTITIONS", "WAIT_S", "Copied", "Stage", "eventually", "outsider", "patiently"]
