"""The life of one service, shown with small processes of our own."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from local_platform.errors import NotReadyError, ServiceFailedError
from local_platform.ports import require_free
from local_platform.services.base import Command, Outcome, Service
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision import probing, service_runner
from local_platform.supervision.process import Identity, marked, stop_group
from local_platform.supervision.service_runner import ServiceRunner
from local_platform.supervision.state import PlatformState, ServiceStatus, State, StatusFile
from local_platform.supervision.watch import Patience
from tests.conftest import free_port_base

SLEEP = "import time; time.sleep(600)"
LISTEN = """
import socket, time
server = socket.create_server(("127.0.0.1", {port}))
time.sleep(600)
"""
# Says so once SIGTERM no longer ends it.
STUBBORN = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("deaf").touch()
time.sleep(600)
"""
WITH_CHILD = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("child").write_text(str(child.pid))
time.sleep(600)
"""


class Script(Service):
    """Runs Python source; ready when the file `needs` exists (at once where it is "")."""

    stop_timeout = 1.0

    def __init__(
        self, site: Site, source: str, name: str = "script", after: tuple[str, ...] = ()
    ) -> None:
        super().__init__(site)
        self.name = name
        self.after = after
        self.needs = ""
        self._source = source

    def command(self) -> Command:
        return Command((sys.executable, "-c", self._source), cwd=self.data)

    def probe(self) -> None:
        if self.needs and not (self.data / self.needs).exists():
            raise NotReadyError(f"no file {self.needs}")


class Hanging(Script):
    """Its probe hangs until somebody ends it, for the first process that is started."""

    def __init__(self, site: Site, source: str) -> None:
        super().__init__(site, source)
        self.starts = self.probes = 0
        self.ended = threading.Event()

    def command(self) -> Command:
        self.starts += 1
        return super().command()

    def probe(self) -> None:
        self.probes += 1
        if self.starts == 1:
            assert self.ended.wait(60), "nobody ended the probe"
            raise NotReadyError("the probe was ended")

    def end_probe(self) -> None:
        self.ended.set()


class Endless(Hanging):
    """Nothing ends its first probe before the test does."""

    def end_probe(self) -> None:
        pass


class Job(Script):
    once = True


class Aside(Job):
    """Notes in a file that it was checked."""

    is_awaited = False
    listeners = ("postgres",)

    def check(self) -> None:
        (self.data / "checked").touch()


class OnDemand(Script):
    on_demand = True


class Ending(Script):
    """Is done with 0, and would fail alike after 9."""

    def outcome(self, code: int) -> Outcome | None:
        return {0: Outcome(True, "done"), 9: Outcome(False, "the topic is gone")}.get(code)


class Listening(Script):
    """Listens at a port; its check fails once the file `silent` is there, until the next start."""

    listeners = ("postgres",)

    def command(self) -> Command:
        (self.data / "silent").unlink(missing_ok=True)
        return super().command()

    def check(self) -> None:
        if (self.data / "silent").exists():
            raise NotReadyError("no memory")


class Unpreparable(Script):
    def prepare(self) -> None:
        raise ServiceFailedError("the disk is full")


class Rig:
    """Starts runners on one status file and stops them at the end."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.status_file = StatusFile(site.layout.state)
        self.runners: list[ServiceRunner] = []

    def mind(self, *services: Service, patience: Patience = Patience()) -> None:  # noqa: B008
        initial = (
            ServiceStatus(name=one.name, state=State.STARTING, log=self.site.layout.log(one.name))
            for one in services
        )
        self.status_file.add(initial, ["script", "other"])
        for service in services:
            self.runners.append(ServiceRunner(service, service.after, self.status_file, patience))
            self.runners[-1].start()

    def until(self, state: State, name: str = "script", **also: object) -> ServiceStatus:
        def reached() -> bool:
            status = self.status_file.status(name)
            return status.state == state and all(
                getattr(status, key) == value for key, value in also.items()
            )

        wait_until(reached, lambda: f"{name} {state} {also}, but {self.status_file.status(name)}")
        return self.status_file.status(name)


