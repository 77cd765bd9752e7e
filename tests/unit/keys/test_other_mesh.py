"""What was signed for one mesh counts in no other, whatever names and keys they share."""

import pytest

from mesh_events import codec, intents
from mesh_events.outcome import decision_in
from mesh_events.record import FaultCode, Record
from mesh_events.signing import MeshKeys
from projections.deciding.verdict import Quarantined
from self_service.cli.verification.verifier import verify
from tests import sample_history as story
from tests.memory_log import MemoryLog, key

PRODUCTION, STAGING = key("root").public, key("staging root").public


@pytest.fixture
def production() -> MemoryLog:
    return started("root")


@pytest.fixture
def staging() -> MemoryLog:
    return started("staging root")


def started(root: str) -> MemoryLog:
    """A mesh that differs from the other one by its root key only."""
    log = MemoryLog(root=root)
    story.published(log)
    return log


def test_the_meshes_have_the_same_names_and_keys(production: MemoryLog, staging: MemoryLog) -> None:
    roots = (production.image.identity, staging.image.identity)
    assert [one.root for one in roots] == [PRODUCTION, STAGING]
    production_keys, staging_keys = (set(one.keys) - {one.root} for one in roots)
    assert production_keys == staging_keys
    assert roots[0].domains == roots[1].domains


def test_an_intent_of_another_mesh_is_set_aside(production: MemoryLog, staging: MemoryLog) -> None:
    said = staging.say(intents.ApplicationRegistered, "east", application="east.app")
    staging.govern()
    assert "east.app" in staging.image.identity.applications

    copied = production.put(staging.records[said])
    verdict = production.verdict(copied)
    production.govern()

    assert isinstance(verdict, Quarantined)
    assert verdict.code is FaultCode.BAD_SIGNATURE
    assert "in this mesh" in verdict.reason
    assert "east.app" not in production.image.identity.applications


def test_a_decision_of_another_mesh_has_no_effect(
    production: MemoryLog, staging: MemoryLog
) -> None:
    """The next decision of both would be the same record but for the mesh."""
    offsets = {
        log.say(intents.ApplicationRegistered, "east", application="east.app")
        for log in (production, staging)
    }
    assert len(offsets) == 1
    decision = staging.records[staging.accept(offsets.pop())]

    copied = production.put(decision)

    assert "east.app" not in production.image.identity.applications
    assert fault(production, copied) is FaultCode.BAD_SIGNATURE
    keys = MeshKeys(PRODUCTION, key("governor").public)
    assert decision_in(decision, production.image.schemas, keys) is None


def test_a_root_record_of_another_mesh_changes_no_key(
    production: MemoryLog, staging: MemoryLog
) -> None:
    before = production.image.identity
    revoked = staging.revoke_key("governor", by=staging.root)
    copies = [staging.records[0], staging.records[revoked]]
    faults = [fault(production, production.put(one)) for one in copies]
    assert production.image.identity == before
    assert faults == [FaultCode.BAD_SIGNATURE] * 2


def test_a_log_holds_under_its_own_root_only(staging: MemoryLog) -> None:
    governor = key("governor").public
    assert not verify(staging.records, STAGING, governor).findings
    codes = {one.code for one in verify(staging.records, PRODUCTION, governor).findings}
    assert codes == {"foreign_root"}


def test_a_signature_is_bound_to_the_mesh(staging: MemoryLog) -> None:
    record: Record = staging.records[-1]
    assert codec.has_valid_signature(record, STAGING)
    assert not codec.has_valid_signature(record, PRODUCTION)
    assert not codec.has_valid_signature(record, None)


def fault(log: MemoryLog, offset: int) -> FaultCode | None:
    """Why the undecided record at an offset counts for nothing; it is the last one of its run."""
    found = log.image.intents.unusable.fault_at(offset)
    return found.code if found is not None else None
