"""Checkpoints of the log: the head of its tree, as signed text (c2sp.org/tlog-checkpoint).

    local/mesh.governance                               origin, and the name of the controller's key
    1000                                                how many records the tree holds
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=        its root
    offset 1003                                         where the last of them stands
    unverified 17,40-42                                 whose signatures did not verify, if any
    previous 9f86d081884c7d65...                        the checkpoint before, if there was one

`unverified` tells of the records since the previous checkpoint only, `previous` is the SHA-256 of
that one's text: who trusts a checkpoint can so read all that is known of the records before it.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from urllib.parse import quote

from mesh_events.integrity.note import Note, parse_note, signed
from mesh_events.signing import SigningKey
from mesh_events.topics import GOVERNANCE

Range = tuple[int, int]
"""First and last offset of a range, both in it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tree over the first `size` records, the last of which stands at `offset`.

    `unverified`: ascending ranges of offsets since the previous checkpoint; `previous`: the digest
    of that one's text in hex, "" for the first.
    """

    origin: str
    size: int
    root: bytes
    offset: int
    unverified: tuple[Range, ...] = ()
    previous: str = ""

    @property
    def text(self) -> str:
        """What is signed."""
        lines = [self.origin, str(self.size), base64.b64encode(self.root).decode()]
        lines.append(f"offset {self.offset}")
        if self.unverified:
            lines.append(f"unverified {','.join(map(_spelt, self.unverified))}")
        if self.previous:
            lines.append(f"previous {self.previous}")
        return "".join(f"{line}\n" for line in lines)

    @property
    def digest(self) -> str:
        """SHA-256 of the text in hex, as the next checkpoint names it."""
        return sha256(self.text.encode()).hexdigest()

    def sign(self, key: SigningKey) -> "SignedCheckpoint":
        """This checkpoint under the controller's key, whose name is the origin."""
        return SignedCheckpoint(self, signed(self.text, self.origin, key))


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint and the note that it came in."""

    body: Checkpoint
    note: Note

    def signer(self, keys: Iterable[str]) -> str | None:
        """The first of the public keys that has signed it."""
        name = self.body.origin
        return next((key for key in keys if self.note.is_signed_by(name, key)), None)


def origin_of(mesh: str) -> str:
    """The name of a mesh's log; what a key's name may not hold is percent-encoded."""
    return f"{quote(mesh, safe='')}/{GOVERNANCE}"


def ranges(offsets: Sequence[int]) -> tuple[Range, ...]:
    """Ascending offsets as ascending ranges."""
    if not offsets:
        return ()
    breaks = [(a, b) for a, b in pairwise(offsets) if b != a + 1]
    return tuple(
        zip(
            [offsets[0], *(b for _, b in breaks)],
            [*(a for a, _ in breaks), offsets[-1]],
            strict=True,
        )
    )


def read_checkpoint(raw: str) -> SignedCheckpoint:
    """A signed checkpoint from its text; its signatures are not checked here.

    Raises ValueError with a sentence for anything that is none.
    """
    note = parse_note(raw)
    lines = note.text.removesuffix("\n").split("\n")
    if len(lines) < 4:
        raise ValueError("a checkpoint has at least four lines")
    known = dict(line.partition(" ")[::2] for line in lines[3:])
    body = Checkpoint(
        origin=lines[0],
        size=_number(lines[1]),
        root=_root(lines[2]),
        offset=_number(known.get("offset", "")),
        unverified=_ranges(known.get("unverified", "")),
        previous=known.get("previous", ""),
    )
    if body.text != note.text:
        raise ValueError("the checkpoint is spelt in another way than it must be")
    return SignedCheckpoint(body, note)


def _spelt(one: Range) -> str:
    return str(one[0]) if one[0] == one[1] else f"{one[0]}-{one[1]}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text[:30]!r} is not a number")
    return int(text)


def _root(text: str) -> bytes:
    try:
        root = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the root is not base64") from None
    if len(root) != 32:
        raise ValueError("the root is not 32 bytes long")
    return root


def _ranges(text: str) -> tuple[Range, ...]:
    found: list[Range] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        low, high = _number(first), _number(last or first)
        if low > high or (found and low <= found[-1][1] + 1):
            raise ValueError("the unverified offsets are not ascending")
        found.append((low, high))
    return tuple(found)
