"""The governor dies at the worst moments: nothing said is lost, doubled or half done.

A mesh of its own, without Spark and Connect and without the platform's governor: here the tests
start the workers, and know where each of them ends.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from local_platform import LocalPlatform, PlatformSettings
from mesh_events.emit import Receipt
from mesh_events.intents import AccessGranted, AccessRevoked, ApplicationRegistered, ProductUpdated
from tests.conftest import new_settings, start
from tests.faults.oracle import Told, told
from tests.faults.worker import REPOSITORY, WorkerProcess
from tests.mesh_kit import Domain, Mesh, eventually, fresh
from tests.plain_reader import Plain

pytestmark = [pytest.mark.platform, pytest.mark.slow]
SERVICES = ("kafka-east", "kafka-west", "registry", "bootstrap")
TAKEOVER_S = 240
"""Far above what is measured: two seconds of session and the start of a process."""


@dataclass
class Stage:
    """A mesh whose workers the test starts: at most two at a time, on two ports."""

    kit: Mesh
    settings: PlatformSettings
    workers: list[WorkerProcess] = field(default_factory=list)

    def worker(self, crash_at: str | None = None) -> WorkerProcess:
        """Start a worker on a port that no living one has."""
        taken = {each.port for each in self.living()}
        port = next(
            self.settings.port_base + offset
            for offset in (80, 84)
            if self.settings.port_base + offset not in taken
        )
        self.workers.append(WorkerProcess(self.settings.home, port, crash_at))
        return self.workers[-1]

    def living(self) -> list[WorkerProcess]:
        return [each for each in self.workers if each.process.poll() is None]

    def governed(self) -> WorkerProcess:
        """The one worker that governs, started if there is none."""
        found = self.living()[0] if self.living() else self.worker()
        found.wait_ready()
        return found

    def stop(self) -> None:
        for each in self.living():
            each.stop()

    @property
    def plain(self) -> Plain:
        return Plain(self.kit.admin_login().config(), self.kit.endpoints.registry_url)


@pytest.fixture(scope="module")
def mesh_without_governor() -> Iterator[Stage]:
    settings = new_settings()
    platform = LocalPlatform(settings, SERVICES)
    endpoints = start(platform)
    kit = Mesh(endpoints, settings.home)
    found = Stage(kit, settings)
    try:
        yield found
    finally:
        found.stop()
        kit.close()
        platform.down()
        shutil.rmtree(settings.home)


@pytest.fixture
def stage(mesh_without_governor: Stage) -> Iterator[Stage]:
    yield mesh_without_governor
    for each in mesh_without_governor.living()[1:]:
        each.stop()


@dataclass
class Business:
    """An owner and a buyer in the middle of things: one request open, one grant in force.

    Of `quiet`, another product, nothing is said but the first word: a row that was lost with it
    is written by nobody but the controller of rows.
    """

    stage: Stage
    owner: Domain
    buyer: Domain
    product: str
    quiet: str
    open: str
    granted: str
    said: list[Receipt] = field(default_factory=list)

    def say_all(self) -> None:
        """One intent of every kind that has an effect somewhere."""
        owner, product = self.owner, self.product
        self.said += [
            owner.say(ProductUpdated, product=self.quiet, description="once"),
            owner.say(ProductUpdated, product=product, description="first"),
            owner.say(AccessGranted, product=product, request=self.open),
            owner.say(AccessRevoked, product=product, request=self.granted, reason="enough"),
            owner.say(ProductUpdated, product=product, description="second"),
            self.buyer.say(ApplicationRegistered, application=f"{self.buyer.name}.{fresh('n')}"),
        ]

    def all_done(self) -> bool:
        image = self.stage.kit.image()
        access = image.access.requests
        return (
            not image.intents.undecided
            and access[self.open].active_at is not None
            and access[self.granted].removed_at is not None
            and all(found.issued for found in image.identity.credentials.values())
        )


@pytest.fixture
def business(stage: Stage) -> Business:
    stage.governed()
    owner, buyer = stage.kit.register_domain("owner"), stage.kit.register_domain("buyer")
    product, _ = owner.product()
    granted = buyer.request(product, buyer.application("granted").name)
    owner.grant(product, granted)
    opened = buyer.request(product, buyer.application("open").name)
    quiet, _ = owner.product("quiet")
    return Business(stage, owner, buyer, product, quiet, opened, granted)


def rows_of_a_replay(stage: Stage) -> dict[str, object]:
    environment = {**os.environ, "SDM_HOME": str(stage.settings.home), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.replayed"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        check=True,
        timeout=120,
    )
    return dict(json.loads(done.stdout)["rows"])


def assert_all_is_right(business: Business) -> Told:
    """Every word decided, rows as a replay has them, rights as granted."""
    stage = business.stage
    eventually(business.all_done, "everything decided and done")
    # the rows controller repairs behind the governor's back, a moment later
    eventually(lambda: stage.plain.rows() == rows_of_a_replay(stage), "rows equal a replay")
    found = told(stage.plain)
    assert {receipt.offset for receipt in business.said} <= found.decided.keys()
    assert {found.decided[each.offset]["type"] for each in business.said} == {"IntentAccepted"}
    applications = {each["application"] for each in found.accepted("ApplicationRegistered")}
    rights = {pair for pair in stage.plain.readers() if pair[0] in applications}
    assert rights == found.entitled()
    return found


def behind_the_replay(stage: Stage) -> int:
    """Records that a worker folds before it decides anything: without snapshots, all of them."""
    shutil.rmtree(stage.kit.home / "snapshots", ignore_errors=True)
    return len(list(stage.plain.messages("mesh.governance")))


POINTS: dict[str, Callable[[Stage], int]] = {
    "after-start": lambda _: 1,
    # behind the replay comes the start, then the first decision
    "after-fold": lambda stage: behind_the_replay(stage) + 2,
    # all that is undecided may be decided by one append
    "before-append": lambda _: 1,
    # the first acknowledgement is that of the start
    "before-ack": lambda _: 3,
    "after-append": lambda _: 1,
    "after-row": lambda _: 1,
    "after-effect": lambda _: 1,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("point", POINTS)
def test_a_governor_that_dies_leaves_nothing_undone(point: str, business: Business) -> None:
    stage = business.stage
    stage.stop()
    business.say_all()
    dying = stage.worker(f"{point}:{POINTS[point](stage)}")
    assert dying.wait_end() == -signal.SIGKILL
    business.said.append(
        business.owner.say(ProductUpdated, product=business.product, tags=["orphaned"])
    )
    stage.governed()

    found = assert_all_is_right(business)
    # whoever comes next folds what stands there, and says nothing a second time
    assert {found.written[each.offset] for each in business.said} == {1}


def test_a_worker_that_slept_through_its_replacement_counts_for_nothing(
    business: Business, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = business.stage
    sleeper = stage.governed()
    slept_at = sleeper.wait_ready()["epoch"]
    sleeper.send(signal.SIGSTOP)
    business.say_all()
    began = time.monotonic()
    second = stage.worker()
    second.wait_ready(TAKEOVER_S)
    eventually(business.all_done, "the second worker has done everything")
    report(capsys, f"a stopped governor was replaced after {time.monotonic() - began:.1f} s")

    sleeper.send(signal.SIGCONT)
    business.said.append(
        business.owner.say(ProductUpdated, product=business.product, tags=["woken"])
    )
    found = assert_all_is_right(business)

    assert found.epoch > slept_at
    # what the sleeper was about to say may still arrive: under its old epoch, for nothing
    said = {each.offset for each in business.said}
    assert {each["epoch"] for each in found.void if each["offset"] in said} <= {slept_at}
    assert slept_at not in {found.decided[offset]["epoch"] for offset in said}
    # whichever of them governs: when it goes, the other one is as good as new
    eventually(lambda: len(governing(stage)) == 1, "one of the two governs")
    first = governing(stage)[0]
    other = second if first is sleeper else sleeper
    first.stop()
    assert other.wait_ready(TAKEOVER_S)["epoch"] > found.epoch


def governing(stage: Stage) -> list[WorkerProcess]:
    """The workers that say that they govern."""
    return [each for each in stage.living() if (each.describe() or {}).get("ready")]


def test_a_second_worker_takes_over_from_a_killed_one(
    business: Business, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = business.stage
    active = stage.governed()
    standby = stage.worker()
    reached = active.wait_ready()["offset"]
    eventually(
        lambda: (standby.describe() or {"offset": -1})["offset"] >= reached,
        "the standby has folded what the active one has",
        60,
    )
    active.send(signal.SIGKILL)
    began = time.monotonic()
    business.say_all()
    business.stage.kit.decided(business.said[0].offset, TAKEOVER_S)
    report(
        capsys, f"kill -9 of the governor to the next decision: {time.monotonic() - began:.1f} s"
    )

    assert active.wait_end() == -signal.SIGKILL
    assert_all_is_right(business)


def report(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n  measured: {text}\n")
