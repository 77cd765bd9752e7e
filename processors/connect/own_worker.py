"""A Connect worker of one domain's own, started when the domain first needs it.

What a domain's records, databases and settings do to the memory and the processors of a worker they
do to that domain's connectors alone. Who starts it stops it as well, when it runs no connector.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import RLock

from pydantic import BaseModel

from mesh_events.errors import ConfigurationError, InfrastructureError
from mesh_events.references import resolve
from processors.connect.rest import Connect
from processors.spark.domain_server import Asking

AGAIN_S = 10.0
"""A worker that could not be had is asked for again after so long."""
_NEVER = float("-inf")


class ConnectWorker(BaseModel):
    """Where a domain's own Connect worker answers; the password is a reference."""

    url: str
    user: str = ""
    password: str = ""


class StartingError(InfrastructureError):
    """The worker is being started."""


@dataclass(eq=False)
class OwnWorker(Connect):
    """The REST API of a domain's own worker.

    Every method raises StartingError while the worker is being started, InfrastructureError while
    it cannot be had.

    Args:
        domain: whose it is.
        start: the command that starts it unless it runs, is given the domain as last argument,
            prints a `ConnectWorker` as JSON on a line as soon as it knows that, and ends with 0
            when the worker is ready.
        named: where it answers, if somebody else keeps it.
        waits: for a worker that is being started.
        clock: seconds.
    """

    domain: str
    start: Sequence[str] = ()
    named: ConnectWorker | None = None
    waits: bool = False
    clock: Callable[[], float] = time.monotonic
    url: str = field(init=False)
    _turn: RLock = field(default_factory=RLock, init=False)
    _login: tuple[str, str] = field(default=("", ""), init=False)
    _ready: bool = field(default=False, init=False)
    _asking: Asking[ConnectWorker] | None = field(default=None, init=False)
    _fault: InfrastructureError | None = field(default=None, init=False)
    _not_before: float = field(default=_NEVER, init=False)

    def __post_init__(self) -> None:
        self.url = f"{self.domain}'s own worker"

    @property
    def is_stopped(self) -> bool:
        """Whether this process has not needed it yet, or it did not answer since."""
        return self.named is None and not self._ready and self._asking is None

    def _locate(self) -> None:
        with self._turn:
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
            self._asking = Asking([*self.start, self.domain], ConnectWorker)
        found = self._asking.answer(patient=self.waits)
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
