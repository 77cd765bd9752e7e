"""Everything around the workers, and what happens to it and to them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from mesh_events import intents
from mesh_events.decisions import MeshRole
from mesh_events.errors import MeshError
from mesh_events.record import Record
from processors.clusters.drift import Policy
from processors.clusters.rights import Binding
from processors.log.fold_start import Start
from projections.image import Image
from projections.integrity.tree import CompactRange
from tests import sample_history as story
from tests.links.memory import MemoryCluster, MemoryEngine
from tests.memory_log import MemoryLog
from tests.simulation.clock import ClockedLog, SimClock
from tests.simulation.interrupts import Fault, Interrupts
from tests.simulation.models import Registry, RowTopics
from tests.simulation.worker import MAIN, SimWorker

PRODUCTS = {"east.users": 2, "east.orders": 1}
"""Product, which is its topic's name too -> partitions."""
APPLICATIONS = ("west.app", "west.two", "north.app")
NAMES = ("a", "b")
POLICIES = {"a": Policy.REPAIR, "b": Policy.REPORT}
"""What a worker of that name does about drift at first."""
DEEPEST = 3
"""So many workers or threads stand still inside one another at most."""
CLOCK = SimClock()
KEYS = {MeshRole.GOVERNOR: "governor", MeshRole.CONTROLLER: "controller"}
"""With which a mesh is founded."""
Act = tuple[str, int, int]


@dataclass
class World:
    """One run of the simulated mesh.

    `late` holds what was given to Kafka and is not done yet, `stood` the workers that stand still,
    `acted` is the epoch of the latest governor whose controllers have done something,
    `given` the rights (cluster, binding) that the leading worker gave last, by no late call,
    `strange` those that an administrator gave past the mesh and that are still there. A process
    begins with the latest `snapshot`, its policy for drift and the mesh's `keys`, by name;
    `signers` names the key that a domain speaks with, if it is not the first one.
    """

    log: ClockedLog
    known: Image
    clusters: dict[str, MemoryCluster]
    engine: MemoryEngine
    registry: Registry
    clock: SimClock
    after: Callable[["World"], None]
    obey: Callable[["World", Act], None]
    rows: RowTopics = field(default_factory=RowTopics)
    workers: dict[str, SimWorker] = field(default_factory=dict)
    late: list[Callable[[], object]] = field(default_factory=list)
    stood: list[SimWorker] = field(default_factory=list)
    acts: Iterator[Act] = field(default_factory=lambda: iter(()))
    given: set[tuple[str, Binding]] = field(default_factory=set)
    strange: set[tuple[str, Binding]] = field(default_factory=set)
    epoch: int = -1
    acted: int = -1
    landing: bool = False
    working: list[SimWorker] = field(default_factory=list)
    said: list[intents.AccessRequested] = field(default_factory=list)
    snapshot: Image | None = None
    policies: dict[str, Policy] = field(default_factory=lambda: dict(POLICIES))
    signers: dict[str, str] = field(default_factory=dict)
    keys: dict[MeshRole, str] = field(default_factory=lambda: dict(KEYS))

    @classmethod
    def new(cls, after: Callable[["World"], None], obey: Callable[["World", Act], None]) -> "World":
        """A founded mesh with products and applications, and two workers that just started."""
        records, now, image = _prefix()
        log = ClockedLog()
        log.records, log.now = list(records), now
        CLOCK.begin(log)
        clusters = {name: MemoryCluster(name) for name in ("east", "west")}
        for topic, partitions in PRODUCTS.items():
            clusters["east"].create_topic(topic, partitions, {})
        world = cls(
            log=log,
            known=image,
            clusters=clusters,
            engine=MemoryEngine(clusters.values()),
            registry=Registry(f"{topic}-value" for topic in PRODUCTS),
            clock=CLOCK,
            after=after,
            obey=obey,
        )
        for name in NAMES:
            world.worker(name)
        return world

    def run(self, acts: list[Act]) -> None:
        """Let everything in the schedule happen, in its order."""
        self.acts = iter(acts)
        for act in self.acts:
            self._one(act)

    def _one(self, act: Act) -> None:
        self.obey(self, act)
        self.after(self)

    def worker(self, name: str) -> SimWorker:
        """The living process of that name; it is started if there is none."""
        found = self.workers.get(name)
        if found is None or found.interrupts.dead:
            found = self.workers[name] = self._process(name)
        return found

    def say(self, kind: type[intents.Intent], sender: str, /, **fields: object) -> None:
        """A domain says something with its key of now."""
        self.speak(self.log.make(kind, sender, **fields))

    def speak(self, event: intents.Intent) -> None:
        """As `say`, for an intent that is made already."""
        self.log.append(event, by=self.signers.get(event.meta.domain, event.meta.domain))

    def start(self) -> Start:
        """Where a process begins its fold."""
        image = self.snapshot or self.known
        waiting = {at: self.log.records[at] for at in image.intents.undecided}
        return Start(image, waiting, CompactRange(), [])

    def _process(self, name: str) -> SimWorker:
        def meanwhile(fault: Fault, length: int) -> None:
            self._meanwhile(made, fault, length)

        interrupts = Interrupts(meanwhile, self.late.append)
        made = SimWorker(self, interrupts, self.policies[name])
        return made

    def buried(self, worker: SimWorker) -> None:
        """A process is gone."""
        worker.leadership = None

    def _meanwhile(self, worker: SimWorker, fault: Fault, length: int) -> None:
        """Others go on while a worker, or a thread of it, stands still."""
        if len(self.stood) >= DEEPEST:
            return
        self.stood.append(worker)
        # a worker that only yields goes on with its other threads
        everything = {MAIN, *worker.controllers}
        held = everything - worker.busy if fault is not Fault.YIELD else set()
        worker.busy |= held
        try:
            if fault is Fault.REPLACED:
                self.assign(next(name for name in NAMES if self.workers.get(name) is not worker))
                self.after(self)
            for _, act in zip(range(length), self.acts, strict=False):
                self._one(act)
        finally:
            worker.busy -= held
            self.stood.pop()

    def land(self, number: int) -> None:
        """One of the things under way is done; it is lost if its server is away."""
        if self.late:
            self.landing = True
            with suppress(MeshError):
                self.late.pop(number % len(self.late))()
            self.landing = False

    def note_rights(self, worker: SimWorker, cluster: str, bindings: list[Binding]) -> None:
        """A worker gave rights: by itself as the one that leads, or when its time was over."""
        places = {(cluster, binding) for binding in bindings}
        if self.landing or worker.epoch != self.epoch:
            self.given -= places
        else:
            self.given |= places

    def assign(self, name: str) -> None:
        """Kafka gives the log to one worker; the others hear of it, unless they stand still."""
        for other in self.workers.values():
            if other is not self.workers.get(name) and MAIN not in other.busy:
                other.stop()
        self.worker(name).begin()


@cache
def _prefix() -> tuple[list[Record], int, Image]:
    # not the foundation that other tests share: here signatures are made in another way
    log = MemoryLog(founded=False)
    log.found()
    story.published(log)
    log.say(
        intents.ProductPublished,
        "east",
        **story.product(product="east.orders", topic="east.orders"),
    )
    log.say(intents.ApplicationRegistered, "west", application="west.two")
    log.govern()
    return log.records, log.now, log.image
