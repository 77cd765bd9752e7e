"""The detached process that keeps the services running: `python -m local_platform.supervisor`.

One per home, by a lock that the kernel frees when the process ends. It starts every service
as soon as those that it needs are ready, and on SIGTERM stops them in order. The board
(`run/state.json`) is all that others see of it.
"""

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Iterable, Sequence

from local_platform.minder import Minder
from local_platform.services import STOP_ORDER, catalogue, chosen
from local_platform.services.base import Service
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.state import ALREADY_RUNNING, Board, ServiceStatus, State


class Supervisor:
    """Keeps the chosen services of one site running."""

    def __init__(self, site: Site, services: Sequence[Service]) -> None:
        names = {service.name for service in services}
        self._board = Board(site.layout.state, [_initial(service) for service in services])
        self._minders = {
            service.name: Minder(
                service, tuple(name for name in service.after if name in names), self._board
            )
            for service in services
        }

    def run(self, stop: threading.Event) -> None:
        """Start everything; when `stop` is set, stop everything in order and return."""
        for minder in self._minders.values():
            minder.start()
        stop.wait()
        for wave in STOP_ORDER:
            self._stop(name for name in wave if name in self._minders)

    def _stop(self, names: Iterable[str]) -> None:
        stopping = [threading.Thread(target=self._minders[name].stop) for name in names]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()


def _initial(service: Service) -> ServiceStatus:
    return ServiceStatus(
        name=service.name,
        state=State.STARTING,
        port=service.site.port(service.listeners[0]) if service.listeners else None,
        log=service.site.layout.log(service.name),
    )


def _rotate(services: Iterable[Service]) -> None:
    """Keep one older log per service, so that a log tells of one life."""
    for service in services:
        log = service.site.layout.log(service.name)
        if log.exists():
            log.replace(log.with_suffix(".log.1"))


def main(argv: Sequence[str]) -> int:
    """Detach, then supervise the services named in `argv` (all where none is)."""
    site = Site.of(PlatformSettings())
    services = chosen(catalogue(site), argv or None)
    lock = os.open(site.layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ALREADY_RUNNING
    if os.fork():
        return 0  # the lock lives on in the child, so the caller knows that it holds
    os.setsid()
    stop = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: stop.set())
    _rotate(services)
    Supervisor(site, services).run(stop)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