def wait_until(holds: Callable[[], bool], what: Callable[[], str], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.01)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    settings = PlatformSettings(home=tmp_path, cache=tmp_path / "cache", port_base=free_port_base())
    site = Site.of(settings)
    site.make_folders()
    found = Rig(site)
    yield found
    for one in found.runners:
        one.stop()


def test_a_service_is_ready_only_when_its_probe_succeeds(rig: Rig) -> None:
    service = Script(rig.site, SLEEP)
    service.needs = "work"
    rig.mind(service)
    rig.until(State.STARTING, detail="no file work")

    (service.data / "work").touch()

    assert rig.until(State.READY).pid


def two_on_demand(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> OnDemand:
    """Starts two where one may start at a time; the first is being started."""
    monkeypatch.setattr(service_runner, "_STARTS_AT_A_TIME", 1)
    monkeypatch.setattr(service_runner, "_starts", {})
    first, second = OnDemand(rig.site, SLEEP), OnDemand(rig.site, SLEEP, "other")
    first.needs = "work"
    rig.mind(first)
    rig.until(State.STARTING, detail="no file work")
    rig.mind(second)
    return first


def test_services_on_demand_take_turns_to_start(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    first = two_on_demand(rig, monkeypatch)
    with pytest.raises(AssertionError):
        wait_until(lambda: rig.status_file.status("other").pid is not None, lambda: "it waits", 1)
    (first.data / "work").touch()
    rig.until(State.READY)
    rig.until(State.READY, "other")


def test_a_start_on_demand_that_takes_long_gives_its_turn_to_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_runner, "_LONGEST_TURN_S", 0.1)
    two_on_demand(rig, monkeypatch)
    rig.until(State.READY, "other")
    assert rig.status_file.status("script").state == State.STARTING


def test_one_that_waits_for_its_turn_can_be_stopped(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_on_demand(rig, monkeypatch)
    rig.runners[1].stop()
    assert rig.status_file.status("other").state == State.STOPPED


def test_a_service_starts_after_those_that_it_needs(rig: Rig) -> None:
    first = Script(rig.site, SLEEP)
    first.needs = "work"
    rig.mind(first, Script(rig.site, SLEEP, "other", after=("script",)))
    rig.until(State.STARTING, detail="no file work")
    assert rig.status_file.status("other").pid is None

    (first.data / "work").touch()

    rig.until(State.READY, "other")


def test_a_killed_service_is_started_again_and_counted(rig: Rig) -> None:
    rig.mind(Script(rig.site, SLEEP))
    before = rig.until(State.READY)
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)

    after = rig.until(State.READY, restarts=1)

    assert after.pid != before.pid


def test_a_service_that_dies_during_its_probe_is_started_again_at_once(rig: Rig) -> None:
    service = Hanging(rig.site, SLEEP)
    rig.mind(service)
    wait_until(lambda: service.probes == 1, lambda: "it is probed")
    pid = rig.until(State.STARTING).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    assert rig.until(State.READY, restarts=1).pid != pid
    assert service.ended.is_set()


def test_a_probe_that_cannot_be_ended_does_not_hold_up_the_next_start(rig: Rig) -> None:
    service = Endless(rig.site, SLEEP)
    rig.mind(service)
    wait_until(lambda: service.probes == 1, lambda: "it is probed")
    pid = rig.until(State.STARTING).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: service.starts == 2, lambda: "it is started again")
    assert service.probes == 1

    service.ended.set()

    rig.until(State.READY, restarts=1)


class Once:
    """Calls what it stands for, but for the first time: then it raises."""

    def __init__(self, real: Callable[..., Any], fault: Exception) -> None:
        self.real, self.fault, self.calls = real, fault, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise self.fault
        return self.real(*args, **options)


BUSY = OSError(errno.EAGAIN, "Resource temporarily unavailable")


def test_a_probe_that_breaks_once_is_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Script(rig.site, SLEEP)
    once = Once(service.probe, BUSY)
    monkeypatch.setattr(service, "probe", once)
    rig.mind(service)

    rig.until(State.READY, restarts=0)
    assert once.calls == 2


def test_a_probe_that_could_not_begin_is_tried_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Once(threading.Thread.start, RuntimeError("can't start new thread"))

    def begin(probe: threading.Thread) -> None:
        start(probe)

    monkeypatch.setattr(probing._Probe, "start", begin)
    rig.mind(Script(rig.site, SLEEP))

    rig.until(State.READY, restarts=0)
    assert start.calls == 2


