"""The life of one service under supervision: prepare, start, probe, watch, start again.

A server is started again when its process ends. After it was ready, it is checked
(`watch`): one that does not answer for minutes is ended, and so started again.
"""

import subprocess
import threading
import time
from contextlib import ExitStack

from local_platform.errors import PlatformError
from local_platform.files import empty_folder
from local_platform.services.base import Service
from local_platform.supervision.probing import Probing
from local_platform.supervision.process import Identity, spawn, stop_group
from local_platform.supervision.state import State, StatusFile
from local_platform.supervision.watch import Patience, Watch

# A service that dies this often before it was ever ready will not get better by itself.
_HOPELESS = 3
_FIRST_PAUSE_S = 0.5
# Who lived this long after a crash has recovered from it.
_RECOVERED_S = 30.0
_PROBE_PAUSE_S = 0.1
# More starts of a kind side by side would each take longer; one that takes long delays no others.
_STARTS_AT_A_TIME = 2
_LONGEST_TURN_S = 60.0
_starts: dict[type[Service], threading.BoundedSemaphore] = {}
# What may wait is done by one service at a time: it must not slow those that work.
_ONE_AT_A_TIME = threading.Lock()


class ServiceRunner(threading.Thread):
    """A thread that keeps one service running until `stopping` is set."""

    def __init__(
        self,
        service: Service,
        after: tuple[str, ...],
        status_file: StatusFile,
        patience: Patience = Patience(),  # noqa: B008  (it is frozen)
    ) -> None:
        super().__init__(name=f"runner-{service.name}", daemon=True)
        self._service = service
        self._after = after
        self._status_file = status_file
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._process: Identity | None = None
        self._was_ready = False
        self._settling: threading.Thread | None = None
        self._probing = Probing(service, service.probe)
        self._patience = patience
        self._unanswered = ""
        self._began = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether its service is."""
        return self._service.is_idle

    def is_idle_still(self) -> bool:
        """Whether its service, asked now, is; not while it does not answer."""
        try:
            self._service.check()
        except PlatformError:
            return False
        return self._service.is_idle

    def run(self) -> None:
        """Keep the service running; every end is on the status file."""
        try:
            self._service.prepare()
            self._keep()
        except Exception as fault:  # noqa: BLE001  (a dead thread would leave `up` waiting)
            self._give_up(_told(fault))
        if self._stopping.is_set():
            self._update(state=State.STOPPED, pid=None, started=None, detail="")

    def stop(self) -> None:
        """Stop the service for good; returns when its processes are gone."""
        with self._guard:
            self._stopping.set()
        self._status_file.wake()
        self._end_process()
        self.join(10)
        if self._settling is not None:
            self._settling.join(10)

    def _keep(self) -> None:
        deaths = 0
        while self._status_file.wait_ready(self._after, self._stopping.is_set):
            end = self._live()
            if end is None:
                return
            deaths = 1 if time.monotonic() - self._began > _RECOVERED_S else deaths + 1
            if self._stopping.is_set() or not self._may_try_again(deaths, end):
                return

    def _live(self) -> str | None:
        """Start the process and wait for its end: what it ended with.

        None where it is not to be started again.
        """
        with self._turn() as turn:
            self._began = time.monotonic()
            try:
                popen = self._start()
            except OSError as fault:
                # no memory, no further process, a full disk: that may pass
                return _told(fault)
            if popen is None:
                return None
            if not self._service.is_awaited:
                self._update(state=State.READY, detail="at work")
            self._await_ready(popen, turn)
        code = self._await_end(popen)
        outcome = self._service.outcome(code)
        if outcome is not None:
            state = State.READY if outcome.is_well else State.FAILED
            self._update(state=state, pid=None, started=None, detail=outcome.detail)
            return None
        self._stop_orphans()
        return f"exit code {code}"

    def _give_up(self, why: str) -> None:
        """Say that it failed, once nothing of it holds its port and its files."""
        try:
            self._probing.abandon()
            self._end_process()
        finally:
            self._update(state=State.FAILED, pid=None, started=None, detail=why)

    def _turn(self) -> ExitStack:
        """A turn to start, which ends when it is closed."""
        turn, kind = ExitStack(), type(self._service)
        starts = _starts.setdefault(kind, threading.BoundedSemaphore(_STARTS_AT_A_TIME))
        while self._service.on_demand and not self._stopping.is_set():
            if starts.acquire(timeout=0.5):
                turn.callback(starts.release)
                break
        return turn

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start the process, unless a stop came first: after `stop` nothing may appear."""
        empty_folder(self._service.scratch)
        command = self._service.command()
        site = self._service.site
        with self._guard:
            if self._stopping.is_set():
                return None
            log = site.layout.log(self._service.name)
            popen = spawn(command, self._service.name, site.layout.home, log)
            try:
                self._process = Identity.of(popen.pid)
            except OSError:
                popen.kill()
                popen.wait()
                raise
        started = self._process.started if self._process else None
        self._update(pid=popen.pid, started=started, detail="")
        return popen

    def _await_ready(self, popen: subprocess.Popen[bytes], turn: ExitStack) -> None:
        """Probe until it is ready, or has ended."""
        late = time.monotonic() + _LONGEST_TURN_S
        while not self._service.once and popen.poll() is None:
            if self._stopping.is_set():
                break
            if self._is_ready() and popen.poll() is None:
                self._update(state=State.READY, detail="")
                self._settle(popen.pid)
                break
            if time.monotonic() > late:
                turn.close()
            self._stopping.wait(_PROBE_PAUSE_S)

    def _await_end(self, popen: subprocess.Popen[bytes]) -> int:
        """Check it until its process ends; return the exit code."""
        watch = self._checked()
        code = popen.wait()
        if watch is not None:
            watch.end()
        self._probing.abandon()
        return code

    def _checked(self) -> Watch | None:
        """Start to check a server that has just become ready; None for anything else.

        A job that nobody waits for is ready as well, and may listen: it is not checked.
        """
        is_ready = self._status_file.status(self._service.name).state == State.READY
        is_server = self._service.listeners and not self._service.once
        if self._process is None or not is_ready or not is_server:
            return None
        watch = Watch(
            self._service,
            self._process,
            self._answers,
            lambda: self._status_file.are_ready(self._after),
            self._restart,
            self._patience,
        )
        watch.start()
        return watch

    def _answers(self, error: str | None) -> None:
        state = State.READY if error is None else State.NOT_ANSWERING
        self._update(state=state, detail=error or "")

    def _restart(self, why: str) -> None:
        """End a process that does not answer; the thread that waits for it starts another one."""
        self._unanswered = f"{why}; "
        if not self._stopping.is_set():
            self._end_process()

    def _settle(self, pid: int) -> None:
        if not self._was_ready:
            self._was_ready = True
            self._settling = threading.Thread(target=self._settled, args=(pid,), daemon=True)
            self._settling.start()

    def _settled(self, pid: int) -> None:
        if self._status_file.wait_ready(self._status_file.names(), self._stopping.is_set):
            with _ONE_AT_A_TIME:
                if not self._stopping.is_set():
                    self._service.settle(pid)

    def _is_ready(self) -> bool:
        """Whether a probe succeeded; one that has not ended is looked at again."""
        if not self._probing.is_free:
            return False
        try:
            missing = self._probing.look(_PROBE_PAUSE_S)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is no answer
            missing = _told(fault)
        if missing:
            self._update(detail=missing)
        return missing is None

    def _may_try_again(self, deaths: int, end: str) -> bool:
        """Report a death and wait before the next start; False where that is hopeless."""
        if not self._was_ready and deaths >= _HOPELESS:
            detail = f"ended {deaths} times before it was ready, last with {end}"
            self._update(state=State.FAILED, pid=None, started=None, detail=detail)
            return False
        pause = min(_FIRST_PAUSE_S * 2 ** (deaths - 1), self._service.longest_pause_s)
        self._update(
            state=State.RESTARTING,
            pid=None,
            started=None,
            restarts=self._status_file.status(self._service.name).restarts + 1,
            detail=f"{self._unanswered}ended with {end}, starting again in {pause:g} s",
        )
        self._unanswered = ""
        return not self._stopping.wait(pause)

    def _end_process(self) -> None:
        if self._process is not None:
            stop_group(self._process, self._service.stop_signal, self._service.stop_timeout)

    def _stop_orphans(self) -> None:
        """End what the dead process left in its session, or it may hold ports and files."""
        if self._process is not None:
            stop_group(self._process, self._service.stop_signal, 0)

    def _update(self, **change: object) -> None:
        self._status_file.update(self._service.name, **change)


def _told(fault: Exception) -> str:
    """An error in one line; those of the platform speak for themselves."""
    return str(fault) if isinstance(fault, PlatformError) else f"{type(fault).__name__}: {fault}"
