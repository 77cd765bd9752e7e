"""Processes by identity (pid and start time), so that a reused pid is never touched."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from local_platform.services.base import Command

# Set in every service's environment; finds those that a killed supervisor left unrecorded.
_MARK_HOME = "SDM_SUPERVISED_HOME"
_MARK_NAME = "SDM_SUPERVISED_NAME"


class Identity(BaseModel):
    """A process: pid, and when it started (seconds since the epoch, as psutil tells it)."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Return the identity of a pid, None where it has just ended."""
        try:
            return cls(pid=pid, started=psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return None

    @classmethod
    def own(cls) -> "Identity":
        """Return the identity of this process."""
        return cls(pid=os.getpid(), started=psutil.Process().create_time())

    def process(self) -> psutil.Process | None:
        """Return the process while it lives; None once it ended or its pid was reused."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) < 0.05
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    @property
    def alive(self) -> bool:
        """Tell whether the process lives."""
        return self.process() is not None


def spawn(command: Command, name: str, home: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a service in a session of its own, so that Ctrl-C at a terminal passes it by."""
    mark = {_MARK_HOME: str(home), _MARK_NAME: name}
    account = command.account
    with log.open("ab") as output:
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env={**os.environ, **command.environment, **mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=account,
            group=account,
            extra_groups=None if account is None else [],
            # rights inside Kafka mean nothing to who can read its files
            umask=0o077,
        )


def stop_group(leader: Identity, sign: signal.Signals, timeout_s: float) -> None:
    """Ask a process to stop, then end it and whatever is left of its group."""
    if leader.alive:
        _send(leader.pid, sign)
        _wait_gone(leader, timeout_s)
    if leader.alive:
        _send(leader.pid, signal.SIGKILL)
        _wait_gone(leader, 5)
    for member in _members(leader):
        _send(member.pid, signal.SIGKILL)


def rss(leader: Identity) -> int:
    """Return the resident bytes of a process and its descendants, 0 once it ended."""
    process = leader.process()
    if process is None:
        return 0
    total = 0
    with contextlib.suppress(psutil.Error):
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
    return total


def marked(home: Path) -> Iterator[tuple[str, Identity]]:
    """Find the session leaders that any supervisor of this home started: (service, process)."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            own = environment.get(_MARK_HOME) == str(home)
            if own and os.getsid(process.pid) == process.pid:
                started = process.create_time()
                yield environment[_MARK_NAME], Identity(pid=process.pid, started=started)


def _send(pid: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)


def _wait_gone(leader: Identity, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while leader.alive and time.monotonic() < deadline:
        time.sleep(0.02)


def _members(leader: Identity) -> Iterator[psutil.Process]:
    """Yield what lives on in the session of a leader that ended."""
    if psutil.pid_exists(leader.pid):
        current = Identity.of(leader.pid)
        if current is not None and abs(current.started - leader.started) >= 0.05:
            return  # the pid is somebody else's now, and so is the session
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != leader.pid and os.getsid(process.pid) == leader.pid:
                yield process