def test_a_probe_that_always_breaks_shows_its_error_and_a_stop_leaves_no_process(rig: Rig) -> None:
    service = Script(rig.site, SLEEP)
    service.probe = lambda: 1 // 0  # type: ignore[method-assign,assignment,return-value]
    rig.mind(service)
    rig.until(State.STARTING, detail="ZeroDivisionError: integer division or modulo by zero")

    rig.runners[0].stop()

    assert list(marked(rig.site.layout.home)) == []


def test_a_service_that_is_given_up_leaves_no_process_and_can_be_asked_for_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Once(service_runner.Watch, RuntimeError("can't start new thread"))
    monkeypatch.setattr(service_runner, "Watch", watch)
    port = rig.site.port("postgres")
    service = Listening(rig.site, LISTEN.format(port=port))
    rig.mind(service)
    given_up = rig.until(State.FAILED, detail="RuntimeError: can't start new thread")

    assert given_up.pid is None
    assert list(marked(rig.site.layout.home)) == []
    require_free({"postgres": port})

    rig.mind(service)
    rig.until(State.READY)


def test_a_start_that_fails_once_is_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_runner, "spawn", Once(service_runner.spawn, BUSY))
    rig.mind(Script(rig.site, SLEEP))

    rig.until(State.READY, restarts=1)


