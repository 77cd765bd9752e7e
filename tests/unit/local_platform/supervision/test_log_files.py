"""Logs of servers that write without end."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_platform.services.base import Command, Service
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision import log_files, supervisor
from local_platform.supervision.process import Identity, spawn, stop_group
from local_platform.supervision.state import PlatformState, State
from local_platform.supervision.supervisor import Orders, Supervisor
from mesh_events.files import write_atomically
from tests.integration.local_platform.clients import wait_until

LINES = "import itertools\nfor n in itertools.count(): print(f'{n:09}')"
MOST = 200_000


class Loud(Service):
    """Writes one line after another."""

    name = "loud"
    is_awaited = False

    def command(self) -> Command:
        return Command((sys.executable, "-c", LINES), self.data)

    def probe(self) -> None:
        return


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site.of(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))
    site.make_folders()
    return site


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Path]:
    log = tmp_path / "loud.log"
    command = Command((sys.executable, "-c", LINES), tmp_path)
    popen = spawn(command, "loud", tmp_path, log)
    process = Identity.of(popen.pid)
    assert process is not None
    yield log
    stop_group(process, signal.SIGKILL, 5)
    popen.wait()


def test_a_log_that_grew_begins_anew_under_its_writer(writer: Path) -> None:
    wait_until(lambda: writer.stat().st_size > 2 * MOST, "the log grew")
    log_files.bound(writer, MOST)
    kept = log_files.older(writer)
    assert kept.stat().st_size == MOST
    wait_until(lambda: writer.stat().st_size > 1000, "its writer goes on")
    begun = writer.read_bytes()[:1000]
    assert b"\0" not in begun, "it goes on at the new end, not behind a hole"
    assert begun.splitlines()[1].isdigit()


def test_a_smaller_log_stays_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "quiet.log"
    log_files.bound(log, 5)
    log.write_text("12345")
    log_files.bound(log, 5)
    assert [one.name for one in tmp_path.iterdir()] == ["quiet.log"]


def test_a_log_is_bounded_where_the_older_one_cannot_be_written(tmp_path: Path) -> None:
    log = tmp_path / "loud.log"
    log.write_text("123456")
    log_files.older(log).symlink_to("/dev/full")
    log_files.bound(log, 5)
    assert log.stat().st_size == 0
    assert not log_files.older(log).is_symlink()


def test_the_supervisor_bounds_the_logs_of_what_runs(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "LOOK_S", 0.05)
    monkeypatch.setattr(log_files, "MOST_BYTES", MOST)
    monkeypatch.setattr(supervisor, "catalogue", lambda site: [Loud(site)])
    write_atomically(site.layout.wanted, '["loud"]')
    log = site.layout.log("loud")
    ended = threading.Event()

    class Silent(Orders):
        def __init__(self) -> None:
            """Take no signals: they come to the first thread only."""

        def next(self, deadline: float) -> signal.Signals | None:
            stopped = ended.wait(max(0.0, deadline - time.monotonic()))
            return signal.SIGTERM if stopped else None

    run = threading.Thread(target=Supervisor(site).run, args=(Silent(),))
    run.start()
    try:
        wait_until(lambda: log_files.older(log).exists(), "the log began anew")
    finally:
        ended.set()
        run.join(30)
    state = PlatformState.load(site.layout.state)
    assert state is not None
    assert [one.state for one in state.services] == [State.STOPPED]
    assert log_files.older(log).stat().st_size <= MOST


def test_a_new_life_has_a_log_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "one.log"
    log_files.begin(log)
    log.write_text("first")
    log_files.begin(log)
    assert not log.exists()
    assert log_files.older(log).read_text() == "first"
