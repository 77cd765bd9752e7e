"""The platform through starts and stops, on servers of this module's own."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from local_platform import Endpoints, LocalPlatform, PlatformSettings, Progress
from local_platform.supervision.process import Identity, marked
from local_platform.supervision.state import PlatformState, State
from mesh_events.references import resolve
from tests.conftest import new_settings, start
from tests.integration.local_platform.clients import (
    kafka,
    postgres,
    read_record,
    wait_until,
    write_record,
)

pytestmark = pytest.mark.platform

# One server that takes seconds to start and to stop, and one that takes none.
TWO = ("postgres", "kafka-east")
QUICK = ("postgres",)


@pytest.fixture(scope="module")
def own_settings() -> Iterator[PlatformSettings]:
    settings = new_settings()
    yield settings
    LocalPlatform(settings).down()
    shutil.rmtree(settings.home)


@pytest.fixture
def own(own_settings: PlatformSettings) -> LocalPlatform:
    """A running platform of two servers; tests may stop and kill them."""
    platform = LocalPlatform(own_settings, TWO)
    start(platform)
    return platform


@pytest.fixture
def quick(own_settings: PlatformSettings) -> LocalPlatform:
    """The same platform, where it does not matter which servers run."""
    platform = LocalPlatform(own_settings, QUICK)
    start(platform)
    return platform


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children notice Ctrl-C, also in a run that was started in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pids(platform: LocalPlatform) -> dict[str, int | None]:
    return {status.name: status.pid for status in platform.status()}


def test_a_second_up_does_nothing_and_says_so(
    quick: LocalPlatform, own_settings: PlatformSettings
) -> None:
    before, seen = pids(quick), list[Progress]()

    endpoints = quick.up(report=seen.append)

    assert [progress.stage for progress in seen] == ["running"]
    assert pids(quick) == before
    assert endpoints == Endpoints.load(own_settings.home)


def test_data_and_passwords_survive_down_and_up(
    own: LocalPlatform, own_settings: PlatformSettings
) -> None:
    endpoints = Endpoints.load(own_settings.home)
    topic = f"survives-{time.time_ns()}"
    write_record(endpoints, topic, b"survives")
    with postgres(endpoints) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS survives (n int)")

    assert set(TWO) <= set(own.down())
    assert list(marked(own_settings.home)) == []
    assert all(status.state == State.STOPPED for status in own.status())
    assert own.up() == endpoints

    assert read_record(endpoints, topic) == b"survives"
    with postgres(endpoints) as connection:
        connection.execute("SELECT * FROM survives")


def test_down_of_what_does_not_run_stops_nothing(quick: LocalPlatform) -> None:
    quick.down()

    assert quick.down() == []


def test_a_killed_supervisor_leaves_servers_that_up_replaces(
    own: LocalPlatform, own_settings: PlatformSettings
) -> None:
    orphans = kill_supervisor(own, own_settings)
    assert len(orphans) >= len(TWO)

    start(own)

    assert not any(orphan.alive for orphan in orphans)
    assert set(pids(own).values()).isdisjoint({orphan.pid for orphan in orphans})


def test_down_works_after_the_supervisor_was_killed(
    quick: LocalPlatform, own_settings: PlatformSettings
) -> None:
    orphans = kill_supervisor(quick, own_settings)

    assert set(quick.down()) >= set(QUICK)
    assert not any(orphan.alive for orphan in orphans)


def test_an_orphan_that_nobody_recorded_is_found(
    quick: LocalPlatform, own_settings: PlatformSettings
) -> None:
    """A supervisor may be killed between a start and its record."""
    orphans = kill_supervisor(quick, own_settings)
    (own_settings.home / "run" / "state.json").unlink()

    assert set(quick.down()) >= set(QUICK)
    assert not any(orphan.alive for orphan in orphans)


def kill_supervisor(platform: LocalPlatform, settings: PlatformSettings) -> list[Identity]:
    state = PlatformState.load(settings.home / "run" / "state.json")
    assert state is not None
    os.kill(state.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not state.supervisor.alive, "the supervisor has ended")
    orphans = [one.identity for one in platform.status() if one.identity is not None]
    assert orphans
    assert all(orphan.alive for orphan in orphans)
    return orphans


def test_fresh_starts_empty(own: LocalPlatform, own_settings: PlatformSettings) -> None:
    before = Endpoints.load(own_settings.home)
    password = resolve(before.clusters["east"].admin_password)
    write_record(before, "gone", b"gone")

    after = own.up(fresh=True)

    topics = AdminClient(kafka(after, "east")).list_topics(timeout=10).topics
    assert "gone" not in topics
    assert resolve(after.clusters["east"].admin_password) != password


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_starting_leaves_nothing_running(own_settings: PlatformSettings) -> None:
    LocalPlatform(own_settings).down()
    argv = [sys.executable, "-m", "local_platform", "up", "--services", ",".join(TWO)]
    environment = os.environ | own_settings.environment()
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as up:
        wait_until(lambda: bool(list(marked(own_settings.home))), "a first server runs")
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=60)
        assert up.returncode == 130

    assert list(marked(own_settings.home)) == []
    start(LocalPlatform(own_settings, QUICK))


def test_two_who_start_at_once_start_one_mesh(own_settings: PlatformSettings) -> None:
    LocalPlatform(own_settings).down()
    argv = [sys.executable, "-m", "local_platform", "up", "--services", "postgres"]
    environment = os.environ | own_settings.environment()
    with contextlib.ExitStack() as both:
        started = [
            both.enter_context(
                subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        said = [one.communicate(timeout=120)[0] for one in started]
        assert [one.returncode for one in started] == [0, 0]

    assert sum("already running" in text for text in said) == 1
    assert len(list(marked(own_settings.home))) >= 1
    assert sum(name == "postgres" for name, _ in marked(own_settings.home)) <= 1


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_at_any_early_moment_leaves_nothing_running(own_settings: PlatformSettings) -> None:
    """The supervisor may be between its lock and its first state when the caller gives up."""
    LocalPlatform(own_settings).down()
    argv = [sys.executable, "-m", "local_platform", "up", "--services", "postgres"]
    environment = os.environ | own_settings.environment()
    (own_settings.home / "run" / "state.json").unlink(missing_ok=True)
    for delay in (0.3, 0.5, 0.6, 0.7, 0.8, 1.0):
        with subprocess.Popen(
            argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as up:
            with contextlib.suppress(subprocess.TimeoutExpired):
                up.wait(delay)
            up.send_signal(signal.SIGINT)
            code = up.wait(60)
        # the interpreter itself ends by the signal where it came before `main` was called
        assert code in (0, 130, -signal.SIGINT), f"the start was complete or is undone: {delay}"
        if code:
            wait_until(lambda: not list(marked(own_settings.home)), f"all stopped after {delay}")
        LocalPlatform(own_settings).down()
