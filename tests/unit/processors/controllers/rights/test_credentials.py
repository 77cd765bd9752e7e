"""The credentials controller: logins are issued, rotated, and those of others are left alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from immutables import Map

from mesh_events import facts, intents
from mesh_events.facts import CredentialsIssued, EffectFailed
from processors.clusters import logins
from processors.clusters.secrets import SecretStore
from processors.controllers.rights import credentials
from processors.controllers.rights.credentials import CredentialsController
from projections.identity import LOGIN_TAKEN
from projections.image import Image
from tests import sample_history as story
from tests.links.memory import MemoryCluster
from tests.memory_log import MemoryLog

APP = "east.app"


@dataclass
class LeaderLease:
    """A leadership whose reports stand on a log in memory."""

    log: MemoryLog
    epoch: int = 0
    last_report: int = -1
    told: list[facts.Fact] = field(default_factory=list)

    def check(self) -> None:
        return

    def report(self, fact: facts.Fact) -> None:
        self.told.append(fact)
        self.last_report = self.log.append(fact, by="controller")

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Any:
        del cause, step, generation, correlation
        return self.log.make(EffectFailed, "mesh", **_FAILED).meta


_FAILED = {"subject": "", "effect": "", "cluster": "", "generation": 0, "reason": ""}


class World:
    """Domain east with an application on cluster east, and a controller over clusters in memory."""

    def __init__(self, folder: Path) -> None:
        self.log = MemoryLog()
        self.log.start_governor()
        for name in ("east", "west"):
            self.log.operator(intents.ClusterRegistered, **story.cluster(name))
        self.log.operator(intents.DomainRegistered, **story.domain("east", "east"))
        self.log.govern()
        self.log.say(intents.ApplicationRegistered, "east", application=APP)
        self.log.govern()
        self.cluster = MemoryCluster("east")
        self.secrets = SecretStore(folder)
        self.leadership = LeaderLease(self.log)

    def keep(self) -> None:
        """One round of a controller that has just started."""
        controller = CredentialsController(lambda _, __: self.cluster, self.secrets)
        controller.reconcile(self.log.image, self.leadership)

    def stored(self) -> str:
        place = self.secrets.reference("east", APP).removeprefix("file:")
        return Path(place).read_text("ascii")

    @property
    def image(self) -> Image:
        return self.log.image

    def told(self, kind: type[facts.Fact]) -> list[Any]:
        return [one for one in self.leadership.told if isinstance(one, kind)]

    def rotate(self) -> None:
        self.log.say(intents.CredentialsRequested, "east", principal=APP, cluster="east")
        self.log.govern()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_login_is_made_and_its_password_stored(world: World) -> None:
    world.keep()
    assert world.cluster.logins[APP] == world.stored()
    assert {one.principal for one in world.told(CredentialsIssued)} == {"east", "east.intents", APP}


def test_a_login_that_was_there_before_the_mesh_keeps_its_password(world: World) -> None:
    world.cluster.logins[APP] = "theirs"
    world.keep()
    world.keep()
    assert world.cluster.logins[APP] == "theirs"
    assert {one.principal for one in world.told(CredentialsIssued)} == {"east", "east.intents"}
    failed = world.told(EffectFailed)[0]
    assert (failed.code, failed.subject) == (LOGIN_TAKEN, APP)
    login = world.image.identity.credentials[APP, "east"]
    assert login.failure_code == LOGIN_TAKEN
    assert "use another name" in (login.failure or "")


def test_a_login_that_its_administrator_hands_over_becomes_the_meshs(world: World) -> None:
    world.cluster.logins[APP] = "theirs"
    world.keep()
    place = Path(world.secrets.prepared("east", APP))
    assert str(place) in world.told(EffectFailed)[0].reason
    world.cluster.logins[APP] = place.read_text("ascii")
    world.keep()
    assert world.told(CredentialsIssued)[-1].principal == APP
    assert world.cluster.logins[APP] == world.stored()
    assert world.image.identity.credentials[APP, "east"].failure is None


def test_a_rotation_sets_another_password(world: World) -> None:
    world.keep()
    before = world.stored()
    world.rotate()
    world.keep()
    assert world.cluster.logins[APP] == world.stored() != before


def test_a_rotation_needs_no_stored_password_where_the_log_says_it_was_issued(
    world: World,
) -> None:
    world.keep()
    Path(world.secrets.reference("east", APP).removeprefix("file:")).unlink()
    world.rotate()
    world.keep()
    assert world.cluster.logins[APP] == world.stored()


@pytest.mark.parametrize("place", ["after-password", "after-effect"])
def test_a_crash_between_password_and_fact_locks_nobody_out(
    world: World, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def crash(name: str) -> None:
        if name == place and APP in world.cluster.logins:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(credentials, "crash_point", crash)
        with pytest.raises(KeyboardInterrupt):
            world.keep()
    assert APP in world.cluster.logins
    world.keep()
    assert APP in {one.principal for one in world.told(CredentialsIssued)}
    assert world.cluster.logins[APP] == world.stored()
    assert not world.told(EffectFailed)


def test_two_workers_that_begin_the_same_set_the_same_password(tmp_path: Path) -> None:
    one, other = SecretStore(tmp_path), SecretStore(tmp_path)
    password = one.prepare("east", APP)
    assert other.prepare("east", APP) == password
    one.promote("east", APP, password)
    other.promote("east", APP, password)
    assert other.known("east", APP) == [password]
    assert one.prepare("east", APP) != password


def test_a_login_that_the_mesh_has_closed_may_be_opened_again() -> None:
    cluster = MemoryCluster("east")
    cluster.logins[APP] = None
    logins.require_ours(cluster, APP, (), place="-")
    assert Map(cluster.logins) == Map({APP: None})


def test_a_domain_that_registers_very_many_applications_delays_its_own(world: World) -> None:
    for number in range(20):
        world.log.say(intents.ApplicationRegistered, "east", application=f"east.a{number}")
    world.log.operator(intents.DomainRegistered, **story.domain("north", "east"))
    world.log.govern()
    world.log.say(intents.ApplicationRegistered, "north", application="north.app")
    world.log.govern()
    world.keep()
    order = [one.principal for one in world.told(CredentialsIssued)]
    assert [order.index(name) < 6 for name in ("north", "north.app", "north.intents")] == [True] * 3
    assert len(order) == 26
