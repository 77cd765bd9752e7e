"""The tree against the definition in RFC 9162, written down once more as it stands there."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.integrity.tree import (
    CompactRange,
    Paths,
    consistency_proof,
    is_consistent,
    is_included,
    root_of,
)

LEAVES = [sha256(b"\x00" + number.to_bytes(2, "big")).digest() for number in range(70)]
sizes = st.integers(1, len(LEAVES))


def merkle_tree_hash(leaves: list[bytes]) -> bytes:
    """Section 2.1.1, word by word; the leaves are hashed already."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    left, right = merkle_tree_hash(leaves[:k]), merkle_tree_hash(leaves[k:])
    return sha256(b"\x01" + left + right).digest()


def path_of(m: int, leaves: list[bytes]) -> list[bytes]:
    """Section 2.1.3.1."""
    if len(leaves) == 1:
        return []
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m < k:
        return [*path_of(m, leaves[:k]), merkle_tree_hash(leaves[k:])]
    return [*path_of(m - k, leaves[k:]), merkle_tree_hash(leaves[:k])]


def subproof(m: int, leaves: list[bytes], *, known: bool = True) -> list[bytes]:
    """Section 2.1.4.1."""
    if m == len(leaves):
        return [] if known else [merkle_tree_hash(leaves)]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m <= k:
        return [*subproof(m, leaves[:k], known=known), merkle_tree_hash(leaves[k:])]
    return [*subproof(m - k, leaves[k:], known=False), merkle_tree_hash(leaves[:k])]


def flipped(raw: bytes, bit: int) -> bytes:
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_the_root_is_the_recursive_one_for_every_size() -> None:
    for size in range(len(LEAVES) + 1):
        assert root_of(LEAVES[:size]) == merkle_tree_hash(LEAVES[:size])


def test_the_root_over_the_eight_leaves_that_logs_are_tested_with() -> None:
    """The inputs and roots that implementations of certificate transparency share."""
    inputs = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")
    inputs = (*inputs, "606162636465666768696a6b6c6d6e6f")
    leaves = [sha256(b"\x00" + bytes.fromhex(one)).digest() for one in inputs]
    first = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    last = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    assert root_of(leaves[:1]).hex() == first
    assert root_of(leaves).hex() == last


@given(size=st.integers(0, len(LEAVES)), cuts=st.lists(st.integers(0, len(LEAVES)), max_size=5))
def test_a_range_that_grows_in_any_steps_has_the_same_root(size: int, cuts: list[int]) -> None:
    grown, at = CompactRange(), 0
    for cut in sorted(min(one, size) for one in cuts):
        grown, at = grown.extend(LEAVES[at:cut]), cut
    grown = grown.extend(LEAVES[at:size])
    assert (grown.size, grown.root) == (size, merkle_tree_hash(LEAVES[:size]))
    assert len(grown.nodes) == size.bit_count()


@given(st.data())
def test_an_inclusion_proof_is_that_of_the_rfc_and_holds_for_its_leaf_alone(
    data: st.DataObject,
) -> None:
    size = data.draw(sizes)
    index, other = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    leaves, root = LEAVES[:size], merkle_tree_hash(LEAVES[:size])
    path = Paths(leaves).to(index)
    assert path == path_of(index, leaves)
    assert is_included(leaves[index], index, size, path, root)
    assert is_included(leaves[index], other, size, path, root) is (index == other)
    assert is_included(leaves[other], index, size, path, root) is (index == other)
    assert not is_included(leaves[index], index, size, [*path, root], root)
    assert not is_included(leaves[index], index, size, path[:-1], root) or not path


@pytest.mark.parametrize("size", [64, 65, 128, 129, 300, 511])
def test_the_paths_of_a_tree_are_those_of_each_leaf(size: int) -> None:
    """Inner nodes over many leaves are kept from one path to the next."""
    leaves = [sha256(number.to_bytes(2, "big")).digest() for number in range(size)]
    paths = Paths(leaves)
    order = [*range(0, size, 7), *reversed(range(size))]
    assert [paths.to(one) for one in order] == [path_of(one, leaves) for one in order]


@given(st.data())
def test_any_bit_of_an_inclusion_proof_matters(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, len(LEAVES)))
    index = data.draw(st.integers(0, size - 1))
    leaves, root = LEAVES[:size], merkle_tree_hash(LEAVES[:size])
    path = Paths(leaves).to(index)
    bit, step = data.draw(st.integers(0, 255)), data.draw(st.integers(0, len(path) - 1))
    wrong = [flipped(one, bit) if at == step else one for at, one in enumerate(path)]
    assert not is_included(leaves[index], index, size, wrong, root)
    assert not is_included(flipped(leaves[index], bit), index, size, path, root)
    assert not is_included(leaves[index], index, size, path, flipped(root, bit))


@given(st.data())
def test_a_consistency_proof_is_that_of_the_rfc_and_any_bit_of_it_matters(
    data: st.DataObject,
) -> None:
    second = data.draw(sizes)
    first = data.draw(st.integers(1, second))
    roots = merkle_tree_hash(LEAVES[:first]), merkle_tree_hash(LEAVES[:second])
    path = consistency_proof(LEAVES[:second], first)
    assert path == subproof(first, LEAVES[:second])
    assert is_consistent(first, roots[0], second, roots[1], path)
    bit = data.draw(st.integers(0, 255))
    assert not is_consistent(first, flipped(roots[0], bit), second, roots[1], path)
    assert not is_consistent(first, roots[0], second, flipped(roots[1], bit), path)
    for step in range(len(path)):
        wrong = [flipped(one, bit) if at == step else one for at, one in enumerate(path)]
        assert not is_consistent(first, roots[0], second, roots[1], wrong)
        assert not is_consistent(first, roots[0], second, roots[1], path[:step] + path[step + 1 :])


def test_there_is_no_proof_of_what_is_not_there() -> None:
    with pytest.raises(IndexError):
        Paths(LEAVES[:3]).to(3)
    with pytest.raises(IndexError):
        consistency_proof(LEAVES[:3], 4)
    assert not is_included(LEAVES[0], 1, 1, [], LEAVES[0])
    assert not is_included(LEAVES[0], -1, 1, [], LEAVES[0])
    assert not is_consistent(0, root_of([]), 1, LEAVES[0], [])
    assert not is_consistent(2, root_of(LEAVES[:2]), 1, LEAVES[0], [])
    assert not is_consistent(1, LEAVES[0], 2, root_of(LEAVES[:2]), [])
