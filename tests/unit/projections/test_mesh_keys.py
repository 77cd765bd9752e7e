"""Keys of the mesh itself, changed by the root on the log: no decision, no way back."""

import pytest

from mesh_events import intents
from mesh_events.decisions import MeshRole
from projections.identity import Role
from tests import sample_history as story
from tests.memory_log import MemoryLog, key, open_offsets


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


@pytest.mark.parametrize("role", [MeshRole.OPERATOR, MeshRole.GOVERNOR, MeshRole.CONTROLLER])
def test_a_new_key_counts_from_its_introduction_beside_the_old_one(
    log: MemoryLog, role: MeshRole
) -> None:
    at = log.introduce_key(role, "new")
    for name in ("new", role.lower()):
        assert log.image.identity.has_role(key(name).public, Role(role.lower()))
    assert log.image.identity.keys[key("new").public].since == at


def test_decisions_under_a_revoked_key_are_set_aside_and_those_under_the_new_one_count(
    log: MemoryLog,
) -> None:
    log.introduce_key(MeshRole.GOVERNOR, "new")
    log.revoke_key("governor")
    said = log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.accept(said)
    assert "east.app" not in log.image.identity.applications
    log.governor = "new"
    log.start_governor()
    log.govern()
    assert "east.app" in log.image.identity.applications
    assert not log.image.intents.undecided


def test_what_was_decided_before_the_revocation_stays(log: MemoryLog) -> None:
    before = log.image
    log.revoke_key("governor")
    assert log.image.catalog == before.catalog


@pytest.mark.parametrize("by", ["operator", "governor", "controller", "east", "stranger"])
def test_only_the_root_changes_the_meshs_keys(log: MemoryLog, by: str) -> None:
    before = log.image.identity
    offsets = {
        log.introduce_key(MeshRole.GOVERNOR, "east", by=by),
        log.revoke_key("governor", by=by),
    }
    assert log.image.identity == before
    assert offsets <= set(open_offsets(log.image))


def test_a_revoked_key_never_comes_back(log: MemoryLog) -> None:
    """Anybody who may write can append a copy of the root's own words."""
    introduced = log.introduce_key(MeshRole.CONTROLLER, "new")
    log.revoke_key("new")
    log.put(log.records[introduced])
    log.introduce_key(MeshRole.CONTROLLER, "new")
    assert not log.image.identity.has_role(key("new").public, Role.CONTROLLER)


def test_a_known_key_gets_no_second_role(log: MemoryLog) -> None:
    before = log.image.identity
    log.introduce_key(MeshRole.GOVERNOR, "east")
    log.introduce_key(MeshRole.GOVERNOR, "root")
    log.introduce_key(MeshRole.UNKNOWN, "new")
    assert log.image.identity == before


def test_the_root_can_take_a_domains_key_away_and_not_its_own(log: MemoryLog) -> None:
    log.revoke_key("east")
    log.revoke_key("root")
    identity = log.image.identity
    assert not identity.has_role(key("east").public, Role.DOMAIN)
    assert identity.has_role(key("root").public, Role.ROOT)


@pytest.mark.parametrize("decided", [False, True])
def test_a_key_that_the_root_revokes_while_its_registration_waits_never_counts(
    log: MemoryLog, decided: bool
) -> None:
    """Nobody would revoke it again, and who had it spoke for the domain."""
    thief, proof = key("thief").public, log.proof("thief", "east")
    fields = {"domain": "east", "public_key": thief, "proof": proof}
    offset = log.say(intents.KeyRegistered, "east", **fields)
    basis = log.image.offset
    log.revoke_key("thief")
    if decided:
        # judged before the revocation, and appended behind it
        log.accept(offset, basis=basis)
    else:
        log.govern()
    assert not log.image.identity.is_in_force(thief)
    assert log.image.identity.keys[thief].revoked is not None
    assert (log.image.identity.keys[thief].domain == "east") is decided
