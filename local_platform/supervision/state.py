"""What the supervisor knows, as a file that others follow: `$SDM_HOME/run/state.json`."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from local_platform.supervision.process import Identity
from mesh_events.files import write_atomically

ALREADY_RUNNING = 3
"""Exit code of a supervisor that found another one at its home."""


class State(StrEnum):
    """Where a service is in its life; a one-shot job that ended with 0 is `ready`.

    A server that was ready and whose process lives, but which fails its checks, is `not answering`.
    """

    STARTING = "starting"
    READY = "ready"
    NOT_ANSWERING = "not answering"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


class ServiceStatus(BaseModel):
    """One service as last seen.

    since: when it entered this state, seconds since the epoch
    restarts: how often it was started again after it had died
    rss_bytes: resident memory with its children; 0 where it was not measured
    detail: what a probe last missed, or why it failed
    """

    model_config = ConfigDict(frozen=True)

    name: str
    state: State
    pid: int | None = None
    started: str | None = None
    port: int | None = None
    since: float = 0.0
    restarts: int = 0
    rss_bytes: int = 0
    log: Path
    detail: str = ""

    @property
    def identity(self) -> Identity | None:
        """The process, where one was started."""
        if self.pid is None or self.started is None:
            return None
        return Identity(pid=self.pid, started=self.started)


class PlatformState(BaseModel):
    """The supervisor's own identity and all services in start order."""

    model_config = ConfigDict(frozen=True)

    supervisor: Identity
    services: tuple[ServiceStatus, ...]

    @classmethod
    def load(cls, path: Path) -> "PlatformState | None":
        """Read the state; None where nothing was ever started or the file is foreign."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None


@dataclass(frozen=True)
class Progress:
    """One step of `up`, for a person to see.

    stage: "fetch" (bytes of jars), "start" (services), "running" (nothing was to do)
    done, total: bytes or services
    services: as last seen, while starting
    """

    stage: str
    done: int = 0
    total: int = 0
    services: tuple[ServiceStatus, ...] = field(default=())


class StatusFile:
    """The statuses of one supervisor: changed by its threads, written on every change.

    What could not be written, on a full disk, is known here all the same: no thread that keeps a
    service ends over it, and `write_again` tells those who follow the file.
    """

    def __init__(self, path: Path) -> None:
        self._own = Identity.own()
        self._path = path
        self._services: dict[str, ServiceStatus] = {}
        self._was_written = False
        self._is_unwritten = False
        self._changed = threading.Condition()

    def add(self, services: Iterable[ServiceStatus], order: Sequence[str]) -> None:
        """Put new statuses on the status file, in one step for those who follow the file.

        order: all names that are known now, in the order of the file

        Raises:
            OSError: nothing could be written yet: nobody would know of this supervisor.
        """
        with self._changed:
            added = {status.name: status for status in services}
            known = self._services | added
            self._services = {name: known[name] for name in order if name in known}
            self._write()
            self._changed.notify_all()

    def update(self, name: str, **change: object) -> None:
        """Change a status; a new state gets the current time.

        What has been taken off the status file stays off it.
        """
        with self._changed:
            before = self._services.get(name)
            if before is None:
                return
            if change.get("state", before.state) != before.state:
                change["since"] = time.time()
            after = before.model_copy(update=change)
            if after != before:
                self._services[name] = after
                self._write()
                self._changed.notify_all()

    def remove(self, names: Iterable[str]) -> None:
        """Take statuses off the status file."""
        with self._changed:
            for name in names:
                del self._services[name]
            self._write()
            self._changed.notify_all()

    def status(self, name: str) -> ServiceStatus:
        """Return a status."""
        with self._changed:
            return self._services[name]

    def names(self) -> tuple[str, ...]:
        """Return the services on the status file."""
        with self._changed:
            return tuple(self._services)

    def wait_ready(self, names: Iterable[str], unless: Callable[[], bool]) -> bool:
        """Wait until all named services are ready; False as soon as `unless()` holds.

        Nobody waits for what has been taken off the status file.
        """
        wanted = tuple(names)
        with self._changed:
            while not unless():
                if self.are_ready(wanted):
                    return True
                self._changed.wait(0.5)
        return False

    def are_ready(self, names: Iterable[str]) -> bool:
        """Whether all named services are ready, of those that are on the status file."""
        with self._changed:
            found = (self._services[name] for name in names if name in self._services)
            return all(one.state == State.READY for one in found)

    def wake(self) -> None:
        """Let everybody who waits look again."""
        with self._changed:
            self._changed.notify_all()

    def write_again(self) -> None:
        """Write what could not be written, if that is possible now."""
        with self._changed:
            if self._is_unwritten:
                self._write()

    def _write(self) -> None:
        state = PlatformState(supervisor=self._own, services=tuple(self._services.values()))
        try:
            write_atomically(self._path, state.model_dump_json(indent=1) + "\n")
        except OSError:
            if not self._was_written:
                raise
            self._is_unwritten = True
        else:
            self._was_written, self._is_unwritten = True, False
