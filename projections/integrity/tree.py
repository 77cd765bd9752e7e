"""The Merkle tree of RFC 9162, section 2.1, over leaf hashes: roots, proofs, their verification.

Every hash is 32 bytes of SHA-256; `mesh_events.integrity.leaf` makes that of a leaf.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

EMPTY_ROOT = sha256(b"").digest()
"""The root of the tree without leaves."""
_NODE = b"\x01"
_FEW = 64
"""Nodes over so few leaves are computed again rather than kept."""


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees."""
    return sha256(_NODE + left + right).digest()


@dataclass(frozen=True, slots=True)
class CompactRange:
    """The first `size` leaves of a tree, as no more than what its growth needs.

    `nodes` are the roots of the perfect subtrees from left to right, one for each bit of `size`.
    """

    size: int = 0
    nodes: tuple[bytes, ...] = ()

    def extend(self, leaves: Iterable[bytes]) -> "CompactRange":
        """The range with more leaf hashes behind it."""
        size, nodes = self.size, list(self.nodes)
        for leaf in leaves:
            grown, bits = leaf, size
            while bits & 1:
                grown = sha256(_NODE + nodes.pop() + grown).digest()
                bits >>= 1
            nodes.append(grown)
            size += 1
        return CompactRange(size, tuple(nodes))

    @property
    def root(self) -> bytes:
        """The Merkle tree hash."""
        if not self.nodes:
            return EMPTY_ROOT
        found = self.nodes[-1]
        for node in reversed(self.nodes[:-1]):
            found = node_hash(node, found)
        return found


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over some leaf hashes."""
    return CompactRange().extend(leaves).root


class Paths:
    """The audit paths of a tree's leaves; each inner node over many leaves is computed once."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self._leaves = leaves
        self._nodes: dict[tuple[int, int], bytes] = {}

    def to(self, index: int) -> list[bytes]:
        """The audit path of leaf `index` (RFC 9162, 2.1.3.1).

        Raises IndexError unless 0 <= index < number of leaves.
        """
        if not 0 <= index < len(self._leaves):
            raise IndexError(f"no leaf {index} in a tree of {len(self._leaves)}")
        path: list[bytes] = []
        low, high = 0, len(self._leaves)
        while high - low > 1:
            middle = low + _split(high - low)
            if index < middle:
                path.append(self._root(middle, high))
                high = middle
            else:
                path.append(self._root(low, middle))
                low = middle
        path.reverse()
        return path

    def _root(self, low: int, high: int) -> bytes:
        if high - low <= _FEW:
            return root_of(self._leaves[low:high])
        if (known := self._nodes.get((low, high))) is None:
            middle = low + _split(high - low)
            known = node_hash(self._root(low, middle), self._root(middle, high))
            self._nodes[low, high] = known
        return known


def is_included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `path` proves that leaf hash `leaf` is number `index` of `size` (2.1.3.2)."""
    if not 0 <= index < size:
        return False
    first, last, found = index, size - 1, leaf
    for step in path:
        if last == 0:
            return False
        if first & 1 or first == last:
            found = node_hash(step, found)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found = node_hash(found, step)
        first, last = first >> 1, last >> 1
    return last == 0 and found == root


def consistency_proof(leaves: Sequence[bytes], first: int) -> list[bytes]:
    """That the tree over `leaves` continues the one over its first `first` leaves (2.1.4.1).

    Raises IndexError unless 0 < first <= number of leaves.
    """
    if not 0 < first <= len(leaves):
        raise IndexError(f"no tree of {first} in one of {len(leaves)}")
    path: list[bytes] = []
    low, high, known = 0, len(leaves), True
    while first != high:
        middle = low + _split(high - low)
        if first <= middle:
            path.append(root_of(leaves[middle:high]))
            high = middle
        else:
            path.append(root_of(leaves[low:middle]))
            low, known = middle, False
    if not known:
        path.append(root_of(leaves[low:high]))
    path.reverse()
    return path


def is_consistent(
    first: int, first_root: bytes, second: int, second_root: bytes, path: Sequence[bytes]
) -> bool:
    """Whether `path` proves that the second tree continues the first one (2.1.4.2).

    `first` and `second` are their sizes.
    """
    if not 0 < first <= second:
        return False
    if first == second:
        return not path and first_root == second_root
    steps = list(path) if first & (first - 1) else [first_root, *path]
    if not steps:
        return False
    left, right = first - 1, second - 1
    while left & 1:
        left, right = left >> 1, right >> 1
    old = new = steps[0]
    for step in steps[1:]:
        if right == 0:
            return False
        if left & 1 or left == right:
            old, new = node_hash(step, old), node_hash(step, new)
            while not left & 1 and left:
                left, right = left >> 1, right >> 1
        else:
            new = node_hash(new, step)
        left, right = left >> 1, right >> 1
    return right == 0 and old == first_root and new == second_root


def _split(count: int) -> int:
    """The largest power of two below `count`, which is at least 2."""
    return 1 << (count - 1).bit_length() - 1
