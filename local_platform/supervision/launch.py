"""Start a supervisor, or let a living one keep more services."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import local_platform
from local_platform.errors import ServiceFailedError, UnreachableFolderError
from local_platform.files import last_lines
from local_platform.ports import require_free
from local_platform.services.base import Service
from local_platform.site import Site
from local_platform.supervision.process import Identity
from local_platform.supervision.state import ALREADY_RUNNING, PlatformState, ServiceStatus, State
from mesh_events.files import write_atomically

# From taking its lock to its first state a supervisor needs milliseconds, under load more.
_FIRST_STATE_S = 10.0


def launch(site: Site, services: Sequence[Service]) -> float:
    """Check the ports and start a supervisor; return when, in seconds since the epoch.

    Raises:
        PortInUseError: a port is taken; nothing was started.
        ServiceFailedError: the supervisor itself did not start.
    """
    layout = site.layout
    site.make_folders()
    require_free(_listeners(services))
    _want(site, services)
    layout.state.unlink(missing_ok=True)
    site.endpoints().save(layout.home)
    asked, log = time.time(), layout.log("supervisor")
    with log.open("ab") as output:
        done = subprocess.run(
            [sys.executable, "-m", "local_platform.supervision.supervisor"],
            check=False,
            cwd=layout.home,
            env=_environment(site),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    if done.returncode not in (0, ALREADY_RUNNING):
        raise ServiceFailedError(
            f"the supervisor did not start (exit code {done.returncode}); "
            f"its log {log} ends:\n{last_lines(log)}"
        )
    return asked


def extend(
    site: Site,
    supervisor: Identity,
    known: Iterable[ServiceStatus],
    every: Iterable[Service],
    added: Sequence[Service],
) -> float:
    """Let a living supervisor keep more services; return when, in seconds since the epoch.

    Raises:
        PortInUseError: a port of a new service is taken; nothing was changed.
    """
    kept = {one.name for one in known if one.state != State.FAILED}
    new = [service for service in added if service.name not in kept]
    require_free(_listeners(new))
    # not those that are known: the supervisor may not yet have read what was wanted a moment ago
    before = set(wanted(site))
    names = before | {service.name for service in added}
    _want(site, [service for service in every if service.name in names])
    asked = time.time()
    # one that is known and was not wanted is being stopped
    if new or names != before:
        os.kill(supervisor.pid, signal.SIGHUP)
    return asked


def leave_out(site: Site, gone: str) -> None:
    """Take one service from those that the supervisor has to keep; SIGHUP tells it so."""
    names = [name for name in wanted(site) if name != gone]
    write_atomically(site.layout.wanted, json.dumps(names))


def reduce(site: Site, supervisor: Identity, gone: str, timeout_s: float) -> None:
    """Let a living supervisor stop one service, and wait until it has.

    Raises:
        ServiceFailedError: not within `timeout_s` seconds.
    """
    leave_out(site, gone)
    os.kill(supervisor.pid, signal.SIGHUP)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        state = PlatformState.load(site.layout.state)
        if state is None or not state.supervisor.alive:
            return
        if all(one.name != gone for one in state.services):
            return
        time.sleep(0.02)
    raise ServiceFailedError(f"{gone} did not stop within {timeout_s:g} s: see `sdm status`")


def starting_or_living(site: Site) -> PlatformState | None:
    """Return the last state; where a supervisor is just starting, wait for its first one."""
    deadline = time.monotonic() + _FIRST_STATE_S
    state = PlatformState.load(site.layout.state)
    while state is None and _held(site.layout.lock) and time.monotonic() < deadline:
        time.sleep(0.02)
        state = PlatformState.load(site.layout.state)
    return state


@contextlib.contextmanager
def one_at_a_time(site: Site) -> Iterator[None]:
    """Let only one process of this home start things; others wait for it."""
    home = site.layout.home
    try:
        home.mkdir(parents=True, exist_ok=True)
        handle = os.open(home / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise UnreachableFolderError(
            f"{home} cannot be written ({fault.strerror}): set SDM_HOME to a folder of yours"
        ) from fault
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _held(lock: Path) -> bool:
    """Tell whether a supervisor holds its lock."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def wanted(site: Site) -> list[str]:
    """Return the names of what the supervisor has to keep."""
    names: list[str] = json.loads(site.layout.wanted.read_bytes())
    return names


def _want(site: Site, services: Iterable[Service]) -> None:
    write_atomically(site.layout.wanted, json.dumps([service.name for service in services]))


def _listeners(services: Iterable[Service]) -> dict[str, int]:
    return {
        listener: service.site.port(listener)
        for service in services
        for listener in service.listeners
    }


def _environment(site: Site) -> dict[str, str]:
    """Return the supervisor's environment: the same settings, and our own packages."""
    absolute = {"home": site.layout.home, "cache": site.cache}
    root = str(Path(local_platform.__file__).parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **site.settings.model_copy(update=absolute).environment(),
        "PYTHONPATH": os.pathsep.join(paths),
    }
