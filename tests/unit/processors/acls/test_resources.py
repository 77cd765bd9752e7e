"""Rights on clusters, groups, transactional ids and delegation tokens, and rights of one host."""

from dataclasses import replace

import pytest

from mesh_events.facts import DriftKind
from processors import bootstrap
from processors.clusters import drift
from processors.clusters.drift import Finding, Scene, unexpected
from processors.clusters.rights import Acl, reader
from processors.controllers.flows.starts import Starts
from processors.controllers.rights.wishes import desired
from tests import sample_history as story
from tests.unit.processors.clusters.test_drift import EAST, IMAGE, TOPIC, WISHES

WEST = drift.scene(IMAGE, "west", WISHES, bootstrap.rights())
CLUSTER = "kafka-cluster"
WRITER = f"mesh.link.{story.LINK}.0123abcd"
TRANSACTIONS = f"connect-east-{WRITER}-0"


STARTS = Starts()
STARTS.begin(story.LINK, WRITER)


def found(*acls: Acl, scene: Scene = EAST) -> list[Finding]:
    return list(unexpected(scene, IMAGE, acls, STARTS))


HARMFUL = [
    Acl("NAME", "alter", "cluster", CLUSTER),
    Acl("NAME", "alter-configs", "cluster", CLUSTER),
    Acl("NAME", "cluster-action", "cluster", CLUSTER, host="10.0.0.1"),
    Acl("NAME", "create", "cluster", CLUSTER),
    Acl("NAME", "all", "cluster", CLUSTER),
    Acl("NAME", "read", "group", "north.app.weekly"),
    Acl("NAME", "delete", "group", "north.app.weekly"),
    Acl("NAME", "read", "group", "north.", prefixed=True),
    Acl("NAME", "read", "group", "mesh.governor"),
    Acl("NAME", "write", "transactional-id", "east.orders"),
    Acl("NAME", "two-phase-commit", "transactional-id", "east.orders"),
    Acl("NAME", "describe", "delegation-token", "tok"),
    Acl("NAME", "create-tokens", "user", "User:east"),
    Acl("NAME", "describe-tokens", "user", "User:mesh.governor"),
    Acl("NAME", "read", "topic", TOPIC, host="10.0.0.1"),
    Acl("NAME", "create", "topic", TOPIC),
]
WIDE = [
    Acl("NAME", "read", "group", "*"),
    Acl("NAME", "read", "group", "n", prefixed=True),
    Acl("NAME", "all", "transactional-id", "*"),
    Acl("NAME", "create-tokens", "user", "*"),
]


def of(acl: Acl, principal: str) -> Acl:
    return replace(acl, principal=principal)


@pytest.mark.parametrize("acl", [*HARMFUL, *WIDE], ids=str)
def test_a_strangers_right_on_what_belongs_to_the_mesh_is_found_and_left(acl: Acl) -> None:
    strange = of(acl, "mallory")
    [one] = found(strange)
    assert (one.kind, one.acls) == (DriftKind.FOREIGN_RIGHT, {strange})
    assert not one.repairable


@pytest.mark.parametrize("acl", HARMFUL, ids=str)
def test_a_right_of_a_login_of_the_mesh_is_withdrawn_where_no_grant_explains_it(acl: Acl) -> None:
    own = of(acl, "west.app")
    [one] = found(own)
    assert one.kind is DriftKind.UNGRANTED_RIGHT
    assert one.repairable == [own]


@pytest.mark.parametrize("acl", WIDE, ids=str)
def test_a_right_that_reaches_beyond_the_mesh_is_found_and_left(acl: Acl) -> None:
    [one] = found(of(acl, "west.app"))
    assert one.kind is DriftKind.UNGRANTED_RIGHT
    assert not one.repairable


@pytest.mark.parametrize(
    "acl",
    [
        Acl("registry", "describe", "cluster", CLUSTER),
        Acl("mallory", "idempotent-write", "cluster", CLUSTER),
        Acl("mallory", "read", "group", "mallory.own"),
        Acl("mallory", "read", "group", "northern."),
        Acl("mallory", "describe", "group", "north.app.weekly"),
        Acl("mallory", "write", "transactional-id", "mallory"),
        Acl("mallory", "create-tokens", "user", "User:mallory"),
        Acl("west.app", "read", "group", "legacy"),
        Acl("north.app", "read", "group", "north.app.weekly", host="10.0.0.1"),
    ],
    ids=str,
)
def test_a_right_that_harms_nothing_of_the_mesh_is_not_found(acl: Acl) -> None:
    assert not found(acl)


def test_any_right_of_a_login_of_the_mesh_on_the_cluster_is_withdrawn() -> None:
    own = Acl("west.app", "describe", "cluster", CLUSTER)
    [one] = found(own)
    assert one.repairable == [own]


def test_a_links_own_group_and_transactional_id_are_not_drift() -> None:
    acls = [
        *map(Acl.of, reader(WRITER, TOPIC)),
        Acl(WRITER, "read", "group", WRITER),
        Acl(WRITER, "all", "transactional-id", TRANSACTIONS),
    ]
    assert not found(*acls)
    assert not found(*acls, scene=WEST)


@pytest.mark.parametrize(
    "acl",
    [
        Acl(WRITER, "read", "group", "north.app.weekly"),
        Acl(WRITER, "all", "transactional-id", "east.orders"),
        Acl(WRITER, "read", "topic", TOPIC, host="10.0.0.1"),
        Acl(WRITER, "alter", "cluster", CLUSTER),
    ],
    ids=str,
)
def test_other_rights_of_a_links_writer_are_withdrawn(acl: Acl) -> None:
    [one] = found(acl)
    assert (one.kind, one.repairable) == (DriftKind.UNGRANTED_RIGHT, [acl])


def test_a_strangers_right_on_a_links_transactional_id_is_found() -> None:
    own = Acl(WRITER, "all", "transactional-id", TRANSACTIONS)
    strange = Acl("mallory", "write", "transactional-id", TRANSACTIONS)
    [one] = found(own, strange)
    assert (one.kind, one.acls) == (DriftKind.FOREIGN_RIGHT, {strange})


def test_wishes_are_never_found() -> None:
    wanted = {Acl.of(right) for wish in desired(IMAGE) if wish.wanted for right in wish.bindings}
    assert not found(*(acl for acl in wanted if acl in {Acl.of(one) for one in EAST.known}))
