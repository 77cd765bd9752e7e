"""Fixtures of real servers, started once per run and only for tests that ask for them.

`SDM_TEST_HOME` names a running mesh to use as it is, which saves its start while developing.
"""

import json
import os
import random
import shlex
import shutil
import tempfile

# pytest imports it for a socket that the garbage collector closes. Within another import that is
# `KeyError: <thread id>` there (python/cpython#91351, cured in 3.12).
import tracemalloc  # noqa: F401
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from local_platform import Endpoints, LocalPlatform, PlatformError, PlatformSettings
from local_platform.ports import OFFSETS, is_free, port
from local_platform.services import SERVERS
from tests import shared_spark
from tests.selection import DRAW, are_named, is_long, is_whole, left_out, split

# A run that is killed cannot stop its servers; then they stop by themselves. Long enough for a
# whole run on a machine several times slower than ours: the servers live as long as the run.
LIFETIME_S = 6 * 3600
LINES_SHOWN, LONGEST_LINE = 20, 240
HOME = pytest.StashKey[Path]()
OF_TESTS = {
    # clusters are looked at as often as a worker may, so that tests of drift wait for less
    "SDM_LOOK_S": "6",
    "SDM_CONNECT_IDLE_S": "20",
    # servers of tests live for minutes
    "SDM_QUICK_JAVA": "true",
    # a server takes ten seconds to start, and half a gigabyte
    "SDM_DOMAIN_SPARK_COMMAND": json.dumps(shared_spark.COMMAND),
    # one mesh serves hundreds of domains of tests, some of which write as fast as they can
    "SDM_LOG_QUOTA_KIB_S": "0",
    "SDM_LOG_QUOTA_REQUESTS": "0",
}
"""What the tests' meshes have otherwise than a user's."""


def free_port_base() -> int:
    """Return a base whose every port is free, another one in each run.

    Workers of one run choose from bases of their own: both may look before either has begun.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    bases = list(range(20000 + 200 * worker, 32000, 200 * workers))
    random.SystemRandom().shuffle(bases)
    for base in bases:
        if all(is_free(port(base, listener)) for listener in OFFSETS):
            return base
    pytest.fail("no range of free ports between 20000 and 32000: stop what listens there")


def new_settings() -> PlatformSettings:
    """Return settings of a mesh of this test's own, in a folder that Postgres can reach."""
    home = Path(tempfile.mkdtemp(prefix="sdm-test-"))
    home.chmod(0o755)
    return PlatformSettings(home=home, port_base=free_port_base(), lifetime_s=LIFETIME_S)


def start(platform: LocalPlatform) -> Endpoints:
    """Start a platform, or end the test with its own words where it cannot start."""
    try:
        return platform.up()
    except PlatformError as fault:
        pytest.fail(f"the local platform did not start: {fault}", pytrace=False)


@pytest.fixture(scope="session")
def settings(pytestconfig: pytest.Config) -> Iterator[PlatformSettings]:
    """Settings of the run's mesh; stops it and removes its folder at the end."""
    if given := os.environ.get("SDM_TEST_HOME"):
        pytestconfig.stash[HOME] = Path(given)
        yield PlatformSettings(home=Path(given))
        return
    found = new_settings()
    pytestconfig.stash[HOME] = found.home
    yield found
    LocalPlatform(found).down()
    shutil.rmtree(found.home)


@pytest.fixture(scope="session")
def platform(settings: PlatformSettings) -> Endpoints:
    """The run's servers, without the mesh's own processes."""
    if "SDM_TEST_HOME" in os.environ:
        return Endpoints.load(settings.home)
    return start(LocalPlatform(settings, SERVERS))


@pytest.fixture(scope="session")
def mesh(settings: PlatformSettings, platform: Endpoints) -> Endpoints:
    """The run's servers with a founded mesh and its governor."""
    if "SDM_TEST_HOME" in os.environ:
        return platform
    return start(LocalPlatform(settings))


def pytest_configure() -> None:
    """Have the tests' meshes so; whoever imports this module runs a mesh as users have it."""
    os.environ.update(OF_TESTS)


def pytest_report_header() -> str:
    """Tell what draws the same cases again."""
    return f"all cases: --long; these again: SDM_TEST_DRAW={DRAW}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show how to run a test that failed alone, and what the run's worker said last beside it."""
    report = yield
    if report.failed:
        seed = item.config.getoption("randomly_seed", None)
        order = "" if seed is None else f" --randomly-seed {seed}"
        again = f"SDM_TEST_DRAW={DRAW} ./scripts/test {shlex.quote(item.nodeid)}{order}"
        report.sections.append(("the same test alone", again))
    home = item.config.stash.get(HOME, None)
    if report.failed and home is not None and item.get_closest_marker("platform"):
        said = home / "logs" / "governor.log"
        if said.exists():
            lines = said.read_text(errors="replace").splitlines()[-LINES_SHOWN:]
            lines = [line[:LONGEST_LINE] for line in lines]
            report.sections.append(("the worker's last lines", "\n".join(lines)))
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every test that uses servers, so that `-m "not platform"` leaves them out."""
    if {"settings", "platform", "mesh"} & set(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.platform)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for `--long`; files that take long come first.

    At the end, one side would wait for the other's.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if is_long() or are_named(config.args):
        return
    items[:], left = split(items, DRAW)
    if is_whole():
        files = left_out(Path(__file__).parent, int(DRAW))
        left += [one for one in items if one.path in files]
        items[:] = [one for one in items if one.path not in files]
    config.hook.pytest_deselected(items=left)
