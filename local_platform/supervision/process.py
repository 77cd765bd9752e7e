"""Processes by identity (pid and start time), so that a reused pid is never touched."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from local_platform.layout import Layout
from local_platform.services.base import Command

INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LC_ALL")
"""Variables of the supervisor that every server gets, and those that begin with `LC_`.

What else is in the environment of whoever ran `sdm up` is no server's business, passwords least.
"""
# Set in every service's environment; finds those that a killed supervisor left unrecorded.
_MARK_HOME = "SDM_SUPERVISED_HOME"
_MARK_NAME = "SDM_SUPERVISED_NAME"


class Identity(BaseModel):
    """A process: pid, and when it started, by the kernel's clock alone.

    started: id of the machine's boot and clock ticks since it (field 22 of proc_pid_stat(5)). The
        time of day is no part of it: a clock that is set would make every process a stranger.
    """

    model_config = ConfigDict(frozen=True)

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Return the identity of a pid, None where it has just ended."""
        try:
            return cls(pid=pid, started=_start(pid))
        except (FileNotFoundError, ProcessLookupError):
            return None

    @classmethod
    def own(cls) -> "Identity":
        """Return the identity of this process."""
        return cls(pid=os.getpid(), started=_start(os.getpid()))

    def process(self) -> psutil.Process | None:
        """Return the process while it lives; None once it ended or its pid was reused."""
        if Identity.of(self.pid) != self:
            return None
        try:
            found = psutil.Process(self.pid)
            return found if found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    @property
    def alive(self) -> bool:
        """Tell whether the process lives."""
        return self.process() is not None


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _start(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    # the name before may hold anything, also blanks and parentheses
    return f"{_boot()}/{stat.rpartition(')')[2].split()[19]}"


def spawn(command: Command, name: str, home: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a service in a session of its own, so that Ctrl-C at a terminal passes it by."""
    mark = {_MARK_HOME: str(home), _MARK_NAME: name}
    account = command.account
    with log.open("ab") as output:
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env={**_inherited(command), **command.environment, **mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=account,
            group=account,
            extra_groups=None if account is None else list(command.groups),
            # rights inside Kafka mean nothing to who can read its files
            umask=0o077,
        )


def _inherited(command: Command) -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if command.inherits or name in INHERITED or name.startswith("LC_")
    }


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


def rss(leader: Identity | None) -> int:
    """Return the resident bytes of a process and its descendants, 0 once it ended."""
    process = leader.process() if leader is not None else None
    if process is None:
        return 0
    total = 0
    with contextlib.suppress(psutil.Error):
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
    return total


def marked(home: Path) -> Iterator[tuple[str, Identity]]:
    """Find the session leaders that any supervisor of this home started: (service, process).

    Anybody can set the mark: what runs as a stranger's account is none of them.
    """
    accounts = {os.getuid(), *_accounts(home)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            name = environment.get(_MARK_NAME)
            if name is None or environment.get(_MARK_HOME) != str(home):
                continue
            if process.uids().real in accounts and os.getsid(process.pid) == process.pid:
                leader = Identity.of(process.pid)
                if leader is not None:
                    yield name, leader


def _accounts(home: Path) -> Iterator[int]:
    """The accounts that a home's servers run as: each has a folder of its own there."""
    with contextlib.suppress(FileNotFoundError):
        for folder in Layout(home).data.iterdir():
            yield folder.stat(follow_symlinks=False).st_uid


def _send(pid: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)


def _wait_gone(leader: Identity, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while leader.alive and time.monotonic() < deadline:
        time.sleep(0.02)


def _members(leader: Identity) -> Iterator[psutil.Process]:
    """Yield what lives on in the session of a leader that ended."""
    if Identity.of(leader.pid) not in (None, leader):
        return  # the pid is somebody else's now, and so is the session
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != leader.pid and os.getsid(process.pid) == leader.pid:
                yield process
