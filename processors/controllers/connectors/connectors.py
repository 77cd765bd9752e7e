"""The connectors controller: Kafka Connect runs what the log says, and nothing of it stays failed.

Connect itself leaves a failed task failed, and does what anybody says who has its password. So
configs, states and rights are compared with the log again and again: what failed is started again,
ever less often, and what somebody else changed is put back. What is not to run loses its rights
first, whether Connect answers or not.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import is_
from traceback import format_exc

import structlog

from mesh_events.errors import MeshError, RefusedError
from processors.connect.cluster import NO_CONNECT, ConnectCluster
from processors.connect.connects import Connects
from processors.connect.own_worker import StartingError
from processors.connect.rest import Deployed
from processors.controllers.checks.checks import Clusters
from processors.controllers.connectors import sink_topics
from processors.controllers.connectors.look import SILENT_S, Look, Memory, withheld
from processors.controllers.connectors.reporter import ConnectorReporter
from processors.controllers.controller import Leadership, NotLeaderError, guarded
from processors.controllers.flows.pace import Pace
from processors.controllers.gates import Gates
from processors.controllers.lanes import Job, Lanes, SerialLanes, in_turn
from processors.lineage.events import Lineage
from processors.spark.error_files import ErrorFiles
from projections.connectors.state import Connector, State
from projections.image import Image
from projections.links import Desired

log = structlog.get_logger(__name__)
SETTLE_S, POLL_S = 10.0, 0.25
"""A look goes on for so long while something is on its way, and asks so often."""
STARTING_S = 1.0
"""A worker that is being started is asked so often."""
AGAIN_S, AT_ONCE = 300.0, 3
"""Failures of one code are reported so many times within so many seconds, whatever they say."""
FIRST_LOOK_S = 3.0
"""An answer of Connect is waited for so long while an ACTIVE on the log is not confirmed."""
WITHHELD = frozenset(
    {
        "domain_quarantined",
        "source_not_granted",
        sink_topics.RECREATED,
        sink_topics.MISSING,
        sink_topics.KEYS_MOVED,
        sink_topics.ADDED,
    }
)
"""Why a connector that is to run was stopped: no other failure takes the place of that."""
_NEVER = float("-inf")
_Asked = frozenset[tuple[str, int, Desired]]
"""Id, generation and what is asked for, of connectors."""


@dataclass
class ConnectorsController:
    """Keeps the connectors.

    Args:
        connects: the Connect cluster of each domain.
        clusters: gives a cluster's admin.
        latest: the state by the latest record of the log, which may be newer than the one that is
            looked at.
        lineage: where runs are told.
        versions: subject -> the versions that the registry has of it.
        gates: held while rights that hang on grants are given; the rights controller holds them
            while it takes such, so that none is given again by an older state.
        pace: how often to look.
        lanes: connectors of different Connect clusters, and of different clusters of Kafka, are
            kept side by side.
        settle_s: a look goes on for so long while something is on its way, seconds.
        schema_text: the schema with an id, for the lineage; None where it is not told.
        errors: where the full texts of errors are kept; None: nowhere.
    """

    connects: Connects
    clusters: Clusters
    latest: Callable[[], Image]
    lineage: Lineage
    versions: Callable[[str], Sequence[int]]
    gates: Gates = field(default_factory=Gates)
    pace: Pace = field(default_factory=Pace)
    lanes: Lanes = field(default_factory=SerialLanes)
    settle_s: float = SETTLE_S
    schema_text: Callable[[int], str | None] | None = None
    errors: ErrorFiles | None = None
    name: str = "connectors"
    _memories: dict[str, Memory] = field(default_factory=dict)
    _told: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _silent: dict[str, float] = field(default_factory=dict)
    _looked: dict[str, tuple[tuple[object, ...], float]] = field(default_factory=dict)
    _put: dict[str, float] = field(default_factory=dict)
    _born: float | None = None
    _missing: object = None
    # lane -> the leadership in which nothing was to run there, and nothing did, and what was asked
    _still: dict[str, tuple[Leadership, _Asked]] = field(default_factory=dict)
    _cleared: set[str] = field(default_factory=set)
    # when a connector had its turn
    _had: dict[str, float] = field(default_factory=dict)
    # and when the rights were taken of one that is not to run
    _disarmed: dict[str, float] = field(default_factory=dict)

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Compare and repair every connector once, those of each cluster in a lane of their own."""
        self._born = self.pace.clock() if self._born is None else self._born
        here: dict[str, tuple[ConnectCluster, list[Connector]]] = {}
        without: list[Connector] = []
        for one in image.connectors.values():
            if one.is_over:
                continue
            connect = self.connects.of(one.domain)
            if connect is None:
                without.append(one)
            else:
                lane = f"connect/{connect.group}/{one.cluster}"
                here.setdefault(lane, (connect, []))[1].append(one)
        if without:
            self._tell_missing(without, image, leadership)
        parts = image.connectors, image.identity, image.access, image.links, leadership

        def job(lane: str) -> Job:
            return lambda: self._lane(lane, *here[lane], parts, image, leadership)

        jobs = {lane: job(lane) for lane in here if self._due(lane, parts)}
        self.lanes.run(jobs, image, leadership)

    def _tell_missing(
        self, without: Iterable[Connector], image: Image, leadership: Leadership
    ) -> None:
        """No connector is looked at: the log does not say of any that it runs."""
        if self._missing is image.connectors:
            return
        for one in without:
            if one.desired is Desired.RUNNING and one.failure_code not in WITHHELD:
                reporter = ConnectorReporter(one, image, leadership, self.lineage, self.schema_text)
                reporter.failed("connect_unavailable", NO_CONNECT)
        self._missing = image.connectors

    def put_at(self, connector: str) -> float:
        """When this process, or one before it, may last have handed a connector to Connect."""
        return self._put.get(connector, self._born or 0.0)

    def was_put(self, connector: str) -> None:
        """It is handed to Connect now."""
        self._put[connector] = self.pace.clock()

    def tells(self, connector: Connector, code: str) -> bool:
        """Whether a failure may be reported; notes it if so.

        What follows from a cause may come first: so a few reports of one code come at once.
        """
        now, thing = self.pace.clock(), (connector.id, code)
        recent = [at for at in self._told.get(thing, ()) if now - at < AGAIN_S]
        if connector.failure_code == code and len(recent) >= AT_ONCE:
            return False
        self._told[thing] = [*recent, now]
        return True

    def _due(self, lane: str, parts: tuple[object, ...]) -> bool:
        seen, at = self._looked.get(lane, ((), _NEVER))
        same = len(seen) == len(parts) and all(map(is_, seen, parts))
        return not same or self.pace.clock() - at >= self.pace.look

    def _lane(
        self,
        lane: str,
        connect: ConnectCluster,
        standing: list[Connector],
        parts: tuple[object, ...],
        image: Image,
        leadership: Leadership,
    ) -> None:
        # a look may end before all had their turn: then they come first in the next one
        waiting = sorted(standing, key=lambda one: (self._had.get(one.id, _NEVER), one.id))
        turns = in_turn(waiting, lambda one: one.domain)
        done = self._look(lane, connect, turns, image, leadership)
        if any(_wanted(one, image) for one in standing):
            self._still.pop(lane, None)
        elif done and lane not in self._silent:
            told = (one for one in standing if self._memories[one.id].faulty is None)
            self._still[lane] = leadership, _asked(told)
        self._looked[lane] = (parts if done else (), self.pace.clock())

    def _look(
        self,
        lane: str,
        connect: ConnectCluster,
        standing: list[Connector],
        image: Image,
        leadership: Leadership,
    ) -> bool:
        """Settle each connector, and wait a while for those on their way; whether all are."""
        deadline = self.pace.clock() + self.settle_s
        left = {one.id: self._of(connect, one, image, leadership) for one in standing}
        self._begin(left.values(), deadline, image)
        if self._may_rest(lane, connect, standing, image, leadership):
            return True
        while left:
            try:
                deployed = self._deployed(lane, connect, left.values(), image)
            except StartingError:
                deployed = None
            except MeshError:
                return True
            if deployed is not None and not self._settle(left, deployed, deadline, image):
                return False
            if left and (self.pace.clock() >= deadline or self.latest() is not image):
                # the rest comes with the next, fresher image
                return False
            if left:
                time.sleep(STARTING_S if deployed is None else POLL_S)
        return True

    def _begin(self, looks: Collection[Look], deadline: float, image: Image) -> None:
        """Take the rights of what is not to run first, whatever holds up the others."""
        for look in looks:
            if look.memory.begun is not None:
                self._guarded(look, look.begin)
        unwanted = (look for look in looks if not _wanted(look.connector, image))
        for look in sorted(unwanted, key=self._disarmed_at):
            self._guarded(look, look.disarm)
            self._disarmed[look.connector.id] = self.pace.clock()
            if self.pace.clock() > deadline:
                return

    def _disarmed_at(self, look: Look) -> tuple[bool, float, str]:
        """What was told to stand still comes behind what was not, then who had its turn first."""
        name = look.connector.id
        return look.connector.is_at_rest, self._disarmed.get(name, _NEVER), name

    def _may_rest(
        self,
        lane: str,
        connect: ConnectCluster,
        standing: list[Connector],
        image: Image,
        leadership: Leadership,
    ) -> bool:
        """Whether nothing is to run there, and nothing does: no worker is started to see that."""
        if not connect.api.is_stopped or any(_wanted(one, image) for one in standing):
            return False
        since, settled = self._still.get(lane, (None, frozenset()))
        asked = _asked(one for one in standing if not _rests(one))
        if asked <= (settled if since is leadership else frozenset()):
            self._silent.pop(lane, None)
            return True
        return False

    def _deployed(
        self, lane: str, connect: ConnectCluster, left: Collection[Look], image: Image
    ) -> Mapping[str, Deployed]:
        """What Connect runs; if it does not answer, what should run there is reported as failed."""
        is_first = any(look.is_unconfirmed for look in left)
        try:
            with guarded(f"Kafka Connect at {connect.api.url}"):
                deployed = connect.api.deployed(*((FIRST_LOOK_S,) if is_first else ()))
                if connect is not self.connects.shared:
                    self._clear_shared(connect, left)
        except MeshError as error:
            self._disarm_unfit(left, image)
            self._is_silent(lane, error, left)
            raise
        self._silent.pop(lane, None)
        return deployed

    def _clear_shared(self, connect: ConnectCluster, left: Iterable[Look]) -> None:
        """Remove the domain's connectors from the cluster that it shared before it had its own."""
        shared = self.connects.shared
        if shared is None or connect.group in self._cleared:
            return
        domains = {look.connector.domain for look in left}
        for name in shared.api.deployed():
            if name.partition(".")[0] in domains:
                shared.api.delete(name)
        self._cleared.add(connect.group)

    def _settle(
        self,
        left: dict[str, Look],
        deployed: Mapping[str, Deployed],
        deadline: float,
        image: Image,
    ) -> bool:
        """Settle each connector once, and leave out what is done; whether the time sufficed."""
        for name, look in list(left.items()):
            look.deployed = deployed.get(name)
            if self._guarded(look, partial(look.settle, image)):
                del left[name]
            self._had[name] = self.pace.clock()
            if self.pace.clock() > deadline and left:
                return False
        return True

    def _disarm_unfit(self, looks: Iterable[Look], image: Image) -> None:
        """Take the rights of sinks whose topics were made anew, also while Connect is silent."""
        for look in looks:
            if look.connector.is_sink and _wanted(look.connector, image):
                self._guarded(look, partial(look.disarm_unfit, image))

    def _of(
        self, connect: ConnectCluster, connector: Connector, image: Image, leadership: Leadership
    ) -> Look:
        memory = self._memories.get(connector.id)
        if memory is None or memory.generation != connector.generation:
            failed, begun = (None, None) if memory is None else (memory.failed, memory.begun)
            memory = Memory(connector.generation, failed=failed, begun=begun)
        reporter = ConnectorReporter(connector, image, leadership, self.lineage, self.schema_text)
        admin = lambda: self.clusters(image, connector.cluster)  # noqa: E731 - asked for late
        return Look(self, connect, connector, admin, reporter, leadership, memory)

    def _guarded(self, look: Look, act: Callable[[], bool]) -> bool:
        """Do it; one connector must not hold up all the others, whatever is wrong with it."""
        done = True
        try:
            done = act()
            look.memory = replace(look.memory, faulty=None)
        except NotLeaderError:
            raise
        except RefusedError as error:
            look.refused(error.code, str(error), error.text)
        except MeshError as error:
            look.hampered(error)
        except Exception as error:  # noqa: BLE001 - one connector must not end the worker
            name = type(error).__name__
            # the text may quote a record, and this log can be sent elsewhere
            log.error("connector_error", id=look.connector.id, error=name)  # noqa: TRY400
            what = f"{name}; tried again, the worker's log names a file with more"
            look.refused("unexpected_error", what, format_exc())
        self._memories[look.connector.id] = look.memory
        return done

    def _is_silent(self, lane: str, error: MeshError, left: Iterable[Look]) -> None:
        """Connect does not answer: after a while, what should run there is reported as failed.

        At once of what was not seen to run in this leadership: ACTIVE means that it runs. What
        never ran waits for a worker that is being started, and has not failed.
        """
        now, starts = self.pace.clock(), isinstance(error, StartingError)
        since = self._silent.setdefault(lane, now)
        if not starts:
            log.warning("connect_unreachable", connect=lane, error=str(error))
        for look in left:
            if now - since < SILENT_S and not look.is_unconfirmed:
                continue
            if starts and look.connector.state is not State.ACTIVE:
                continue
            if look.connector.desired is Desired.RUNNING:
                if look.is_unconfirmed:
                    # it goes on by itself with Connect: not started anew for a state that is new
                    look.memory = replace(look.memory, deployed=now)
                look.memory = replace(look.memory, shaken=True, since=None)
                self._memories[look.connector.id] = look.memory
                if look.connector.failure_code not in WITHHELD:
                    look.tell("connect_unavailable", str(error), text=error.text)


def _rests(connector: Connector) -> bool:
    """Whether it is not to run, and does not."""
    return connector.desired is Desired.PAUSED and connector.is_at_rest


def _asked(connectors: Iterable[Connector]) -> _Asked:
    """What was settled of connectors, if anything was: what is asked for later is not."""
    return frozenset((one.id, one.generation, one.desired) for one in connectors)


def _wanted(connector: Connector, image: Image) -> bool:
    return connector.desired is Desired.RUNNING and withheld(connector, image) is None
