"""A key comes in only with a proof that whoever brings it holds the private key."""

from typing import Any

import pytest

from mesh_events import intents
from mesh_events.decisions import MeshKeyIntroduced, MeshRole
from mesh_events.record import FaultCode
from mesh_events.signing import is_proven
from projections.deciding.verdict import Accepted, Rejected, Verdict
from projections.identity import Role
from tests import sample_history as story
from tests.memory_log import MemoryLog, key

ROOT = key("root").public
NEW, OTHER = key("new"), key("somebody else's")


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def proofs() -> list[str]:
    """What is no proof that east holds NEW in this mesh."""
    return [
        "",
        "x" * 86,
        "é" * 86,
        OTHER.prove(ROOT, "east"),
        NEW.prove(ROOT, "west"),
        NEW.prove(ROOT, "mesh/governor"),
        NEW.prove(OTHER.public, "east"),
        NEW.prove(ROOT, "east") + "=",
        NEW.prove(ROOT, "east")[:-1],
    ]


def registered(
    log: MemoryLog, proof: str, public: str = NEW.public, domain: str = "east"
) -> Verdict:
    fields = {"domain": domain, "public_key": public, "proof": proof}
    return log.verdict(log.say(intents.KeyRegistered, domain, **fields))


def test_a_key_with_its_own_proof_is_registered(log: MemoryLog) -> None:
    assert registered(log, NEW.prove(ROOT, "east")) == Accepted()
    log.govern()
    assert log.image.identity.has_role(NEW.public, Role.DOMAIN)


@pytest.mark.parametrize("proof", proofs())
def test_a_domain_registers_no_key_that_it_does_not_hold(log: MemoryLog, proof: str) -> None:
    verdict = registered(log, proof)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "invalid_proof"


@pytest.mark.parametrize("proof", proofs())
def test_no_domain_joins_with_a_key_that_it_does_not_hold(log: MemoryLog, proof: str) -> None:
    fields: dict[str, Any] = {"domain": "south", "owner": "team", "cluster": "east"}
    offset = log.operator(intents.DomainRegistered, **fields, public_key=NEW.public, proof=proof)
    verdict = log.verdict(offset)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "invalid_proof"


def test_a_proof_that_stands_on_the_log_is_of_no_use_to_another_domain(log: MemoryLog) -> None:
    """East's own proof, copied before it was decided."""
    proof = NEW.prove(ROOT, "east")
    theirs = log.say(
        intents.KeyRegistered, "west", domain="west", public_key=NEW.public, proof=proof
    )
    verdict = log.verdict(theirs)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "invalid_proof"
    assert registered(log, proof) == Accepted()


@pytest.mark.parametrize("role", [MeshRole.OPERATOR, MeshRole.GOVERNOR, MeshRole.CONTROLLER])
def test_the_root_brings_in_no_key_without_its_proof(log: MemoryLog, role: MeshRole) -> None:
    before = log.image.identity
    other_role = MeshRole.CONTROLLER if role is MeshRole.OPERATOR else MeshRole.OPERATOR
    for proof in ("", NEW.prove(ROOT, "mesh"), NEW.prove(ROOT, f"mesh/{other_role.lower()}")):
        event = log.make(MeshKeyIntroduced, "mesh", role=role, public_key=NEW.public, proof=proof)
        offset = log.append(event, by="root")
        fault = log.image.intents.unusable.fault_at(offset)
        assert fault is not None
        assert fault.code is FaultCode.INVALID_PROOF
    assert log.image.identity == before
    log.introduce_key(role, "new")
    assert log.image.identity.has_role(NEW.public, Role(role.lower()))


def test_nobody_takes_a_new_key_of_the_mesh_for_a_domain(log: MemoryLog) -> None:
    """Who sees the root's record before it is folded knows the key and the mesh's proof."""
    offset = log.introduce_key(MeshRole.GOVERNOR, "new")
    introduced = log.event_at(offset)
    assert isinstance(introduced, MeshKeyIntroduced)
    log.records.pop()
    assert not is_proven(ROOT, "east", NEW.public, introduced.proof)
