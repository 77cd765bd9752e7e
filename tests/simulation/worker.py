"""One worker process of the simulated mesh: what `processors.worker` does, one turn at a time.

The event loop and the threads of the real one are the schedule here: which of the jobs goes on
next, and how far it gets, is an act.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mesh_events.decisions import MeshRole
from mesh_events.errors import ConfigurationError, InfrastructureError
from processors.clusters.drift import Policy
from processors.controllers.checks.checks import ChecksController
from processors.controllers.controller import Controller, NotLeaderError
from processors.controllers.flows.ends import Reach
from processors.controllers.flows.starts import Starts
from processors.controllers.links.links import LinksController
from processors.controllers.rights.credentials import CredentialsController
from processors.controllers.rights.rights import RightsController
from processors.controllers.rights.unexpected import UnexpectedAcls
from processors.controllers.rows import RowsController
from processors.governor.governor import Governor
from processors.log.fold_start import Beginning, Start
from processors.log.watch import NoWatch, Opening
from processors.worker.leadership import LEASE_S, LeaderLease, now
from projections.image import Image
from projections.integrity.chain import Chain
from tests.links.memory import QUICK
from tests.links.real import LineageList
from tests.memory_log import key
from tests.simulation.interrupts import DiedError, Interrupts
from tests.simulation.models import Admin, Engine, Logs, Rows, Secrets, Writer

if TYPE_CHECKING:
    from tests.simulation.world import World

MAIN = "main"


class AtSnapshot:
    """The world's snapshot as a beginning."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def find(self, root_key: str) -> Start | None:
        """Always one, if only the prefix that every schedule shares."""
        del root_key
        return self._world.start()

    def discard(self) -> None:
        """It fits."""
        raise AssertionError("a snapshot was put aside")


class Unsigned(NoWatch):
    """Nothing is signed over the log; it is begun at a snapshot."""

    def look(self, beginning: Beginning) -> Opening | None:
        """The snapshot."""
        return Opening(beginning.find(""), Chain("paper"))


