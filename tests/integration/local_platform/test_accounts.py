"""The platform started by an ordinary user: no root, own folders, nothing shared but jars."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from local_platform import LocalPlatform, PlatformSettings
from local_platform.accounts import NOBODY, blocked
from local_platform.services import SERVERS
from local_platform.state import PlatformState, State
from tests.conftest import LIFETIME_S, free_port_base

pytestmark = pytest.mark.platform

# Any account without rights will do; initdb asks that it has a name.
ORDINARY = next(one.pw_uid for one in pwd.getpwall() if one.pw_uid not in {0, NOBODY})
ROOT_FOLDER = Path(__file__).parents[3]


def interpreter() -> str:
    """Return a Python of this version that an ordinary user can start."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if Path(path).exists() and blocked(Path(path).resolve().parent) is None:
            return path
    pytest.skip(f"no {version} on this machine is reachable by an ordinary user")


@pytest.fixture
def ordinary() -> Iterator[PlatformSettings]:
    if os.geteuid() != 0:
        pytest.skip("this run is an ordinary user's already, so every other test shows it")
    home = Path(tempfile.mkdtemp(prefix="sdm-test-user-"))
    os.chown(home, ORDINARY, ORDINARY)
    # the cache is root's: complete, readable, and closed to writing
    LocalPlatform(PlatformSettings(), ["postgres"]).fetch()
    settings = PlatformSettings(
        home=home / "mesh", port_base=free_port_base(), lifetime_s=LIFETIME_S
    )
    yield settings
    LocalPlatform(settings).down()
    shutil.rmtree(home)


def run(settings: PlatformSettings, *arguments: str) -> subprocess.CompletedProcess[str]:
    packages = sysconfig.get_paths()["purelib"]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(settings.home.parent),
        "PYTHONPATH": f"{ROOT_FOLDER}:{packages}",
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        [interpreter(), "-m", "local_platform", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=settings.home.parent,
        env=environment | settings.environment(),
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[],
    )


def test_an_ordinary_user_starts_uses_and_stops_a_mesh(ordinary: PlatformSettings) -> None:
    up = run(ordinary, "up", "--services", ",".join(SERVERS))
    assert up.returncode == 0, up.stdout + up.stderr

    state = PlatformState.load(ordinary.home / "run" / "state.json")
    assert state is not None
    assert {one.name: one.state for one in state.services} == dict.fromkeys(SERVERS, State.READY)
    for one in state.services:
        assert one.pid is not None
        assert psutil.Process(one.pid).uids().real == ORDINARY

    first = state.services[0].pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    down = run(ordinary, "down")
    assert down.returncode == 0, down.stderr
    assert "kafka-east" in down.stdout
    assert not any(one.identity and one.identity.alive for one in state.services)
