"""Checkpoints as they follow one another: each names the text of the one before. Pure.

Two may name the same one: a controller that slept through its replacement can sign once more. Such
a fork is no fault as long as both are heads of the same tree, which the log itself shows.
"""

from collections.abc import Iterable, Iterator

from mesh_events.errors import MeshError
from mesh_events.integrity.checkpoint import SignedCheckpoint


class ChainBreakError(MeshError):
    """A checkpoint that does not follow from those before it; `code` is stable.

    `offset` is the last one that the broken checkpoint covers.
    """

    def __init__(self, code: str, offset: int, text: str) -> None:
        super().__init__(text)
        self.code, self.offset = code, offset


class Chain:
    """The checkpoints of one log, by the digest of their text; signatures are checked elsewhere."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._known: dict[str, SignedCheckpoint] = {}
        self._roots: dict[int, bytes] = {}
        self.head: SignedCheckpoint | None = None

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[SignedCheckpoint]:
        """Every one, in the order in which they were added."""
        return iter(self._known.values())

    def __contains__(self, one: object) -> bool:
        return isinstance(one, SignedCheckpoint) and one.note.digest in self._known

    def add(self, found: SignedCheckpoint) -> bool:
        """Take one more; False if it is known already.

        Raises:
            ChainBreakError: it belongs to another log, what it names is not there, or it
                contradicts what was signed before.
        """
        if found.note.digest in self._known:
            return False
        self._judge(found)
        self._take(found)
        return True

    def begin_anew(self, found: SignedCheckpoint) -> None:
        """Take one that does not follow from the others, to go on behind it."""
        self._take(found)

    def path(self) -> list[SignedCheckpoint]:
        """From the first one to the head, each naming the one before; empty if one is missing."""
        found: list[SignedCheckpoint] = []
        at = self.head
        while at is not None:
            found.append(at)
            at = self._known.get(at.body.previous)
        found.reverse()
        # what is missing may have named signatures that did not verify
        return found if found and not found[0].body.previous else []

    def by_size(self) -> list[SignedCheckpoint]:
        """All of them as the tree grew, forks too."""
        return as_signed(self)

    def _take(self, found: SignedCheckpoint) -> None:
        body = found.body
        self._known[found.note.digest] = found
        self._roots.setdefault(body.size, body.root)
        if self.head is None or body.size > self.head.body.size:
            self.head = found

    def _judge(self, found: SignedCheckpoint) -> None:
        body = found.body
        if body.origin != self.origin:
            text = f"a checkpoint of {body.origin} stands among those of {self.origin}"
            raise ChainBreakError("checkpoint_foreign", body.offset, text)
        if self._roots.get(body.size, body.root) != body.root:
            text = f"two checkpoints over {body.size} records were signed, with different roots"
            raise ChainBreakError("checkpoints_differ", body.offset, text)
        before = self._known.get(body.previous)
        if before is None and body.previous:
            text = (
                f"the checkpoint over {body.size} records names one before it "
                f"({body.previous[:12]}) that is not there"
            )
            raise ChainBreakError("checkpoint_missing", body.offset, text)
        first = before.body.offset + 1 if before else 0
        size = before.body.size if before else 0
        named = [one for pair in body.unverified for one in pair]
        grows = size < body.size and body.offset - first >= body.size - size - 1
        if not grows or any(not first <= one <= body.offset for one in named):
            text = f"the checkpoint over {body.size} records does not continue the one over {size}"
            raise ChainBreakError("checkpoint_edited", body.offset, text)


def chained(origin: str, found: Iterable[SignedCheckpoint]) -> Chain:
    """The chain of all of them, in whatever order they were found. Raises ChainBreakError."""
    chain = Chain(origin)
    for one in as_signed(found):
        chain.add(one)
    return chain


def as_signed(found: Iterable[SignedCheckpoint]) -> list[SignedCheckpoint]:
    """Checkpoints so that each stands behind the one that it names.

    What was lost in a place and written there again stands behind later ones.
    """
    return sorted(found, key=lambda one: one.body.size)
