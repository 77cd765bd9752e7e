"""What every mesh of the run has: domains that trade on its log, and a transcript to judge by."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException

from mesh_events.errors import MeshError
from mesh_events.intents import ProductUpdated
from tests.faults.run.load import Pausable, Speaking, Trade
from tests.faults.run.transcript import Transcript
from tests.faults.worker import WorkerProcess
from tests.mesh_kit import Domain, Mesh, eventually, fresh
from tests.plain_reader import Plain

Answer = TypeVar("Answer")
WORKER_PORTS = (84, 85, 86)
WAIT_S = 120
"""For a single step: a server that starts again on a busy machine needs a minute."""


@dataclass
class Ground:
    """A founded mesh whose domains speak all the time.

    kit: its operator's view.
    home: its `SDM_HOME`.
    port_base: workers of the run listen above it.
    """

    kit: Mesh
    home: Path
    port_base: int
    workers: list[WorkerProcess] = field(default_factory=list)

    def people(self) -> None:
        """Two owners and a buyer who trades with both; nobody speaks yet."""
        kit = self.kit
        self.owner, self.other = kit.register_domain("maker"), kit.register_domain("mill")
        self.near = kit.register_domain("near")
        self.speaking = [Speaking(self._trade(owner)) for owner in (self.owner, self.other)]
        self.pulse_product, _ = self.owner.product("pulse")
        self.transcript = Transcript(self.plain(), kit.profile.governor_key, kit.profile.root_key)

    def _trade(self, owner: Domain) -> Trade:
        product, _ = owner.product("goods")
        applications = [self.near.application("shop").name for _ in range(4)]
        return Trade(owner, self.near, product, applications)

    @property
    def busy(self) -> list[Pausable]:
        """Everything that goes on beside the faults."""
        return [*self.speaking]

    def begin(self) -> None:
        """Let everything go on from now."""
        for each in self.busy:
            each.start()
            each.resume()

    def plain(self, cluster: str = "east") -> Plain:
        """The mesh as an outsider reads it."""
        return Plain(self.kit.admin_login(cluster).config(), self.kit.endpoints.registry_url)

    def worker(self, crash_at: str | None = None, **more: str) -> WorkerProcess:
        """Start a worker beside the mesh's own; `more` are variables of its environment."""
        taken = {each.port for each in self.workers if each.process.poll() is None}
        ports = (self.port_base + offset for offset in WORKER_PORTS)
        port = next(port for port in ports if port not in taken)
        self.workers.append(WorkerProcess(self.home, port, crash_at, more))
        return self.workers[-1]

    def pulse(self, began: float, seconds: float = WAIT_S) -> float:
        """Seconds from `began` (monotonic) until an intent that is said now is decided."""
        deadline = time.monotonic() + seconds
        intent = self.owner.make(ProductUpdated, product=self.pulse_product, tags=[fresh("beat")])
        receipt = patiently(lambda: self.owner.emitter.emit(intent), deadline)
        patiently(lambda: self.kit.decided(receipt.offset, 2), deadline)
        return time.monotonic() - began

    def soon(self, condition: Callable[[], bool], what: str, seconds: float = WAIT_S) -> None:
        """Wait for a condition that may ask a server that is not there yet."""

        def holds() -> bool:
            with suppress(KafkaException, MeshError):
                return condition()
            return False

        eventually(holds, what, seconds)

    def tell(self) -> dict[str, Any]:
        """How much the load did."""
        return {
            "intents_acknowledged": sum(len(each.said) for each in self.speaking),
            "log_end": self.transcript.records[-1]["offset"] if self.transcript.records else -1,
        }

    def quiet(self) -> None:
        """End the load and the run's own workers."""
        for each in self.workers:
            each.stop()
        for busy in self.busy:
            busy.stop()
        for busy in self.busy:
            if busy.is_alive():
                busy.join(35)


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