class SimWorker:
    """A process from its start to its death.

    Its fold begins at the world's snapshot of now. `busy` names the threads that stand in
    the middle of something: the process's own, or a controller's.
    """

    def __init__(self, world: "World", interrupts: Interrupts, policy: Policy) -> None:
        self.world, self.interrupts = world, interrupts
        self.busy: set[str] = set()
        self.leadership: LeaderLease | None = None
        self.owns = False
        # when Kafka was last asked for the end of the log, by the simulation's own account
        self.asked = 0.0
        self._tenure = 0
        # the latest start of this process, which a thread of it may still be busy under
        self._began = -1
        self._must_reach = -1
        log, clusters = world.log, world.clusters
        self._controller_key = key(world.keys[MeshRole.CONTROLLER])
        self._facts = Writer(log, interrupts, self._controller_key, self.may_act)
        rows = Rows(world.rows, interrupts)
        self.governor = Governor(
            Writer(log, interrupts, key(world.keys[MeshRole.GOVERNOR])),  # type: ignore[arg-type]
            rows,  # type: ignore[arg-type]
            lambda *_: None,
            Unsigned(),
            AtSnapshot(world),
        )
        # a worker stands by before it leads
        self.governor.begin()
        given = partial(world.note_rights, self)
        admins = {
            name: Admin(found, interrupts, given, self.may_act) for name, found in clusters.items()
        }

        def admin(_: Image, name: str) -> Admin:
            return admins[name]

        starts = Starts()
        links = LinksController(
            Reach(admin, Logs(admins, clusters), starts=starts),
            lambda _: Engine(world.engine, interrupts),
            LineageList(),
            lambda _: '"bytes"',
            replace(QUICK, clock=world.clock.monotonic),
        )
        registry: Any = world.registry
        everybody: list[Controller] = [
            RowsController(world.rows, registry, rows, lambda: self.governor.image),  # type: ignore[arg-type]
            ChecksController(admin, registry, self.governor.waiting),
            CredentialsController(admin, Secrets()),  # type: ignore[arg-type]
            RightsController(
                admin, policy=policy, unexpected=UnexpectedAcls(frozenset(), policy, starts=starts)
            ),
            links,
        ]
        self.controllers = {controller.name: controller for controller in everybody}

    @property
    def epoch(self) -> int | None:
        """Offset of this worker's start, as long as it believes to leadership."""
        return self.leadership.epoch if self.leadership is not None else None

    def begin(self) -> None:
        """The log is ours: read it to its end, start a leadership, read up to that."""
        with self._thread(MAIN) as free:
            if not free:
                return
            self._stop()
            tenure = self._tenure
            self.owns = True
            self._read()
            self.asked = now()
            epoch, started = self.governor.start(), now()
            self._began = epoch
            self.interrupts.place("after-start")
            self._read()
            if tenure == self._tenure and self.governor.is_leader:
                self.leadership = LeaderLease(
                    epoch,
                    self._facts,  # type: ignore[arg-type]
                    self._controller_key,
                    lambda: self.governor.image,
                    self.asked,
                    started + LEASE_S if len(self.governor.image.starts) > 1 else started,
                )

    def stop(self) -> None:
        """The log is another's."""
        self.owns = False
        self._stop()

    def _stop(self) -> None:
        self._tenure += 1
        if self.leadership is not None:
            self.leadership.end()
            self.leadership = None

    def deliver(self, count: int, again: int = 0) -> None:
        """The next records of the log arrive, and some of those before a second time."""
        with self._thread(MAIN) as free:
            if free:
                at = self.governor.image.offset + 1
                self.governor.fold(self.world.log.records[max(0, at - again) : at + count])

    def listen(self) -> None:
        """Read to the end of the log, which Kafka has told just now."""
        with self._thread(MAIN) as free:
            if free:
                self.asked, end = now(), len(self.world.log.records)
                self.interrupts.place("log end")
                self.governor.fold(self.world.log.records[self.governor.image.offset + 1 : end])
                if self.leadership is not None:
                    self.leadership.renew(self.asked)

    def may_act(self, what: str) -> None:
        """Nothing is changed by who has not asked for the end of the log lately.

        And nothing by an earlier governor once a later one has changed something.
        """
        silent = now() - self.asked
        assert silent <= LEASE_S, f"{what} is begun {silent:g} s after the log was asked for"
        epoch = self.epoch if self.epoch is not None else self._began
        assert epoch >= self.world.acted, f"{what} is begun after a later governor has acted"
        self.world.acted = epoch

    def step(self) -> bool:
        """Decide one record; whether something was said."""
        with self._thread(MAIN) as free:
            leadership = self.leadership
            if not free or leadership is None or self.governor.image.offset < self._must_reach:
                return False
            try:
                leadership.check_leadership()
            except NotLeaderError:
                return False
            records = self.governor.step()
            if not records:
                return False
            self._must_reach = records[-1].offset
            for record in records:
                if record.offset != self.governor.image.offset + 1:
                    break
                self.governor.fold([record])
            return True
        return False

    def keep(self, name: str) -> None:
        """One round of a controller, on the image as it is now."""
        with self._thread(name) as free:
            leadership, image = self.leadership, self.governor.image
            if not free or leadership is None or image.offset < leadership.last_report:
                return
            try:
                leadership.check()
                self.controllers[name].reconcile(image, leadership)
            except NotLeaderError:
                return

    def _read(self) -> None:
        self.governor.fold(self.world.log.records[self.governor.image.offset + 1 :])

    @contextmanager
    def _thread(self, name: str) -> Iterator[bool]:
        """Whether the thread is free; a fault that the real worker does not survive kills it."""
        free = name not in self.busy and not self.interrupts.dead
        if not free:
            yield False
            return
        self.busy.add(name)
        self.world.working.append(self)
        try:
            yield True
        except DiedError:
            self.world.buried(self)
        except (InfrastructureError, ConfigurationError):
            self.interrupts.dead = True
            self.world.buried(self)
        finally:
            self.world.working.pop()
            self.busy.discard(name)
