"""The platform started by an ordinary user: no root, own folders, nothing shared but jars."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from local_platform import LocalPlatform, PlatformSettings
from local_platform.services import SERVERS
from local_platform.supervision.state import PlatformState, State
from tests import ordinary_user
from tests.conftest import LIFETIME_S, free_port_base

pytestmark = pytest.mark.platform


@pytest.fixture
def ordinary() -> Iterator[PlatformSettings]:
    ordinary_user.require()
    home = Path(tempfile.mkdtemp(prefix="sdm-test-user-"))
    os.chown(home, ordinary_user.UID, ordinary_user.UID)
    # the cache is root's: complete, readable, and closed to writing
    LocalPlatform(PlatformSettings(), ["postgres"]).fetch()
    settings = PlatformSettings(
        home=home / "mesh", port_base=free_port_base(), lifetime_s=LIFETIME_S
    )
    yield settings
    LocalPlatform(settings).down()
    shutil.rmtree(home)


def run(settings: PlatformSettings, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = settings.home.parent
    return ordinary_user.run(
        "local_platform", *arguments, home=home, timeout=240, **settings.environment()
    )


def test_an_ordinary_user_starts_and_stops_servers(ordinary: PlatformSettings) -> None:
    up = run(ordinary, "up", "--services", ",".join(SERVERS))
    assert up.returncode == 0, up.stdout + up.stderr

    state = PlatformState.load(ordinary.home / "run" / "state.json")
    assert state is not None
    assert {one.name: one.state for one in state.services} == dict.fromkeys(SERVERS, State.READY)
    for one in state.services:
        assert one.pid is not None
        assert psutil.Process(one.pid).uids().real == ordinary_user.UID

    first = state.services[0].pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    down = run(ordinary, "down")
    assert down.returncode == 0, down.stderr
    assert "kafka-east" in down.stdout
    assert not any(one.identity and one.identity.alive for one in state.services)
