"""A disk without room for `run/state.json`: services are kept, and the file tells it later."""

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_platform.errors import NotReadyError
from local_platform.platform import LocalPlatform
from local_platform.services.base import Command, Service
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision import log_files, state, supervisor
from local_platform.supervision.process import Identity
from local_platform.supervision.state import PlatformState, ServiceStatus, State, StatusFile
from local_platform.supervision.supervisor import Orders, Supervisor
from local_platform.supervision.watch import Patience, Watch
from mesh_events.files import write_atomically
from tests.integration.local_platform.clients import wait_until


class Disk:
    """The disk of the state: full while somebody says so."""

    def __init__(self) -> None:
        self.is_full = False

    def write(self, path: Path, text: str) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write_atomically(path, text)


class Sleeper(Service):
    """Sleeps; fails its check while `error` is set."""

    error = ""

    def __init__(self, site: Site, name: str = "script") -> None:
        super().__init__(site)
        self.name = name

    def command(self) -> Command:
        return Command((sys.executable, "-c", "import time; time.sleep(600)"), cwd=self.data)

    def probe(self) -> None:
        return

    def check(self) -> None:
        if self.error:
            raise NotReadyError(self.error)


class Told(Orders):
    """Gives the orders that the test gives, to whichever thread asks."""

    def __init__(self) -> None:
        self.given: list[signal.Signals] = []
        self._changed = threading.Condition()

    def give(self, order: signal.Signals) -> None:
        with self._changed:
            self.given.append(order)
            self._changed.notify_all()

    def next(self, deadline: float) -> signal.Signals | None:
        with self._changed:
            self._changed.wait_for(lambda: self.given, max(0.0, deadline - time.monotonic()))
            return self.given.pop(0) if self.given else None


class Home:
    """A home with a supervisor in a thread of this process."""

    def __init__(self, settings: PlatformSettings) -> None:
        self.settings, self.site = settings, Site.of(settings)
        self.site.make_folders()
        self.orders = Told()
        self._run = threading.Thread(target=Supervisor(self.site).run, args=(self.orders,))

    def begin(self) -> None:
        self.want("script")
        self._run.start()
        wait_until(lambda: self.written("script") == State.READY, "it is ready", timeout_s=30)

    def want(self, *names: str) -> None:
        write_atomically(self.site.layout.wanted, json.dumps(names))

    def status(self, name: str = "script") -> ServiceStatus | None:
        """As the file tells it."""
        found = PlatformState.load(self.site.layout.state)
        services = found.services if found is not None else ()
        return next((one for one in services if one.name == name), None)

    def written(self, name: str) -> State | None:
        found = self.status(name)
        return None if found is None else found.state

    def close(self) -> None:
        if self._run.ident is not None:
            self.orders.give(signal.SIGTERM)
            self._run.join(30)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk()
    monkeypatch.setattr(state, "write_atomically", found.write)
    return found


@pytest.fixture
def home(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr(log_files, "LOOK_S", 0.05)
    monkeypatch.setattr(
        supervisor, "catalogue", lambda site: [Sleeper(site), Sleeper(site, "other")]
    )
    found = Home(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))
    yield found
    disk.is_full = False
    found.close()


def test_what_dies_on_a_full_disk_is_started_again_and_the_file_tells_it_once_there_is_room(
    home: Home, disk: Disk
) -> None:
    home.begin()
    before = home.status()
    assert before is not None
    assert before.pid is not None
    disk.is_full = True
    os.kill(before.pid, signal.SIGKILL)
    assert before.identity is not None
    wait_until(lambda: not before.identity.alive, "it has died")

    shown = LocalPlatform(home.settings).status()
    assert [(one.state, one.pid) for one in shown] == [(State.RESTARTING, None)]
    disk.is_full = False

    def is_again() -> bool:
        after = home.status()
        assert after is not None
        return after.state == State.READY and after.restarts == 1

    wait_until(is_again, "it is ready again", timeout_s=30)
    after = home.status()
    assert after is not None
    assert after.identity is not None
    assert after.identity.alive


def test_an_order_on_a_full_disk_does_not_end_the_supervisor(home: Home, disk: Disk) -> None:
    home.begin()
    disk.is_full = True
    home.want("script", "other")
    home.orders.give(signal.SIGHUP)
    wait_until((home.site.layout.data / "other").exists, "it is heeded", timeout_s=30)
    disk.is_full = False
    wait_until(lambda: home.written("other") == State.READY, "the other is ready", timeout_s=30)


def test_a_supervisor_that_could_never_write_its_state_ends(home: Home, disk: Disk) -> None:
    home.want("script")
    home.orders.give(signal.SIGTERM)
    disk.is_full = True
    with pytest.raises(OSError, match="No space left"):
        Supervisor(home.site).run(home.orders)
    assert not (home.site.layout.data / "script").exists()


def test_a_watch_goes_on_where_its_report_cannot_be_written(home: Home, disk: Disk) -> None:
    status_file, server = StatusFile(home.site.layout.state), Sleeper(home.site)
    status_file.add([ServiceStatus(name="script", state=State.READY, log=Path("log"))], ["script"])

    def report(error: str | None) -> None:
        told = State.READY if error is None else State.NOT_ANSWERING
        status_file.update("script", state=told, detail=error or "")

    quick = Patience(pause_s=0.01, answer_s=5, failures=1)
    own = Identity.own()
    watch = Watch(server, own, report, lambda: True, lambda _: None, quick)
    watch.start()
    try:
        disk.is_full, server.error = True, "no memory"
        wait_until(lambda: status_file.status("script").detail == "no memory", "it is reported")
        disk.is_full = False
        status_file.write_again()
        assert home.written("script") == State.NOT_ANSWERING
        server.error = ""
        wait_until(lambda: home.written("script") == State.READY, "it answers again")
    finally:
        watch.end()
        watch.join(10)


def test_a_start_does_not_take_a_service_for_ready_whose_process_has_ended(home: Home) -> None:
    ended = Identity(pid=os.getpid(), started="another-boot/1000")
    log = Path("log")
    known = (
        ServiceStatus(name="script", state=State.READY, log=log, **ended.model_dump()),
        ServiceStatus(name="job", state=State.READY, log=log, detail="done"),
    )
    own = PlatformState(supervisor=Identity.own(), services=known)
    write_atomically(home.site.layout.state, own.model_dump_json())
    found = next(LocalPlatform(home.settings)._states(10))
    assert [one.state for one in found.services] == [State.RESTARTING, State.READY]
