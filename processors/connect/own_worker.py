"""A Connect worker of one domain's own: started when the domain first needs it, stopped after.

What a domain's records, databases and settings do to the memory and the processors of a worker they
do to that domain's connectors alone.
"""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import RLock

import structlog
from pydantic import BaseModel

from mesh_events.errors import ConfigurationError, InfrastructureError
from mesh_events.references import resolve
from processors.connect.rest import Connect
from processors.domain_server import Asking

log = structlog.get_logger(__name__)
AGAIN_S = 10.0
"""A worker that could not be had is asked for again after so long."""
IDLE_S = 300.0
_STOPS_S = 60.0
_NEVER = float("-inf")


class ConnectWorker(BaseModel):
    """Where a domain's own Connect worker answers; the password is a reference."""

    url: str
    user: str = ""
    password: str = ""


class StartingError(InfrastructureError):
    """The worker is being started."""


@dataclass(frozen=True, slots=True)
class Commands:
    """How workers are started and stopped; each command is given the domain as last argument.

    start: starts the worker unless it runs, prints a `ConnectWorker` as JSON on a line as soon as
        it knows that, and ends with 0 when the worker is ready.
    stop: stops it; none: it runs on.
    idle_s: seconds that nobody has needed it for when it is stopped.
    """

    start: Sequence[str] = ()
    stop: Sequence[str] = ()
    idle_s: float = IDLE_S


@dataclass
class OwnWorker(Connect):
    """The REST API of a domain's own worker.

    Every method raises StartingError while the worker is being started, InfrastructureError while
    it cannot be had.

    Args:
        domain: whose it is.
        commands: how it is started and stopped.
        named: where it answers, if somebody else keeps it.
        patient: wait for a worker that is being started.
        clock: seconds.
    """

    domain: str
    commands: Commands
    named: ConnectWorker | None = None
    patient: bool = False
    clock: Callable[[], float] = time.monotonic
    url: str = field(init=False)
    _turn: RLock = field(default_factory=RLock, init=False)
    _login: tuple[str, str] = field(default=("", ""), init=False)
    _ready: bool = field(default=False, init=False)
    _asking: Asking[ConnectWorker] | None = field(default=None, init=False)
    _fault: InfrastructureError | None = field(default=None, init=False)
    _not_before: float = field(default=_NEVER, init=False)
    _used: float = field(default=_NEVER, init=False)

    def __post_init__(self) -> None:
        self.url = f"{self.domain}'s own worker"

    @property
    def is_stopped(self) -> bool:
        """Whether it was not needed yet, or was stopped since; not of one that others keep."""
        return self.named is None and not self._ready and self._asking is None

    def rest(self) -> bool:
        """Stop the worker when nobody has needed it for `idle_s` seconds; see `Connect.rest`."""
        with self._turn:
            if self.named is not None or not self.commands.stop:
                return False
            if self._ready and self.clock() - self._used >= self.commands.idle_s:
                self._ready = False
                self._stop()
            return True

    def _stop(self) -> None:
        command = [*self.commands.stop, self.domain]
        try:
            # the command is the operator's own setting, and a domain's name is [a-z0-9-]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_STOPS_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("connect_worker_not_stopped", domain=self.domain, error=str(error))
            return
        if done.returncode:
            why = done.stderr.strip() or f"exit code {done.returncode}"
            log.warning("connect_worker_not_stopped", domain=self.domain, error=why)

    def _reach(self) -> None:
        with self._turn:
            self._used = self.clock()
            if not self._ready:
                self._find()

    def _lose(self) -> None:
        """It may have been stopped, or answer elsewhere: the next call asks for it anew."""
        with self._turn:
            self._ready = False

    def _find(self) -> None:
        if self._fault is not None and self.clock() < self._not_before:
            raise self._fault
        worker = self.named or self._started()
        try:
            password = resolve(worker.password) if worker.password else ""
        except ConfigurationError as error:
            raise self._unavailable(f"its password: {error}") from error
        self.url, self._login = worker.url.rstrip("/"), (worker.user, password)
        self._ready, self._fault = True, None

    def _started(self) -> ConnectWorker:
        if self._asking is None:
            self._asking = Asking([*self.commands.start, self.domain], ConnectWorker)
        found = self._asking.answer(patient=self.patient)
        if not found.ended:
            raise StartingError(
                f"{self.domain}'s own Kafka Connect worker is being started", retriable=True
            )
        # how it ended is reported once; the next call runs the command again
        self._asking = None
        if found.fault is not None or found.server is None:
            raise self._unavailable(found.fault or "its command printed no address")
        return found.server

    def _unavailable(self, why: str) -> InfrastructureError:
        self._fault = InfrastructureError(
            f"{self.domain} has no Kafka Connect worker: {why}; see `sdm status`", retriable=True
        )
        self._not_before = self.clock() + AGAIN_S
        return self._fault
