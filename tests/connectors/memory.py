"""Kafka Connect in memory, and a controller of connectors with the whole world around it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from immutables import Map

from mesh_events import connectors
from mesh_events.errors import InfrastructureError, RefusedError
from mesh_events.facts import Fact
from mesh_events.meta import Event, Meta, derived_id, now
from processors.connect.cluster import ConnectCluster
from processors.connect.connects import Connects
from processors.connect.own_worker import StartingError
from processors.connect.rest import Connect, Deployed, Part
from processors.connect.secrets import ConnectSecrets
from processors.controllers.connectors.connectors import ConnectorsController
from processors.controllers.controller import NotLeaderError
from processors.spark.error_files import ErrorFiles
from projections.connectors.state import Connector
from tests import sample_history as story
from tests.links.memory import QUICK, MemoryCluster
from tests.links.real import LineageList
from tests.memory_log import MemoryLog

NAME, PRINCIPAL = story.CONNECTOR, f"mesh.connect.{story.CONNECTOR}"


@dataclass
class MemoryConnect(Connect):
    """A Connect cluster: what is put runs at once, unless it is told to `fail`.

    A task that has failed stays so until it is started again. `down` refuses every call, and
    so does one that `starts`. One that is `stopped` runs nothing until it is asked, and one that
    `reads` its configs still lists nothing.
    """

    found: dict[str, Deployed] = field(default_factory=dict)
    fails: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    refusal: RefusedError | None = None
    down: bool = False
    starts: bool = False
    stopped: bool = False
    reads: bool = False
    looks: int = 0
    url: str = "memory"
    broken: set[str] = field(default_factory=set)
    patience_s: float = 0.0

    def _answer(self, call: str = "") -> None:
        if self.starts:
            raise StartingError("the worker is being started", retriable=True)
        if self.down:
            raise InfrastructureError("Kafka Connect does not answer", retriable=True)
        if call:
            self.calls.append(call)

    @property
    def is_stopped(self) -> bool:
        return self.stopped

    def _known(self, name: str) -> Deployed:
        if name not in self.found:
            raise RefusedError("unknown_connector", f"no connector {name}")
        return self.found[name]

    def _run(self, name: str) -> None:
        state = "FAILED" if name in self.fails else "RUNNING"
        tasks = (Part(0, state, self.fails.get(name, "")),)
        self.found[name] = replace(self.found[name], connector=Part(None, "RUNNING"), tasks=tasks)

    def fail(self, name: str, trace: str) -> None:
        """Its task fails, now and whenever it is started, until it is `mended`."""
        self.fails[name] = trace
        self._run(name)

    def mend(self, name: str) -> None:
        """The next start of its task goes well."""
        del self.fails[name]

    def deployed(self, patience_s: float = 30.0) -> dict[str, Deployed]:
        self.patience_s = patience_s
        self.looks += 1
        self._answer()
        return {} if self.reads else dict(self.found)

    def topics(self, name: str) -> list[str]:
        self._known(name)
        return []

    def put(self, name: str, config: Mapping[str, str]) -> None:
        self._answer(f"put {name}")
        if name in self.broken:
            raise ValueError("a fault of the program")
        if self.refusal is not None:
            raise self.refusal
        before = self.found.get(name)
        parts = Part(None, "RUNNING"), ()
        self.found[name] = Deployed(name, "source", dict(config), *parts, planned=1)
        if before is not None and before.connector.state == "STOPPED":
            self.found[name] = replace(before, config=dict(config))
        else:
            self._run(name)

    def delete(self, name: str) -> bool:
        self._answer(f"drop {name}")
        return self.found.pop(name, None) is not None

    def stop(self, name: str) -> bool:
        self._answer(f"stop {name}")
        if name not in self.found:
            return False
        self.found[name] = replace(self.found[name], connector=Part(None, "STOPPED"), tasks=())
        return True

    def resume(self, name: str) -> None:
        self._answer(f"resume {name}")
        self._known(name)
        self._run(name)

    def restart(self, name: str, *, failed_only: bool) -> None:
        self._answer(f"restart {name}")
        if self._known(name).failed or not failed_only:
            self._run(name)


class MemoryLeadership:
    """A leadership over a log in memory."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.facts: list[Fact] = []
        self.ended = False

    @property
    def epoch(self) -> int:
        return self._log.image.epoch

    @property
    def last_report(self) -> int:
        return self._log.image.offset

    def check(self) -> None:
        if self.ended:
            raise NotLeaderError("another governor has started")

    def report(self, fact: Fact) -> None:
        self.check()
        self.facts.append(fact)
        self._log.append(fact, by="controller")

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Meta:
        return Meta(
            id=derived_id(cause, step, generation),
            time=now(),
            actor="mesh.controller",
            domain="mesh",
            correlation=correlation,
            causation=cause,
        )


class MemoryConnector:
    """One connector, its controller, and the whole world around it."""

    def __init__(self, folder: Path) -> None:
        self.log = MemoryLog()
        story.published(self.log)
        self.east, self.api = MemoryCluster("east"), MemoryConnect()
        self.secrets = ConnectSecrets(folder)
        self.connect = ConnectCluster(self.api, self.secrets, "workers", "db.invalid:5432")
        self.connects = Connects(self.connect)
        self.errors = ErrorFiles(folder.with_name(f"{folder.name}-home"))
        self.leadership, self.lineage, self.time = MemoryLeadership(self.log), LineageList(), 100.0
        self.versions: dict[str, list[int]] = {}
        self.controller = self.new_controller()

    def new_controller(self) -> ConnectorsController:
        return ConnectorsController(
            self.connects,
            lambda *_: self.east,
            lambda: self.log.image,
            self.lineage,
            lambda subject: self.versions.get(subject, []),
            pace=replace(QUICK, clock=lambda: self.time),
            settle_s=0,
            errors=self.errors,
        )

    @property
    def connector(self) -> Connector:
        return self.log.image.connectors[NAME]

    def say(self, kind: type[Event], by: str = "east", **fields: object) -> None:
        self.log.say(kind, by, connector=NAME, **fields)
        self.log.govern()

    def add(self, more: Mapping[str, str] = Map()) -> None:
        self.log.say(connectors.ConnectorAdded, "east", **story.connector(more=dict(more)))
        self.log.govern()

    def look(self, seconds: float = 1.5, times: int = 1) -> None:
        """The controller looks, once in so many seconds."""
        for _ in range(times):
            self.time += seconds
            self.controller.reconcile(self.log.image, self.leadership)

    def said(self) -> list[str]:
        """What was reported of the connector, in a word each, with the code of a failure."""
        return [
            fact.code if isinstance(fact, connectors.ConnectorFailed) else type(fact).__name__[9:]
            for fact in self.leadership.facts
        ]
