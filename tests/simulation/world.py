"""Everything around the workers, and what happens to it and to them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from mesh_events import intents
from mesh_events.errors import MeshError
from mesh_events.record import Record
from processors.rights import Binding
from projections.image import Image
from tests import paper_story as story
from tests.links.memory import MemoryCluster, MemoryEngine
from tests.paper_log import PaperLog
from tests.simulation.clock import SimClock
from tests.simulation.interrupts import Fault, Interrupts
from tests.simulation.models import Registry, RowTopics
from tests.simulation.worker import MAIN, SimWorker

PRODUCTS = {"east.users": 2, "east.orders": 1}
"""Product, which is its topic's name too -> partitions."""
APPLICATIONS = ("west.app", "west.two", "north.app")
NAMES = ("a", "b")
DEEPEST = 3
"""So many workers or threads stand still inside one another at most."""
CLOCK = SimClock()
Act = tuple[str, int, int]


@dataclass
class World:
    """One run of the simulated mesh.

    `late` holds what was given to Kafka and is not done yet, `stood` the workers that stand still,
    `given` the rights (cluster, binding) that the reigning worker gave last, by no late call.
    """

    log: PaperLog
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
    epoch: int = -1
    landing: bool = False
    working: list[SimWorker] = field(default_factory=list)
    said: list[intents.AccessRequested] = field(default_factory=list)

    @classmethod
    def new(cls, after: Callable[["World"], None], obey: Callable[["World", Act], None]) -> "World":
        """A founded mesh with products and applications, and two workers that just started."""
        records, now, image = _prefix()
        log = PaperLog(founded=False)
        log.records, log.now = list(records), now
        CLOCK.log = log
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
            found = self.workers[name] = self._process()
        return found

    def _process(self) -> SimWorker:
        def meanwhile(fault: Fault, length: int) -> None:
            self._meanwhile(made, fault, length)

        interrupts = Interrupts(meanwhile, self.late.append)
        made = SimWorker(self, interrupts, self.known)
        return made

    def buried(self, worker: SimWorker) -> None:
        """A process is gone."""
        worker.reign = None

    def _meanwhile(self, worker: SimWorker, fault: Fault, length: int) -> None:
        """Others go on while a worker, or a thread of it, stands still."""
        if len(self.stood) >= DEEPEST:
            return
        self.stood.append(worker)
        # a worker that only yields goes on with its other threads
        everything = {MAIN, *worker.keepers}
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
        """A worker gave rights: by itself as the one that reigns, or when its time was over."""
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
    log = PaperLog(founded=False)
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
