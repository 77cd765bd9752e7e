"""The engine of one domain: its own Spark Connect server, found or started when first needed."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError

from mesh_events.errors import ConfigurationError
from mesh_events.references import resolve
from processors.settings import DomainSpark, WorkerSettings
from spark_streams.engine import Answer, CopySpec, FlowEngine, States
from spark_streams.errors import EngineError
from spark_streams.spark import SparkEngine

log = structlog.get_logger(__name__)
START_TIMEOUT_S = 270.0
"""Twice as long has to fit into what a lane may take (`lanes.STALL_S`)."""
AGAIN_S = 10.0
"""A server that could not be had is asked for again after so long."""
Got = TypeVar("Got")


class DomainEngine:
    """Passes everything on to the domain's server; see `spark_streams.engine.FlowEngine`.

    Who only asks gives a `session` of its own, beside the one that holds the queries.

    Every method raises EngineError `engine_unavailable` while the domain has no server.
    """

    def __init__(
        self,
        domain: str,
        settings: WorkerSettings,
        connect: Callable[[str, str | None, str], FlowEngine] = SparkEngine,
        clock: Callable[[], float] = time.monotonic,
        session: str = "",
    ) -> None:
        self._domain, self._settings = domain, settings
        # every worker of a mesh meets the same session, so that queries outlive the worker
        self._seed = session or f"{settings.mesh}/{domain}"
        self._connect, self._clock = connect, clock
        self._engine: FlowEngine | None = None
        self._not_before = float("-inf")
        self._fault: EngineError | None = None

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
        """Leave the server; the statements go on."""
        if self._engine is not None:
            self._engine.close()

    def _through(self, act: Callable[[FlowEngine], Got]) -> Got:
        engine = self._found()
        try:
            return act(engine)
        except EngineError as error:
            if error.code == "engine_unavailable":
                # it may answer elsewhere, or have to be started again
                engine.close()
                self._engine = None
            raise

    def _found(self) -> FlowEngine:
        if self._engine is not None:
            return self._engine
        if self._fault is not None and self._clock() < self._not_before:
            raise self._fault
        try:
            server = self._server()
            token = self._token(server)
            self._fault = None
        except EngineError as error:
            self._fault, self._not_before = error, self._clock() + AGAIN_S
            raise
        self._engine = self._connect(server.remote, token, self._seed)
        return self._engine

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
        command = [*self._settings.domain_spark_command, self._domain]
        try:
            # the command is the operator's own setting, and a domain's name is [a-z0-9-]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise self._unavailable(f"it does not start in {START_TIMEOUT_S:g} s") from error
        except OSError as error:
            raise self._unavailable(f"{command[0]}: {error.strerror}") from error
        if done.returncode != 0:
            raise self._unavailable(_outline(done.stderr) or f"exit code {done.returncode}")
        said = done.stdout.strip().rpartition("\n")[2]
        try:
            return DomainSpark.model_validate(json.loads(said))
        except (ValueError, ValidationError) as error:
            raise self._unavailable(f"the command printed {said[:100]!r}") from error

    def _unavailable(self, why: str) -> EngineError:
        return EngineError(
            "engine_unavailable",
            f"{self._domain} has no Spark Connect server: {why}; see `sdm status`",
        )


def _outline(text: str) -> str:
    """The first and the last line of what a command said: what is wrong, and what to do."""
    lines = [line.strip().rstrip(".") for line in text.strip().splitlines()]
    if lines[:1] == ["Traceback (most recent call last):"]:
        return lines[-1]
    return ". ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))
