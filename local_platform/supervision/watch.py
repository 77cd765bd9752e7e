"""Whether a server that was ready still answers, checked as long as its process lives."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from local_platform.services.base import Service
from local_platform.supervision.probing import Probing
from local_platform.supervision.process import Identity


@dataclass(frozen=True)
class Patience:
    """How long a server may be slow; generous, since a busy machine slows the check as well.

    pause_s: between two checks
    answer_s: for one check; it fails if it takes longer
    failures: in a row before the server counts as not answering
    last_s, last_failures: both must be exceeded in a row before it is to be restarted
    """

    pause_s: float = 10.0
    answer_s: float = 15.0
    failures: int = 2
    last_s: float = 60.0
    last_failures: int = 5


class Watch(threading.Thread):
    """Checks one process until `end`.

    report: called when it stops answering, with the last error, and with None when it answers again
    may_restart: whether what it needs works, so that a restart can help
    restart: called when its patience is over, from this thread
    """

    def __init__(
        self,
        service: Service,
        process: Identity,
        report: Callable[[str | None], None],
        may_restart: Callable[[], bool],
        restart: Callable[[str], None],
        patience: Patience = Patience(),
    ) -> None:
        super().__init__(name=f"watch-{service.name}", daemon=True)
        self._service, self._process, self._patience = service, process, patience
        self._report, self._may_restart, self._restart = report, may_restart, restart
        self._checking = Probing(service, service.check, looks=False)
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._failures = 0
        self._failing_since = 0.0

    def end(self) -> None:
        """Nothing is reported after this; a check that still runs counts for nothing."""
        with self._guard:
            self._ended.set()
        self._checking.abandon()

    def run(self) -> None:
        """Check until the process ends, or is to be restarted."""
        while not self._ended.wait(self._patience.pause_s):
            error = self._error()
            with self._guard:
                if self._ended.is_set():
                    return
                self._count(error)
            if error is not None and self._is_over():
                took = time.monotonic() - self._failing_since
                self._restart(f"it did not answer for {took:.0f} s: {error}")
                return

    def _error(self) -> str | None:
        """Why the server does not answer; None if it does."""
        try:
            missing = self._checking.look(self._patience.answer_s)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is no answer
            return f"{type(fault).__name__}: {fault}"
        return missing if missing != "" else f"no answer within {self._patience.answer_s:g} s"

    def _count(self, error: str | None) -> None:
        was_silent = self._failures >= self._patience.failures
        if error is None:
            self._failures = 0
            if was_silent:
                self._report(None)
            return
        if self._failures == 0 or not self._counts():
            self._failing_since = time.monotonic()
        self._failures += 1
        if self._failures >= self._patience.failures:
            self._report(error)

    def _is_over(self) -> bool:
        return (
            self._service.is_restarted
            and self._failures >= self._patience.last_failures
            and time.monotonic() - self._failing_since >= self._patience.last_s
        )

    def _counts(self) -> bool:
        """Whether a failure is the server's own: nobody stopped it, and what it needs works."""
        found = self._process.process()
        try:
            is_stopped = found is not None and found.status() == psutil.STATUS_STOPPED
        except psutil.Error:
            return False
        return not is_stopped and self._may_restart()
