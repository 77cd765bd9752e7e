"""Checkpoints when the controller's key changes: the old one counts up to its revocation."""

from collections.abc import Sequence

import pytest

from mesh_events.decisions import MeshRole
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.record import Record
from projections.integrity.chain import chained
from projections.integrity.trusted_prefix import IntegrityError
from projections.replay import replay
from self_service.cli.verification.verifier import verify
from tests import sample_history as story
from tests.memory_log import MemoryLog, key
from tests.signed_log import ORIGIN, signed_over, trusting


@pytest.fixture(scope="module")
def changed() -> tuple[list[Record], int]:
    """A log whose controller's key was replaced, and the offset at which the old one ended."""
    log = MemoryLog()
    story.published(log)
    log.introduce_key(MeshRole.CONTROLLER, "new")
    revoked = log.revoke_key("controller")
    log.controller = "new"
    story.granted(log)
    story.settle(log)
    return log.records, revoked


def by_turns(records: Sequence[Record], revoked: int, late: str) -> list[SignedCheckpoint]:
    """Signed by the old key up to its revocation, and by the key named `late` behind it."""
    signed = signed_over(records, 5)
    return [one if one.body.offset <= revoked else one.body.sign(key(late)) for one in signed]


def codes(records: Sequence[Record], signed: Sequence[SignedCheckpoint]) -> set[str]:
    chain = chained(ORIGIN, signed)
    report = verify(records, key("root").public, key("governor").public, chain=chain)
    return {one.code for one in report.findings}


def test_both_keys_checkpoints_hold_each_in_its_time(changed: tuple[list[Record], int]) -> None:
    records, revoked = changed
    assert codes(records, by_turns(records, revoked, "new")) == set()


def test_what_the_old_key_signs_after_its_revocation_is_named(
    changed: tuple[list[Record], int],
) -> None:
    records, revoked = changed
    assert codes(records, by_turns(records, revoked, "controller")) == {"checkpoint_revoked"}


def test_a_replay_believes_the_new_key_and_not_the_revoked_one(
    changed: tuple[list[Record], int],
) -> None:
    records, revoked = changed
    trusted = trusting(by_turns(records, revoked, "new"))
    assert replay(records, trusted=trusted) == replay(records)
    with pytest.raises(IntegrityError) as found:
        replay(records, trusted=trusting(by_turns(records, revoked, "controller")))
    assert found.value.code == "checkpoint_foreign"
