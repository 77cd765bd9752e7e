"""The rights controller and what somebody else does to a cluster: told once, repaired or left."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from mesh_events import facts
from mesh_events.connectors import ConnectorAdded
from mesh_events.errors import InfrastructureError
from mesh_events.facts import DriftFound, DriftKind, Fact, Remedy
from mesh_events.intents import (
    AccessGranted,
    AccessRevoked,
    ApplicationRegistered,
    DomainQuarantined,
)
from mesh_events.meta import Meta, derived_id
from processors import bootstrap
from processors.clusters.drift import Policy
from processors.clusters.kafka import AT_ONCE
from processors.clusters.rights import Acl, Binding, Operation, Resource, reader
from processors.controllers import gates
from processors.controllers.gates import Gates
from processors.controllers.lanes import Job, SerialLanes
from processors.controllers.rights import rights as rights_room
from processors.controllers.rights.rights import RightsController
from processors.controllers.rights.unexpected import UnexpectedAcls
from processors.controllers.topics import drift_reporter
from projections.access import State
from projections.drift import Left, all_left
from projections.image import Image
from projections.lineage.readers import readers
from tests import sample_history as story
from tests.links.memory import MemoryCluster
from tests.memory_log import MemoryLog, at

TOPIC = "east.users"
RIGHT = sorted(reader("north.app", TOPIC))
KNOWN_LONG = drift_reporter.WINDOW_S + 1


@dataclass
class Leadership:
    """A leadership over a log in memory."""

    log: MemoryLog
    reported: list[Fact] = field(default_factory=list)
    epoch = 0

    def check(self) -> None:
        return

    def report(self, fact: Fact) -> None:
        self.reported.append(fact)
        self.log.append(fact, by="controller")

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Meta:
        return Meta(
            id=derived_id(cause, step, generation),
            time=at(self.log.now),
            actor="mesh.controller",
            domain="mesh",
            correlation=correlation,
            causation=cause,
        )


class World:
    """East and west in memory, with the rights controller and a log; `time` in seconds."""

    def __init__(self, patch: pytest.MonkeyPatch, policy: Policy) -> None:
        self.log, self.time = MemoryLog(), 1000.0
        story.published(self.log)
        self.request = story.granted(self.log, "north")
        story.settle(self.log)
        self.clusters = {name: MemoryCluster(name) for name in ("east", "west")}
        self.leadership = Leadership(self.log)
        # the story's controller has told that they are applied
        self.clusters["east"].grant(RIGHT)
        patch.setattr(rights_room.time, "monotonic", lambda: self.time)
        self.policy = policy
        self.begin()
        self.look()
        assert self.told() == []

    def begin(self) -> None:
        """Another worker, which remembers nothing."""
        unexpected = UnexpectedAcls(bootstrap.rights(), self.policy)
        self.controller = RightsController(self._admin, None, self.policy, unexpected)

    def _admin(self, _: Image, name: str) -> Any:
        return self.clusters[name]

    @property
    def east(self) -> MemoryCluster:
        return self.clusters["east"]

    def look(self, times: int = 1, seconds: float = 11.0) -> None:
        for _ in range(times):
            self.time += seconds
            self.controller.reconcile(self.log.image, self.leadership)  # type: ignore[arg-type]

    def told(self) -> list[tuple[DriftKind, Remedy, tuple[str, ...]]]:
        """What was told of drift since the last call."""
        drifts = [fact for fact in self.leadership.reported if isinstance(fact, DriftFound)]
        self.leadership.reported.clear()
        return [(one.drift, one.remedy, tuple(one.bindings)) for one in drifts]

    @property
    def left(self) -> dict[str, Left]:
        return {subject: left for (_, subject, _), left in all_left(self.log.image.drifts)}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch, Policy.REPAIR)


@pytest.fixture
def reporting(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch, Policy.REPORT)


def test_a_first_application_of_rights_is_no_drift(world: World) -> None:
    """The domains' own rights were never told as applied before the first look."""
    assert Acl("east", "all", "topic", "east.", prefixed=True) in world.east.acls()
    world.look(3)
    assert world.told() == []


def test_what_a_quarantine_takes_from_many_applications_is_taken_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        world.log.say(ApplicationRegistered, "north", application=f"north.a{number}")
    world.log.govern()
    world.look()
    principals = {"north", "north.intents", "north.app", *(f"north.a{one}" for one in range(30))}
    assert principals <= {one.principal for one in world.east.rights()}
    calls, withdraw = list[set[str]](), world.east.withdraw

    def counted(rights: Any) -> None:
        asked = list(rights)
        calls.append({one.principal for one in asked})
        withdraw(asked)

    monkeypatch.setattr(world.east, "withdraw", counted)
    world.log.operator(DomainQuarantined, domain="north", reason="hostile")
    world.log.govern()
    world.look()
    assert calls == [principals]
    removed = [fact for fact in world.leadership.reported if isinstance(fact, facts.AclRemoved)]
    assert len(removed) > 30


