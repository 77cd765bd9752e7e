"""Whether a server that was ready still answers, shown with a server that fails on demand."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from local_platform.errors import NotReadyError
from local_platform.services.base import Command, Service
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision.process import Identity
from local_platform.supervision.watch import Patience, Watch

QUICK = Patience(pause_s=0.01, answer_s=0.2, failures=2, last_s=0.2, last_failures=5)
SLEEP = "import time; time.sleep(600)"


class Server(Service):
    """Answers while `error` is None, or after it failed `failing` times; counts the checks."""

    name = "server"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.error: Exception | None = None
        self.failing = -1
        self.asked = 0
        self.hangs = threading.Event()

    def command(self) -> Command:
        raise NotImplementedError

    def probe(self) -> None:
        raise AssertionError("only the check is asked")

    def check(self) -> None:
        self.asked += 1
        while self.hangs.is_set():
            time.sleep(0.01)
        if self.error is not None and self.failing != 0:
            self.failing -= 1
            raise self.error


class Patient(Server):
    is_restarted = False


class Rig:
    """One watch of a process that sleeps."""

    def __init__(self, site: Site, kind: type[Server] = Server) -> None:
        self.server = kind(site)
        self.popen = subprocess.Popen([sys.executable, "-c", SLEEP])
        process = Identity.of(self.popen.pid)
        assert process is not None
        self.reported: list[str | None] = []
        self.restarted: list[str] = []
        self.may_restart = True
        self.watch = Watch(
            self.server,
            process,
            self.reported.append,
            lambda: self.may_restart,
            self.restarted.append,
            QUICK,
        )
        self.watch.start()

    def is_asked(self, times: int) -> None:
        """Wait for further checks."""
        wanted = self.server.asked + times
        wait_until(lambda: self.server.asked >= wanted, "it is checked")

    def close(self) -> None:
        self.server.hangs.clear()
        self.watch.end()
        self.watch.join(10)
        self.popen.kill()
        self.popen.wait()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.of(PlatformSettings(home=tmp_path, cache=tmp_path / "cache"))


@pytest.fixture
def rig(site: Site) -> Iterator[Rig]:
    found = Rig(site)
    yield found
    found.close()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def test_a_server_that_answers_is_left_alone(rig: Rig) -> None:
    rig.is_asked(20)
    assert (rig.reported, rig.restarted) == ([], [])


def test_one_failed_check_is_not_reported(rig: Rig) -> None:
    rig.server.failing = 1
    rig.server.error = NotReadyError("a moment")
    wait_until(lambda: rig.server.failing == 0, "a failed check")
    rig.is_asked(5)
    assert rig.reported == []


def test_a_server_that_stops_answering_is_reported_with_the_error_and_restarted(rig: Rig) -> None:
    rig.server.error = NotReadyError("no memory")

    wait_until(lambda: bool(rig.restarted), "it is restarted")

    assert set(rig.reported) == {"no memory"}
    assert rig.restarted[0].startswith("it did not answer for ")
    assert rig.restarted[0].endswith(": no memory")


def test_a_server_that_answers_again_is_reported_as_such_and_not_restarted(site: Site) -> None:
    rig = Rig(site, Patient)
    try:
        rig.server.error = NotReadyError("busy")
        wait_until(lambda: "busy" in rig.reported, "it does not answer")
        rig.server.error = None
        wait_until(lambda: rig.reported[-1] is None, "it answers")
        assert rig.restarted == []
    finally:
        rig.close()


def test_a_check_that_never_ends_is_no_answer(rig: Rig) -> None:
    rig.server.hangs.set()
    wait_until(lambda: bool(rig.restarted), "it is restarted")
    assert rig.reported[-1] == "no answer within 0.2 s"


def test_an_error_that_nobody_expected_is_no_answer(rig: Rig) -> None:
    rig.server.error = ValueError("garbage")
    wait_until(lambda: bool(rig.restarted), "it is restarted")
    assert rig.reported[-1] == "ValueError: garbage"


def test_a_process_that_somebody_stopped_is_reported_and_not_restarted(rig: Rig) -> None:
    os.kill(rig.popen.pid, signal.SIGSTOP)
    process = psutil.Process(rig.popen.pid)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it is stopped")
    rig.server.error = NotReadyError("stopped")
    rig.is_asked(60)
    assert "stopped" in rig.reported
    assert rig.restarted == []

    os.kill(rig.popen.pid, signal.SIGCONT)

    wait_until(lambda: bool(rig.restarted), "it is restarted")


def test_a_server_is_not_restarted_while_what_it_needs_does_not_work(rig: Rig) -> None:
    rig.may_restart = False
    rig.server.error = NotReadyError("no broker")
    rig.is_asked(60)
    assert rig.restarted == []

    rig.may_restart = True

    wait_until(lambda: bool(rig.restarted), "it is restarted")


def test_a_server_that_begins_anew_by_a_restart_is_never_restarted(site: Site) -> None:
    rig = Rig(site, Patient)
    try:
        rig.server.error = NotReadyError("it folds")
        rig.is_asked(60)
        assert rig.restarted == []
    finally:
        rig.close()


def test_nothing_is_reported_after_the_end(rig: Rig) -> None:
    rig.is_asked(1)
    rig.watch.end()
    rig.server.error = NotReadyError("ended")
    rig.watch.join(10)
    assert not rig.watch.is_alive()
    assert (rig.reported, rig.restarted) == ([], [])
