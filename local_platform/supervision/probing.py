"""One probe of a service at a time, beside whoever watches its process."""

import threading
from collections.abc import Callable

from local_platform.errors import NotReadyError
from local_platform.ports import answers
from local_platform.services.base import Service


class Probing:
    """Probes a service in a thread: a probe may wait for an answer long after the process died.

    probe: `service.probe` or `service.check`
    looks: first whether its port answers, where there need not be a server yet
    """

    def __init__(self, service: Service, probe: Callable[[], None], *, looks: bool = True) -> None:
        self._service = service
        self._probe = probe
        self._looks = looks
        self._running: _Probe | None = None

    def look(self, patience_s: float) -> str | None:
        """Begin a probe unless one runs, and wait for its end; None once it succeeded.

        Args:
            patience_s: seconds to wait at most.

        Returns:
            What is missing; "" where its port does not answer or the probe has not ended yet.

        Raises:
            Exception: what a probe raised beside NotReadyError.
        """
        probe = self._running
        if probe is None:
            probe = _Probe(self._service, self._probe, looks=self._looks)
            probe.start()
            self._running = probe
        probe.join(patience_s)
        if probe.is_alive():
            return ""
        self._running = None
        if probe.fault is not None:
            raise probe.fault
        return probe.missing

    def abandon(self) -> None:
        """Ask a running probe to end, since its process has; what it finds counts for nothing."""
        if self._running is not None:
            self._running.forget()
            self._service.end_probe()

    @property
    def is_free(self) -> bool:
        """Whether no probe of an earlier process runs any more."""
        if self._running is not None and self._running.is_forgotten:
            if self._running.is_alive():
                return False
            self._running = None
        return True


class _Probe(threading.Thread):
    """missing: what is missing, None for nothing; fault: what the probe raised otherwise."""

    def __init__(self, service: Service, probe: Callable[[], None], *, looks: bool) -> None:
        super().__init__(name=f"probe-{service.name}", daemon=True)
        self._service = service
        self._probe = probe
        self._looks = looks
        self.is_forgotten = False
        self.missing: str | None = None
        self.fault: Exception | None = None

    def forget(self) -> None:
        self.is_forgotten = True

    def run(self) -> None:
        service = self._service
        if self._looks and service.listeners and not answers(service.port):
            self.missing = ""
            return
        try:
            self._probe()
        except NotReadyError as fault:
            self.missing = str(fault)
        except Exception as fault:  # noqa: BLE001 - raised again by whoever watches
            self.fault = fault