@pytest.mark.parametrize("seconds", [rights_room._TOGETHER_S, 0])
def test_what_was_revoked_is_gone_before_any_of_it_is_told(
    seconds: float, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much it is; a later revocation has its turn at the next look."""
    for number in range(3):
        world.log.say(ApplicationRegistered, "north", application=f"north.a{number}")
    world.log.govern()
    world.look()
    monkeypatch.setattr(rights_room, "AT_ONCE", 2)
    monkeypatch.setattr(rights_room, "_TOGETHER_S", seconds)
    world.log.operator(DomainQuarantined, domain="north", reason="hostile")
    world.log.govern()
    world.leadership.reported.clear()
    looks = 0
    while [one for one in world.east.rights() if one.principal.startswith("north")]:
        assert world.leadership.reported == []
        world.look()
        looks += 1
        assert not set(RIGHT) & world.east.bindings, "those at products of others go first"
    assert looks == 1 if seconds else looks > 1
    world.look()
    removed = [fact for fact in world.leadership.reported if isinstance(fact, facts.AclRemoved)]
    assert len(removed) > 3


def test_a_quarantine_takes_what_connectors_read_with_the_other_rights(world: World) -> None:
    config = {"connector.class": "some.Sink", "topics": TOPIC}
    said = {"connector": "north.files", "application": "north.app", "config": config}
    world.log.say(ConnectorAdded, "north", **said)
    world.log.govern()
    principal = "mesh.connect.north.files"
    group = Binding(principal, Operation.READ, Resource.GROUP, "connect-north.files")
    write = Binding(principal, Operation.WRITE, Resource.TOPIC, "north.out")
    mark = Binding(principal, Operation.DESCRIBE, Resource.TOPIC, "north.out")
    held = {*reader(principal, TOPIC), write, mark, group}
    others = reader("somebody", TOPIC)
    world.east.grant([*held, *others])
    world.look()
    assert held <= world.east.bindings
    world.log.operator(DomainQuarantined, domain="north", reason="hostile")
    world.log.govern()
    world.look()
    # their controller finds by these what there is to end
    assert held & world.east.bindings == {mark, group}
    assert others <= world.east.bindings


def test_a_quarantine_takes_ten_thousand_rights_in_parts_behind_the_revocations_of_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty sinks of two hundred topics each hold so many; Kafka takes no such request."""
    config = {"connector.class": "some.Sink", "topics": TOPIC}
    said = {"connector": "north.files", "application": "north.app", "config": config}
    world.log.say(ConnectorAdded, "north", **said)
    world.log.govern()
    world.look()
    principal = "mesh.connect.north.files"
    held = {
        Binding(principal, Operation.READ, Resource.TOPIC, f"north.{number}")
        for number in range(10_200)
    }
    world.east.grant(held)
    taken = list[set[Binding]]()
    withdraw = world.east.withdraw

    def take(rights: Iterable[Binding]) -> None:
        taken.append(set(rights))
        assert len(taken[-1]) <= 2 * AT_ONCE
        withdraw(taken[-1])

    monkeypatch.setattr(world.east, "withdraw", take)
    world.log.operator(DomainQuarantined, domain="north", reason="hostile")
    story.answer(world.log, AccessRevoked, world.request, reason="r")
    world.log.govern()
    world.look()
    assert set(RIGHT) <= taken[0]
    assert held <= set().union(*taken)
    assert not held & world.east.bindings


def test_a_missing_right_is_given_back_and_told_each_time_it_goes(world: World) -> None:
    lines = tuple(str(binding) for binding in RIGHT)
    for _ in range(2):
        world.east.withdraw(RIGHT)
        world.look(3)
        assert set(RIGHT) <= world.east.bindings
        assert world.told() == [(DriftKind.RIGHT_MISSING, Remedy.REPAIRED, lines)]
    assert not world.left


def test_a_revoked_right_that_returns_is_withdrawn_and_told(world: World) -> None:
    story.answer(world.log, AccessRevoked, world.request, reason="r")
    world.log.govern()
    world.look(2)
    assert world.told() == []
    world.east.grant(RIGHT[:1])
    world.look(2)
    assert not set(RIGHT) & world.east.bindings
    assert world.told() == [(DriftKind.RIGHT_RETURNED, Remedy.REPAIRED, (str(RIGHT[0]),))]


@pytest.mark.parametrize("policy", list(Policy))
def test_a_second_revocation_of_the_same_right_is_no_drift_of_the_first(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, policy)
    story.answer(world.log, AccessRevoked, world.request, reason="r")
    world.look(2)
    again = story.granted(world.log, "north")
    world.look(2)
    assert set(RIGHT) <= world.east.bindings
    story.answer(world.log, AccessRevoked, again, reason="r")
    world.look(2)
    assert not set(RIGHT) & world.east.bindings
    assert world.log.image.access.requests[again].state is State.REVOKED
    assert world.told() == []
    assert not world.left


def test_who_takes_a_right_again_and_again_does_not_fill_the_log(world: World) -> None:
    for _ in range(20):
        world.east.withdraw(RIGHT)
        world.look()
        assert set(RIGHT) <= world.east.bindings
    assert len(world.told()) == drift_reporter.BURST
    world.look(seconds=KNOWN_LONG)
    [late] = [fact for fact in world.leadership.reported if isinstance(fact, DriftFound)]
    assert (late.remedy, late.untold) == (Remedy.REPAIRED, 20 - drift_reporter.BURST - 1)
    world.told()
    world.look(seconds=KNOWN_LONG)
    assert world.told() == []


def test_many_strangers_do_not_fill_the_log_and_are_all_told_in_time(world: World) -> None:
    for number in range(drift_reporter.MOST + 5):
        world.east.make(Acl(f"stranger{number:03}", "read", "topic", TOPIC))
    world.look(10)
    assert len(world.told()) == drift_reporter.MOST
    world.look(3, seconds=KNOWN_LONG)
    assert len(world.told()) == 5
    assert len(world.left) == drift_reporter.MOST + 5


def test_rights_of_what_a_domain_stopped_hide_no_stranger(world: World) -> None:
    for number in range(2 * drift_reporter.MOST):
        job = f"mesh.connect.east.c{number:03}"
        world.east.grant([Binding(job, Operation.WRITE, Resource.TOPIC, "east.", prefixed=True)])
    world.look(3)
    assert len(world.told()) == drift_reporter.MOST
    world.east.make(Acl("mallory", "read", "topic", TOPIC))
    world.look(3)
    assert "principal/mallory" in world.left


def test_under_report_what_somebody_changed_is_told_and_left(reporting: World) -> None:
    reporting.east.withdraw(RIGHT)
    reporting.look(3)
    lines = tuple(str(binding) for binding in RIGHT)
    assert reporting.told() == [(DriftKind.RIGHT_MISSING, Remedy.LEFT, lines)]
    assert not set(RIGHT) & reporting.east.bindings
    reporting.east.grant(RIGHT)
    reporting.look(2)
    assert reporting.told() == [(DriftKind.RIGHT_MISSING, Remedy.ENDED, lines)]
    assert not reporting.left


def test_under_report_a_revocation_is_carried_out(reporting: World) -> None:
    story.answer(reporting.log, AccessRevoked, reporting.request, reason="r")
    reporting.log.govern()
    reporting.look(2)
    assert not set(RIGHT) & reporting.east.bindings
    removed = [one for one in reporting.leadership.reported if isinstance(one, facts.AclRemoved)]
    assert [one.subject for one in removed] == [reporting.request]
    reporting.east.grant(RIGHT)
    reporting.look(2)
    assert [one[:2] for one in reporting.told()] == [(DriftKind.RIGHT_RETURNED, Remedy.LEFT)]
    assert set(RIGHT) <= reporting.east.bindings


def test_a_worker_with_the_other_policy_repairs_what_was_left(reporting: World) -> None:
    reporting.east.withdraw(RIGHT)
    reporting.look(2)
    reporting.told()
    reporting.policy = Policy.REPAIR
    reporting.begin()
    reporting.look(3)
    assert [one[1] for one in reporting.told()] == [Remedy.REPAIRED]
    assert set(RIGHT) <= reporting.east.bindings
    assert not reporting.left


STRANGE = [
    Acl("mallory", "read", "topic", TOPIC),
    Acl("mallory", "read", "topic", "*"),
    Acl("mallory", "write", "topic", "eas", prefixed=True),
    Acl("mallory", "alter-configs", "topic", "mesh.governance"),
    Acl("*", "read", "topic", TOPIC),
    Acl("mallory", "read", "topic", TOPIC, host="10.0.0.1"),
    Acl("north.app", "read", "topic", TOPIC, denies=True),
]


@pytest.mark.parametrize("acl", STRANGE, ids=str)
def test_a_strangers_acl_is_told_once_also_by_later_workers_and_never_touched(
    world: World, acl: Acl
) -> None:
    kind = DriftKind.FOREIGN_DENIAL if acl.denies else DriftKind.FOREIGN_RIGHT
    world.east.make(acl)
    world.look()
    assert world.told() == []  # the image may have been older than what was seen
    world.look(3)
    assert world.told() == [(kind, Remedy.LEFT, (str(acl),))]
    world.begin()
    world.look(4)
    assert world.told() == []
    assert acl in world.east.acls()


def test_a_strangers_acl_that_goes_and_comes_back_is_told_again(world: World) -> None:
    acl = STRANGE[-1]
    told = []
    for _ in range(2):
        world.east.strange.add(acl)
        world.look(3, seconds=KNOWN_LONG)
        world.east.strange.clear()
        world.look(3, seconds=KNOWN_LONG)
        told += [remedy for _, remedy, _ in world.told()]
    assert told == [Remedy.LEFT, Remedy.ENDED] * 2


def test_another_acl_of_the_same_stranger_is_told_too(world: World) -> None:
    one, two = STRANGE[0], STRANGE[1]
    world.east.make(one)
    world.look(3)
    world.east.make(two)
    world.look(3)
    assert [lines for _, _, lines in world.told()] == [(str(one),), (str(two), str(one))]
    assert world.left["principal/mallory"].bindings == {str(one), str(two)}


def test_a_right_of_the_meshs_own_principal_without_a_grant_is_withdrawn(world: World) -> None:
    named = Acl("west.app", "read", "topic", TOPIC)
    wide = Acl("west.app", "read", "topic", "east", prefixed=True)
    for acl in (named, wide):
        world.east.make(acl)
    world.look(4)
    assert named not in world.east.acls()
    assert wide in world.east.acls()
    assert world.told() == [
        (DriftKind.UNGRANTED_RIGHT, Remedy.REPAIRED, (str(named),)),
        (DriftKind.UNGRANTED_RIGHT, Remedy.LEFT, (str(wide),)),
    ]


@pytest.mark.parametrize(
    "acl",
    [
        Acl("west.app", "alter", "cluster", "kafka-cluster"),
        Acl("west.app", "read", "group", "north.app.weekly", host="10.0.0.1"),
        Acl("west.app", "write", "transactional-id", "east.orders"),
        Acl("west.app", "describe", "delegation-token", "tok"),
        Acl("west.app", "read", "topic", TOPIC, host="10.0.0.1"),
    ],
    ids=str,
)
def test_an_acl_of_any_resource_or_host_without_a_grant_is_withdrawn(
    world: World, acl: Acl
) -> None:
    world.east.make(acl)
    world.look(4)
    assert acl not in world.east.acls()
    assert world.told() == [(DriftKind.UNGRANTED_RIGHT, Remedy.REPAIRED, (str(acl),))]


def test_under_report_a_right_without_a_grant_stays(reporting: World) -> None:
    acl = Acl("west.app", "read", "topic", TOPIC)
    reporting.east.make(acl)
    reporting.look(3)
    assert acl in reporting.east.acls()
    assert [one[:2] for one in reporting.told()] == [(DriftKind.UNGRANTED_RIGHT, Remedy.LEFT)]


def test_a_right_that_a_grant_explains_by_the_second_look_is_no_drift(world: World) -> None:
    """Another controller acts on a newer image than the one that this look had."""
    acl = Acl("mallory.app", "read", "topic", TOPIC)
    world.east.make(acl)
    world.look()
    world.east.strange.clear()
    world.east.bindings -= {binding for binding in [acl.binding()] if binding}
    world.look(3)
    assert world.told() == []


def test_a_cluster_that_does_not_answer_ends_no_finding(world: World) -> None:
    world.east.make(STRANGE[0])
    world.look(3)
    world.told()
    world.east.down = True
    world.look(3)
    assert world.told() == []
    assert world.left
    world.east.down = False
    world.look(3)
    assert world.told() == []


class OneLane(SerialLanes):
    """As in a thread of its own: a round that comes while a job is under way starts none."""

    busy = False

    def run(self, jobs: Mapping[str, Job], image: Image, leadership: Any) -> None:
        if not self.busy:
            self.busy = True
            super().run(jobs, image, leadership)
            self.busy = False


def watched(world: World, patch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> list[str]:
    """Let something happen while the rights at east are listed; what is asked of east, in order."""
    unexpected = UnexpectedAcls(bootstrap.rights(), world.policy)
    world.controller = RightsController(world._admin, OneLane(), world.policy, unexpected)
    rights, acls, withdraw = world.east.rights, world.east.acls, world.east.withdraw
    asked: list[str] = []

    def list_rights(**given: Any) -> Any:
        found = rights(**given)
        if not given:
            meanwhile()
            world.controller.reconcile(world.log.image, world.leadership)  # type: ignore[arg-type]
        return found

    def list_acls(**given: Any) -> Any:
        asked.append("look")
        return acls(**given)

    def take(given: Any) -> None:
        asked.append("withdraw")
        withdraw(given)

    patch.setattr(world.east, "rights", list_rights)
    patch.setattr(world.east, "acls", list_acls)
    patch.setattr(world.east, "withdraw", take)
    return asked


def test_a_revocation_waits_for_no_look_for_drift(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"product": TOPIC, "request": world.request, "reason": "over"}

    def revoke() -> None:
        if world.log.image.access.requests[world.request].state is State.ACTIVE:
            world.log.say(AccessRevoked, "east", **about)
            world.log.govern()

    asked = watched(world, monkeypatch, revoke)
    world.look()
    assert asked == []
    world.look()
    assert not set(RIGHT) & world.east.bindings
    assert asked == ["withdraw", "look"]


def test_drift_is_looked_for_where_rights_change_all_the_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = itertools.count()

    def register() -> None:
        world.log.say(ApplicationRegistered, "north", application=f"north.more{next(count)}")
        world.log.govern()

    asked = watched(world, monkeypatch, register)
    world.east.make(STRANGE[0])
    seconds = 5.0
    world.look(int(2 * rights_room.PUT_OFF_S / seconds) + 2, seconds=seconds)
    assert asked.count("look") == 2
    assert (DriftKind.FOREIGN_RIGHT, Remedy.LEFT, (str(STRANGE[0]),)) in world.told()


@pytest.mark.parametrize("given", [True, False])
def test_rights_that_a_worker_gave_before_it_died_are_told_before_they_are_withdrawn(
    world: World, given: bool
) -> None:
    request = story.request(world.log, "west")
    story.answer(world.log, AccessGranted, request)
    story.activated(world.log)
    right = reader("west.app", TOPIC)
    west = world.clusters["west"]
    if given:
        west.grant(sorted(right))
    world.log.say(AccessRevoked, "east", product=TOPIC, request=request, reason="over")
    world.log.govern()
    at_once = [one.right for one in readers(world.log.image, world.log.image.catalog[TOPIC])]
    assert request in at_once, "nobody knows yet whether it had the right"
    world.begin()
    world.look()
    access = world.log.image.access.requests[request]
    assert access.state is State.REVOKED
    assert [end is not None for _, end in access.enforced] == [True] * given
    kinds = [
        type(one) for one in world.leadership.reported if getattr(one, "subject", "") == request
    ]
    assert kinds == [facts.AclApplied, facts.AclRemoved][not given :]
    assert not right & west.bindings


def test_a_crash_after_the_repair_leaves_it_made_and_untold(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights come before reports: see the controller's `_repair`."""

    class DiedError(BaseException):
        pass

    def die(place: str) -> None:
        raise DiedError(place)

    world.east.withdraw(RIGHT)
    monkeypatch.setattr(rights_room, "crash_point", die)
    with pytest.raises(DiedError):
        world.look()
    monkeypatch.setattr(rights_room, "crash_point", lambda _: None)
    world.begin()
    world.look(3)
    assert set(RIGHT) <= world.east.bindings
    assert world.told() == []


def test_rights_are_read_once_nobody_gives_them_by_an_older_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, Policy.REPAIR)
    done: list[str] = []

    class Noted(Gates):
        def __call__(self, cluster: str) -> Any:
            done.append(f"gate of {cluster}")
            return super().__call__(cluster)

    rights = world.east.rights

    def read(**by: Any) -> Any:
        done.append("rights of east")
        return rights(**by)

    world.east.rights = read  # type: ignore[method-assign]
    world.controller = RightsController(world._admin, None, Policy.REPAIR, gates=Noted())
    world.look()
    assert done.index("gate of east") < done.index("rights of east")


def test_a_gate_is_one_clusters_own_and_is_waited_for_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates, "PATIENCE_S", 0.05)
    found = Gates()
    for _ in range(2):
        with found("east"), found("west"):
            with pytest.raises(InfrastructureError, match="given on cluster east") as told:
                found("east").__enter__()
            assert told.value.retriable
