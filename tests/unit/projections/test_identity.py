"""The fold of keys, clusters, domains, applications and credentials: state 1 + event = state 2."""

from dataclasses import replace

import pytest

from mesh_events import facts, intents
from mesh_events.decisions import MeshFounded
from projections import identity
from projections.identity import (
    Application,
    Cluster,
    Credentials,
    Domain,
    Identity,
    Key,
    Role,
)
from tests import sample_history as story
from tests.memory_log import MemoryLog, key

LOG = MemoryLog(founded=False)
ROOT, EAST = key("root").public, key("east").public
FOUNDED = identity.founded(
    identity.rooted(Identity(), ROOT),
    LOG.make(
        MeshFounded,
        "mesh",
        mesh="paper",
        governance_cluster="hub",
        operator_key="O",
        governor_key="G",
        controller_key="K",
    ),
    34,
)
EAST_REGISTERED = LOG.make(intents.DomainRegistered, "mesh", **story.domain("east", "one"))
WITH_EAST = identity.domain_registered(FOUNDED, EAST_REGISTERED, 50)


def test_the_first_signer_becomes_root() -> None:
    assert dict(identity.rooted(Identity(), ROOT).keys) == {
        ROOT: Key(ROOT, Role.ROOT, "mesh", since=0)
    }


def test_the_root_names_the_keys_of_the_mesh() -> None:
    assert (FOUNDED.mesh, FOUNDED.governance_cluster) == ("paper", "hub")
    roles = {public: (found.role, found.domain) for public, found in FOUNDED.keys.items()}
    assert roles == {
        ROOT: (Role.ROOT, "mesh"),
        "O": (Role.OPERATOR, "mesh"),
        "G": (Role.GOVERNOR, "mesh"),
        "K": (Role.CONTROLLER, "mesh"),
    }


def test_a_cluster_registered_again_has_the_new_address_and_generation() -> None:
    first = LOG.make(intents.ClusterRegistered, "mesh", **story.cluster("one"))
    second = LOG.make(
        intents.ClusterRegistered, "mesh", **{**story.cluster("one"), "bootstrap_servers": "b:1"}
    )
    state = identity.cluster_registered(FOUNDED, first, 40)
    state = identity.cluster_registered(state, second, 41)
    assert dict(state.clusters) == {"one": Cluster("one", "b:1", "admin", "file:/secrets/one", 41)}


def test_a_domain_brings_its_key_and_wants_a_login_at_home_and_two_at_the_log() -> None:
    assert dict(WITH_EAST.domains) == {"east": Domain("east", "", "team-east", "one", 50)}
    assert WITH_EAST.keys[EAST] == Key(EAST, Role.DOMAIN, "east", since=50)
    assert dict(WITH_EAST.credentials) == {
        ("east", "one"): Credentials("east", "one", 50),
        ("east", "hub"): Credentials("east", "hub", 50),
        ("east.intents", "hub"): Credentials("east.intents", "hub", 50),
    }


def test_a_domain_at_home_on_the_governance_cluster_wants_both_logins_there() -> None:
    event = LOG.make(intents.DomainRegistered, "mesh", **story.domain("east", "hub"))
    wanted = identity.domain_registered(FOUNDED, event, 50).credentials
    assert set(wanted) == {("east", "hub"), ("east.intents", "hub")}


def test_a_revoked_key_is_remembered_but_holds_no_role() -> None:
    added = LOG.make(intents.KeyRegistered, "east", domain="east", public_key="second", proof="")
    ended = LOG.make(intents.KeyRevoked, "east", domain="east", public_key="second", reason="lost")
    state = identity.key_registered(WITH_EAST, added, 60)
    assert state.has_role("second", Role.DOMAIN)
    state = identity.key_revoked(state, ended, 61)
    assert state.key_of("second") == Key("second", Role.DOMAIN, "east", since=60, revoked=61)
    assert not state.has_role("second", Role.DOMAIN)
    assert state.has_role(EAST, Role.DOMAIN)


def test_nobody_has_a_role_without_a_signature() -> None:
    assert not any(WITH_EAST.has_role(None, role) for role in Role)
    assert WITH_EAST.key_of(None) is None


def test_an_application_wants_a_login_at_home() -> None:
    event = LOG.make(intents.ApplicationRegistered, "east", application="east.app")
    state = identity.application_registered(WITH_EAST, event, 70)
    assert dict(state.applications) == {"east.app": Application("east.app", "", 70)}
    assert state.credentials[("east.app", "one")] == Credentials("east.app", "one", 70)


def issued(generation: int) -> facts.CredentialsIssued:
    return LOG.make(
        facts.CredentialsIssued,
        "mesh",
        principal="east",
        cluster="one",
        generation=generation,
        reference="file:/secrets/one/east",
    )


def test_issued_credentials_of_the_wanted_generation_count() -> None:
    state = identity.credentials_issued(WITH_EAST, issued(50))
    assert state.credentials[("east", "one")] == Credentials(
        "east", "one", 50, issued=50, reference="file:/secrets/one/east"
    )


@pytest.mark.parametrize("generation", [49, 51])
def test_issued_credentials_of_another_generation_change_nothing(generation: int) -> None:
    assert identity.credentials_issued(WITH_EAST, issued(generation)) is WITH_EAST


def test_credentials_that_nobody_wants_change_nothing() -> None:
    stray = issued(50).model_copy(update={"principal": "stranger"})
    assert identity.credentials_issued(WITH_EAST, stray) is WITH_EAST


def test_a_rotation_waits_for_new_credentials_and_keeps_the_old_reference() -> None:
    asked = LOG.make(intents.CredentialsRequested, "east", principal="east", cluster="one")
    state = identity.credentials_issued(WITH_EAST, issued(50))
    state = identity.credentials_requested(state, asked, 80)
    assert state.credentials[("east", "one")] == Credentials(
        "east", "one", 80, issued=None, reference="file:/secrets/one/east"
    )
    assert identity.credentials_issued(state, issued(50)) is state


def applied(subject: str, generation: int) -> facts.AclApplied:
    return LOG.make(
        facts.AclApplied,
        "mesh",
        subject=subject,
        cluster="one",
        generation=generation,
        bindings=[],
    )


def test_a_domains_own_rights_are_noted_by_cluster() -> None:
    state = identity.rights_applied(WITH_EAST, applied("domain/east", 50))
    assert dict(state.domains["east"].rights) == {"one": 50}


def test_an_applications_own_rights_are_noted_by_cluster() -> None:
    event = LOG.make(intents.ApplicationRegistered, "east", application="east.app")
    state = identity.application_registered(WITH_EAST, event, 70)
    after = identity.rights_applied(state, applied("application/east.app", 70))
    assert dict(after.applications["east.app"].rights) == {"one": 70}
    assert replace(after, applications=state.applications) == state


@pytest.mark.parametrize(
    ("subject", "generation"),
    [
        ("domain/east", 49),
        ("domain/west", 50),
        ("application/east", 50),
        ("application/east.app", 50),
        ("east", 50),
        ("018f0000-0000-7000-8000-000000000000", 50),
    ],
)
def test_rights_of_another_subject_or_generation_change_nothing(
    subject: str, generation: int
) -> None:
    assert identity.rights_applied(WITH_EAST, applied(subject, generation)) is WITH_EAST
