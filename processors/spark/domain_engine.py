"""The engine of one domain: its own Spark Connect server, found or started when first needed."""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, TypeVar

import structlog

from mesh_events.errors import ConfigurationError
from mesh_events.references import resolve
from processors.settings import DomainSpark, WorkerSettings
from processors.spark.domain_server import Asking
from spark_streams.engine import Answer, CopySpec, FlowEngine, States
from spark_streams.errors import ENGINE_STARTING, ENGINE_UNAVAILABLE, EngineError
from spark_streams.spark import SparkEngine

log = structlog.get_logger(__name__)
AGAIN_S = 10.0
"""A server that could not be had is asked for again after so long."""
SHARING = 2
"""The domain's statements and its links use the server, each in a session of their own."""
Got = TypeVar("Got")


def _connected(remote: str, token: str | None, seed: str) -> FlowEngine:
    return SparkEngine(remote, token, seed, SHARING)


class DomainEngine:
    """Passes everything on to the domain's server; see `spark_streams.engine.FlowEngine`.

    Its statements have one session there, its links another, and who only asks a third.

    Every method raises EngineError `engine_unavailable` while the domain has no server. One that is
    being started is waited for by who is `patient`; else it raises `engine_starting` meanwhile.
    """

    def __init__(
        self,
        domain: str,
        settings: WorkerSettings,
        connect: Callable[[str, str | None, str], FlowEngine] = _connected,
        clock: Callable[[], float] = time.monotonic,
        session: str = "",
        *,
        patient: bool = False,
    ) -> None:
        self._domain, self._settings = domain, settings
        # every worker of a mesh meets the same session, so that queries outlive the worker
        self._seed = session or f"{settings.mesh}/{domain}"
        self._connect, self._clock = connect, clock
        self._engine: FlowEngine | None = None
        self._not_before = float("-inf")
        self._fault: EngineError | None = None
        self._patient, self._turn = patient, Lock()
        # the last run of the command: until it ends, the server is being started
        self._asking: Asking[DomainSpark] | None = None

    @property
    def is_stopped(self) -> bool:
        """Its server runs on once it was started."""
        return False

    def states(self) -> States:
        """Every living query, and those that failed."""
        return self._through(lambda engine: engine.states())

    def require_room(self, link: str, partitions: int) -> None:
        """Raise `engine_full` where the server has fewer free task slots than that."""
        self._through(lambda engine: engine.require_room(link, partitions))

    def start(self, spec: CopySpec) -> None:
        """Start a query and return when it lives."""
        self._through(lambda engine: engine.start(spec))

    def stop(self, link: str) -> None:
        """Stop every query of a statement and forget its failures."""
        self._through(lambda engine: engine.stop(link))

    def progress(self, link: str) -> Mapping[int, int]:
        """Partition -> source offset before which everything was dealt with."""
        return self._through(lambda engine: engine.progress(link))

    def ask(self, doing: str, act: Callable[[Any], Answer]) -> Answer:
        """What comes of `act`, which is given a session."""
        return self._through(lambda engine: engine.ask(doing, act))

    def close(self) -> None:
        """Leave the server; what runs there goes on."""
        if self._engine is not None:
            self._engine.close()

    def _through(self, act: Callable[[FlowEngine], Got]) -> Got:
        with self._turn:
            engine, asking = self._found(), self._asking
            # before the call: it may be ready by the time that the call has failed
            start = asking.answer(patient=False) if asking is not None else None
        try:
            answer = act(engine)
        except EngineError as error:
            if error.code != ENGINE_UNAVAILABLE:
                raise
            if start is not None and not start.ended:
                raise self._starting() from error
            # it may answer elsewhere, or have to be started again
            with self._turn:
                self._leave(engine)
                if start is not None and start.fault is not None:
                    raise self._unavailable(start.fault) from error
            raise
        if start is not None and start.ended:
            with self._turn:
                if self._asking is asking:
                    # it answers: how its command ended is no reason for a later failure
                    self._asking = None
        return answer

    def _found(self) -> FlowEngine:
        if self._engine is not None:
            return self._engine
        if self._fault is not None and self._clock() < self._not_before:
            raise self._fault
        server = self._server()
        self._engine = self._connect(server.remote, self._token(server), self._seed)
        return self._engine

    def _leave(self, engine: FlowEngine) -> None:
        """Ask for a server anew with the next call."""
        if self._engine is engine:
            engine.close()
            self._engine = self._asking = None

    def _token(self, server: DomainSpark) -> str | None:
        try:
            return resolve(server.token) if server.token else None
        except ConfigurationError as error:
            raise self._unavailable(f"its token: {error}") from error

    def _server(self) -> DomainSpark:
        named = self._settings.domain_spark.get(self._domain)
        if named is not None:
            return named
        if not self._settings.domain_spark_command:
            raise self._unavailable("none is named in SDM_DOMAIN_SPARK")
        asking = self._asking
        if asking is None:
            command = [*self._settings.domain_spark_command, self._domain]
            asking = self._asking = Asking(command, DomainSpark)
        found = asking.answer(patient=self._patient)
        if found.ended:
            # how it ended is reported once; the next call runs the command again
            self._asking = None
        if found.fault is not None:
            raise self._unavailable(found.fault)
        if found.server is None:
            raise self._starting()
        return found.server

    def _starting(self) -> EngineError:
        return EngineError(
            ENGINE_STARTING,
            f"{self._domain}'s Spark Connect server does not answer this worker yet",
        )

    def _unavailable(self, why: str) -> EngineError:
        fault = EngineError(
            ENGINE_UNAVAILABLE,
            f"{self._domain} has no Spark Connect server: {why}; see `sdm status`",
        )
        self._fault, self._not_before = fault, self._clock() + AGAIN_S
        return fault
