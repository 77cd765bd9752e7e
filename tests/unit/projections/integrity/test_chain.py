"""Checkpoints as they follow one another: forks are borne, contradictions are not."""

from dataclasses import replace

import pytest

from mesh_events.integrity.checkpoint import SignedCheckpoint
from projections.integrity.chain import Chain, ChainBreakError, chained
from tests.memory_log import MemoryLog, key
from tests.signed_log import ORIGIN, signed_over

RECORDS = MemoryLog().records
SIGNED = signed_over(RECORDS, 5)


def changed(one: SignedCheckpoint, **changes: object) -> SignedCheckpoint:
    return replace(one.body, **changes).sign(key("controller"))


def broken(*found: SignedCheckpoint) -> str:
    with pytest.raises(ChainBreakError) as error:
        chained(ORIGIN, found)
    return error.value.code


def test_the_path_leads_from_the_first_to_the_head() -> None:
    chain = chained(ORIGIN, SIGNED)
    assert chain.path() == chain.by_size() == list(chain) == SIGNED
    assert chain.head == SIGNED[-1]
    assert not chain.add(SIGNED[2])
    assert SIGNED[2] in chain
    assert Chain(ORIGIN).path() == []


def test_a_controller_that_wakes_up_late_makes_a_fork_and_no_break() -> None:
    late = signed_over(RECORDS[:7], 5)[1]
    chain = chained(ORIGIN, [*SIGNED[:3], late, *SIGNED[3:]])
    assert chain.path() == SIGNED
    assert [one.body.size for one in chain.by_size()][:4] == [5, 7, 10, 15]
    # and another one may have gone on behind it
    further = changed(SIGNED[3], previous=late.note.digest)
    assert chained(ORIGIN, [*SIGNED[:2], late, further]).path() == [SIGNED[0], late, further]


def test_the_order_in_which_they_are_found_does_not_matter() -> None:
    """One that was lost in a place is written again behind the later ones."""
    assert chained(ORIGIN, [*SIGNED[2:], *SIGNED[:2]]).path() == SIGNED


def test_one_that_is_missing_breaks_it() -> None:
    assert broken(*SIGNED[:2], *SIGNED[3:]) == "checkpoint_missing"
    assert broken(*SIGNED[1:]) == "checkpoint_missing"


def test_nothing_can_be_believed_behind_one_that_is_missing() -> None:
    chain = chained(ORIGIN, SIGNED[:1])
    chain.begin_anew(SIGNED[2])
    chain.add(SIGNED[3])
    assert chain.head == SIGNED[3]
    assert chain.path() == []


def test_two_roots_of_one_size_break_it() -> None:
    assert broken(*SIGNED[:3], changed(SIGNED[2], root=bytes(32))) == "checkpoints_differ"


def test_one_of_another_log_breaks_it() -> None:
    assert broken(changed(SIGNED[0], origin="other/mesh.governance")) == "checkpoint_foreign"


@pytest.mark.parametrize(
    "changes",
    [{"size": 10}, {"offset": 9}, {"offset": 12}, {"unverified": ((3, 3),)}],
)
def test_one_that_does_not_continue_the_one_before_breaks_it(changes: dict[str, object]) -> None:
    changes = {"root": SIGNED[1].body.root, **changes} if changes == {"size": 10} else changes
    assert broken(*SIGNED[:2], changed(SIGNED[2], **changes)) == "checkpoint_edited"
