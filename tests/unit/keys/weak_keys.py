"""Public keys under which anybody can sign, and such signatures."""

from collections.abc import Iterator

from mesh_events.signing import encode_public, verifies_text

PRIME = 2**255 - 19
_ORDER_EIGHT = (
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
)
_EIGHTH = [int.from_bytes(bytes.fromhex(one), "little") for one in _ORDER_EIGHT]
_SIGN = 1 << 255


def _encodings() -> Iterator[bytes]:
    """Every encoding of the eight points of small order: y, also unreduced, with both signs."""
    for y in (0, 1, PRIME - 1, PRIME, PRIME + 1, *_EIGHTH):
        for sign in (0, _SIGN):
            yield (y | sign).to_bytes(32, "little")


WEAK = list(_encodings())
"""The 14 encodings of points of small order, 32 bytes each."""
UNREDUCED = [
    (y | sign).to_bytes(32, "little") for y in range(PRIME, 1 << 255) for sign in (0, _SIGN)
]
"""Encodings whose y is not reduced by the field's prime; no other than these stand for a point."""
WEAK_TEXTS = [encode_public(raw) for raw in WEAK]


def forgery(public: bytes, text: bytes) -> bytes | None:
    """A signature over a text that verifies under a weak key, made without any private key.

    None where this text has none of the simple form R, S=0; about every third.
    """
    for point in WEAK:
        signature = point + bytes(32)
        if verifies_text(public, signature, text):
            return signature
    return None