def test_a_start_that_always_fails_is_given_up_with_its_error(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Script(rig.site, SLEEP)
    monkeypatch.setattr(service, "command", lambda: Command(("/nonexistent",), cwd=service.data))
    rig.mind(service)

    detail = rig.until(State.FAILED).detail
    assert detail.startswith("ended 3 times before it was ready, last with FileNotFoundError: ")


def test_a_process_that_cannot_be_looked_at_is_ended_before_another_one_is_started(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENFILE, "Too many open files in system")
    monkeypatch.setattr(Identity, "of", Once(Identity.of, full))
    rig.mind(Script(rig.site, SLEEP))
    status = rig.until(State.READY, restarts=1)

    assert list(marked(rig.site.layout.home)) == [("script", status.identity)]


def test_a_service_that_never_gets_ready_is_given_up_with_its_exit_code(rig: Rig) -> None:
    service = Script(rig.site, "raise SystemExit(7)")
    service.needs = "never"
    rig.mind(service)

    detail = rig.until(State.FAILED).detail

    assert "ended 3 times before it was ready" in detail
    assert detail.endswith("exit code 7")


def test_a_job_that_ended_well_is_ready_and_runs_once(rig: Rig) -> None:
    source = "import pathlib; f = pathlib.Path('runs').open('a'); f.write('x'); f.close()"
    job = Job(rig.site, source)
    rig.mind(job)

    status = rig.until(State.READY)

    assert (status.pid, status.detail) == (None, "done")
    assert (job.data / "runs").read_text() == "x"


def test_nobody_waits_for_a_job_that_is_not_awaited(rig: Rig) -> None:
    source = "import pathlib, time\nwhile not pathlib.Path('end').exists(): time.sleep(0.01)"
    job = Aside(rig.site, source)
    rig.mind(job)
    assert rig.until(State.READY).detail == "at work"
    (job.data / "end").touch()
    rig.until(State.READY, detail="done")


def test_a_job_that_nobody_waits_for_is_not_checked_as_a_server(rig: Rig) -> None:
    job = Aside(rig.site, "import time; time.sleep(0.5)")
    rig.mind(job, patience=Patience(pause_s=0.01, answer_s=5))
    rig.until(State.READY, detail="done")
    assert not (job.data / "checked").exists()


def test_a_server_gets_no_variable_that_is_not_on_the_list(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD_OF_SOMEBODY", "hunter2")
    monkeypatch.setenv("LC_TIME", "C.UTF-8")
    rig.mind(Script(rig.site, SLEEP))
    status = rig.until(State.READY)
    assert status.pid is not None
    found = psutil.Process(status.pid).environ()
    assert "PASSWORD_OF_SOMEBODY" not in found
    assert found["LC_TIME"] == "C.UTF-8"
    assert found["PATH"] == os.environ["PATH"]


def test_a_server_that_does_not_answer_is_shown_so_and_started_again(rig: Rig) -> None:
    port = rig.site.port("postgres")
    service = Listening(rig.site, LISTEN.format(port=port))
    patience = Patience(pause_s=0.05, answer_s=5, failures=2, last_s=1, last_failures=5)
    rig.mind(service, patience=patience)
    before = rig.until(State.READY)

    (service.data / "silent").touch()

    rig.until(State.NOT_ANSWERING, detail="no memory")
    after = rig.until(State.READY, restarts=1)
    assert after.pid != before.pid


def test_a_service_that_is_done_stays_so_and_one_that_gives_up_says_why(rig: Rig) -> None:
    rig.mind(
        Ending(rig.site, "raise SystemExit(0)"), Ending(rig.site, "raise SystemExit(9)", "other")
    )

    assert rig.until(State.READY, detail="done").pid is None
    assert rig.status_file.status("script").restarts == 0
    assert rig.until(State.FAILED, "other").detail == "the topic is gone"


def test_what_was_taken_off_the_board_is_waited_for_by_nobody(rig: Rig) -> None:
    log = rig.site.layout.log("any")
    both = (ServiceStatus(name=name, state=State.STARTING, log=log) for name in ("script", "other"))
    rig.status_file.add(both, ["script", "other"])
    rig.status_file.update("other", state=State.READY)

    rig.status_file.remove(["script"])
    rig.status_file.update("script", state=State.FAILED)

    assert rig.status_file.wait_ready(["script", "other"], lambda: False)
    state = PlatformState.load(rig.site.layout.state)
    assert state is not None
    assert [one.name for one in state.services] == ["other"]


def test_a_job_that_fails_is_no_ready_service(rig: Rig) -> None:
    rig.mind(Job(rig.site, "raise SystemExit(1)"))

    assert "exit code 1" in rig.until(State.FAILED).detail


def test_a_service_that_cannot_be_prepared_fails_with_its_own_words(rig: Rig) -> None:
    rig.mind(Unpreparable(rig.site, SLEEP))

    assert rig.until(State.FAILED).detail == "the disk is full"


def test_a_stop_ends_the_children_too(rig: Rig) -> None:
    service = Script(rig.site, WITH_CHILD)
    service.needs = "child"
    rig.mind(service)
    rig.until(State.READY)
    wait_until(lambda: bool((service.data / "child").read_text()), lambda: "the child's pid")
    child = int((service.data / "child").read_text())

    rig.runners[0].stop()

    assert rig.status_file.status("script").state == State.STOPPED
    wait_until(lambda: not psutil.pid_exists(child), lambda: f"child {child} lives")


def test_a_service_deaf_to_sigterm_is_killed_after_its_deadline(rig: Rig) -> None:
    service = Script(rig.site, STUBBORN)
    service.needs = "deaf"
    rig.mind(service)
    status = rig.until(State.READY)

    rig.runners[0].stop()

    assert status.identity is not None
    assert not status.identity.alive


def test_after_a_stop_nothing_is_started_again(rig: Rig) -> None:
    rig.mind(Script(rig.site, SLEEP))
    pid = rig.until(State.READY).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    rig.until(State.RESTARTING)

    rig.runners[0].stop()

    assert rig.status_file.status("script").state == State.STOPPED
    assert list(marked(rig.site.layout.home)) == []


def test_the_state_file_tells_what_the_board_knows(rig: Rig) -> None:
    rig.mind(Script(rig.site, SLEEP))
    status = rig.until(State.READY)

    state = PlatformState.load(rig.site.layout.state)

    assert state is not None
    assert state.supervisor == Identity.own()
    assert state.services == (status,)


def test_a_process_that_took_over_a_recorded_pid_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True) as stranger:
        recorded = Identity(pid=stranger.pid, started="another-boot/1000")

        stop_group(recorded, signal.SIGKILL, 1)

        assert not recorded.alive
        assert stranger.poll() is None
        stranger.kill()


def test_a_clock_that_is_set_makes_no_process_another(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, booted = Identity.own(), psutil.boot_time()
    # what psutil adds to the kernel's ticks
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + 1)

    assert recorded.alive
    assert Identity.own() == recorded
