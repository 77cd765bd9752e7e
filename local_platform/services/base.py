"""What a service must tell the supervisor."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from local_platform.errors import NotReadyError
from local_platform.ports import answers
from local_platform.site import Site


@dataclass(frozen=True)
class Command:
    """A process to start.

    argv: program and arguments; never a password, since every user can list them
    environment: variables added to the few that every server gets, see `process.INHERITED`
    inherits: whether it gets all of the supervisor's own variables
    account: uid and gid to run as, where it is not the caller's
    groups: further groups of that account
    """

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    inherits: bool = False
    account: int | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a service stands whose process ended and is not to be started again.

    is_well: it has done its work
    detail: what is told of it
    """

    is_well: bool
    detail: str


class Service(ABC):
    """One server, or a one-shot job (`once`), of a site.

    name: also the name of its log file and data folder
    after: services that must be ready before its process starts
    listeners: names in `ports.OFFSETS` that must be free; the first is shown as its port
    on_demand: started when somebody needs it, not with the mesh
    is_awaited: False: a job that the mesh is ready without, at work or done
    is_restarted: if it does not answer for minutes; False: that is only shown
    longest_pause_s: before it is started again, after it has died again and again
    stop_signal: asks for a clean stop, within `stop_timeout` seconds
    """

    name: str
    after: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ()
    once: ClassVar[bool] = False
    on_demand: ClassVar[bool] = False
    is_awaited: ClassVar[bool] = True
    is_restarted: ClassVar[bool] = True
    longest_pause_s: ClassVar[float] = 15.0
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_timeout: ClassVar[float] = 10.0

    def __init__(self, site: Site) -> None:
        self.site = site

    @property
    def port(self) -> int:
        """The port of its first listener."""
        return self.site.port(self.listeners[0])

    @property
    def data(self) -> Path:
        """The service's data folder."""
        return self.site.layout.data / self.name

    @property
    def scratch(self) -> Path:
        """The service's folder of temporary files: /tmp belongs to everybody on the machine."""
        return self.site.layout.scratch(self.name)

    @property
    def is_idle(self) -> bool:
        """Whether nobody has needed it for long: what was started on demand is stopped then."""
        return False

    @property
    def protocol(self) -> str | None:
        """What its first listener speaks, "+ certificate" where clients need one; None: nothing."""
        return "http" if self.listeners else None

    def prepare(self) -> None:
        """Make data and settings files; repeatable, and an interruption leaves nothing half."""
        self.data.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def command(self) -> Command:
        """Return the process to start; called after `prepare`."""

    def outcome(self, code: int) -> Outcome | None:
        """How it stands if its process has ended by itself with `code`; None: start it again."""
        return Outcome(is_well=True, detail="done") if self.once and code == 0 else None

    def settle(self, pid: int) -> None:  # noqa: B027  (most servers have nothing to do)
        """Do what may wait until all services are ready; called once, beside their work."""

    @abstractmethod
    def probe(self) -> None:
        """Do real work with the running service, and finish its set-up where it needs any.

        Raises:
            NotReadyError: not yet; says what is missing.
        """

    def check(self) -> None:
        """Ask a server that was ready for an answer; cheap, and changes nothing.

        It runs every few seconds, and takes at most as long as `watch.Patience` allows. Whether its
        port answers is all that is looked at here.

        Raises:
            NotReadyError: no answer; says what is missing.
        """
        if self.listeners and not answers(self.port):
            raise NotReadyError(f"{self.name}: port {self.port} does not answer")

    def end_probe(self) -> None:  # noqa: B027  (most probes end by themselves, soon)
        """Let a probe that runs in another thread end now; its process has ended."""
