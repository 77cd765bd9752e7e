"""The detached process that keeps the services running.

Started as `python -m local_platform.supervision.supervisor`.

One per home, by a lock that the kernel frees when the process ends. It keeps the services
named in `run/wanted.json`, starting each as soon as those that it needs are ready; SIGHUP
makes it read that file again, and stop what is not named any more; SIGTERM makes it stop
everything in order. What was started on demand, and is idle, it takes out of that file. The status
file (`run/state.json`) is all that others see of it.
"""

import contextlib
import fcntl
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection, Iterable

from local_platform.services import catalogue, chosen, stop_waves
from local_platform.services.base import Service
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision import log_files
from local_platform.supervision.launch import leave_out, one_at_a_time, wanted
from local_platform.supervision.service_runner import ServiceRunner
from local_platform.supervision.state import ALREADY_RUNNING, ServiceStatus, State, StatusFile


class Orders:
    """The signals that a process gets from now on, in their order; made in its first thread.

    The interpreter writes each to a socket as it arrives. A handler would run only once Python code
    runs again: one that arrives just before a wait for a lock or a queue begins is not seen by it.
    """

    def __init__(self, signals: Iterable[signal.Signals]) -> None:
        self._arrived, self._written = socket.socketpair()
        self._written.setblocking(False)
        # a socket that is full holds orders enough
        signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        for sign in signals:
            signal.signal(sign, _kept)

    def next(self, deadline: float) -> signal.Signals | None:
        """Wait for the next one; None when the deadline (by the monotonic clock) passes first."""
        remaining = max(0.0, deadline - time.monotonic())
        with selectors.DefaultSelector() as selector:
            selector.register(self._arrived, selectors.EVENT_READ)
            is_there = selector.select(remaining)
        return signal.Signals(self._arrived.recv(1)[0]) if is_there else None


def _kept(number: int, frame: object) -> None:
    """Do nothing: that a signal has a handler lets the interpreter write it to the socket."""


class Supervisor:
    """Keeps the wanted services of one site running."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._status_file = StatusFile(site.layout.state)
        self._runners: dict[str, ServiceRunner] = {}
        self._releasing: set[str] = set()

    def run(self, orders: Orders, lifetime_s: float | None = None) -> None:
        """Keep what is wanted until an order other than SIGHUP, or the end of its lifetime."""
        deadline = None if lifetime_s is None else time.monotonic() + lifetime_s
        self._heed()
        while self._next_order(orders, deadline) == signal.SIGHUP:
            self._heed()
        for wave in stop_waves(self._runners):
            self._stop(wave)

    def _heed(self) -> None:
        """Mind what is wanted and nothing else."""
        names = wanted(self._site)
        # a domain's server, or a generator, may have come since
        every = catalogue(self._site)
        known = {service.name for service in every}
        if unknown := [name for name in names if name not in known]:
            _say(f"no service is called {', '.join(unknown)}: left out")
            names = [name for name in names if name in known]
        self._dismiss([name for name in self._runners if name not in names])
        self._begin(every, chosen(every, names))

    def _dismiss(self, names: Collection[str]) -> None:
        for name in names:
            # who needs it from now on waits until it is started again
            self._status_file.update(name, state=State.STOPPED, detail="is being stopped")
        self._stop(names)
        for name in names:
            del self._runners[name]
        if names:
            self._status_file.remove(names)

    def _begin(self, every: Iterable[Service], wanted: Iterable[Service]) -> None:
        """Start minding what is wanted and not minded, or was given up."""
        new = [service for service in wanted if self._needs_runner(service.name)]
        known = {*self._runners, *(service.name for service in new)}
        for service in new:
            # a log that goes on tells of two lives; on a full disk that must do
            with contextlib.suppress(OSError):
                log_files.begin(self._site.layout.log(service.name))
        order = [service.name for service in every]
        self._status_file.add((_initial(service) for service in new), order)
        for service in new:
            after = tuple(name for name in service.after if name in known)
            self._runners[service.name] = ServiceRunner(service, after, self._status_file)
            self._runners[service.name].start()

    def _needs_runner(self, name: str) -> bool:
        return name not in self._runners or self._status_file.status(name).state == State.FAILED

    def _next_order(self, orders: Orders, deadline: float | None) -> signal.Signals:
        """Wait for an order, SIGTERM when the deadline passes first.

        Meanwhile the logs are bounded, and what did not fit on a full disk is written.
        """
        while True:
            look = time.monotonic() + log_files.LOOK_S
            order = orders.next(look if deadline is None else min(look, deadline))
            if order is not None:
                return order
            if deadline is not None and time.monotonic() >= deadline:
                _say("its lifetime (SDM_LIFETIME_S) is over: it stops every service")
                return signal.SIGTERM
            self._status_file.write_again()
            self._release_idle()
            for name in self._runners:
                # what is wrong with a file is no reason to leave the services alone
                with contextlib.suppress(OSError):
                    log_files.bound(self._site.layout.log(name), log_files.MOST_BYTES)

    def _release_idle(self) -> None:
        """Let idle services be stopped; who starts one holds the lock, for minutes perhaps."""
        for name, runner in self._runners.items():
            if runner.is_idle and name not in self._releasing:
                self._releasing.add(name)
                threading.Thread(target=self._release, args=(name, runner), daemon=True).start()

    def _release(self, name: str, runner: ServiceRunner) -> None:
        try:
            with one_at_a_time(self._site):
                # what it was given to do since the last check
                if runner.is_idle and runner.is_idle_still():
                    leave_out(self._site, name)
                    os.kill(os.getpid(), signal.SIGHUP)
        finally:
            self._releasing.discard(name)

    def _stop(self, names: Iterable[str]) -> None:
        stopping = [threading.Thread(target=self._runners[name].stop) for name in names]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()


def _say(text: str) -> None:
    """Write a line to the supervisor's log, if its disk has room."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")


def _initial(service: Service) -> ServiceStatus:
    return ServiceStatus(
        name=service.name,
        state=State.STARTING,
        since=time.time(),
        port=service.port if service.listeners else None,
        log=service.site.layout.log(service.name),
    )


def main() -> int:
    """Detach, then supervise; the settings come from `SDM_*` variables."""
    settings = PlatformSettings()
    site = Site.of(settings)
    lock = os.open(site.layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ALREADY_RUNNING
    if os.fork():
        return 0  # the lock lives on in the child, so the caller knows that it holds
    os.setsid()
    orders = Orders((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    Supervisor(site).run(orders, settings.lifetime_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
