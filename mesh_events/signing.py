"""Ed25519 signatures (RFC 8032) over mesh, key and value of a record, and the keys that make them.

A public key travels as base64url text without padding (43 characters) and is its own name: a
record says which key signed it, the log says what that key may do.
"""

import base64
import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from mesh_events.errors import ConfigurationError

_CONTEXT = b"streaming-data-mesh record v1\x00"
"""Signed in front of every record, so that no signature is ever valid for anything else."""
_POSSESSION = b"streaming-data-mesh key v1\x00"
"""Signed in front of every proof that somebody holds a key."""
_PRIME = 2**255 - 19
_ORDER_EIGHT = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER = {0, 1, _PRIME - 1, _ORDER_EIGHT, _PRIME - _ORDER_EIGHT}
"""y of the eight points whose order is at most 8: their signatures need no private key."""


def possession_bytes(root: str, owner: str, public: str) -> bytes:
    """What the proof of a key's possession is signed over.

    Context, the mesh's root key, the owner's length as 4 bytes big-endian, owner, the key itself.

    Args:
        root: public key of the mesh's root.
        owner: the domain that the key is to speak for, `mesh/<role>` for a key of the mesh itself.
        public: the key.
    """
    name = owner.encode()
    length = len(name).to_bytes(4, "big")
    return _POSSESSION + decode_public(root) + length + name + decode_public(public)


@dataclass(frozen=True, slots=True)
class MeshKeys:
    """The public keys by which participants know their mesh.

    root: signed the log's first record; what is signed counts in this root's mesh only
    governor: decisions count under this key; None: of nobody
    """

    root: str
    governor: str | None = None


class WeakKeyError(ValueError):
    """A public key under which anybody can sign, or a second encoding of a key."""


def signed_bytes(root: str, key: bytes, value: bytes) -> bytes:
    """What is signed: context, the mesh's root key, the key's length as 4 bytes, key, value.

    `root` is the public key of the mesh's root: what is signed counts in that mesh only. Raises
    ValueError where it is no public key.
    """
    return _CONTEXT + decode_public(root) + len(key).to_bytes(4, "big") + key + value


class SigningKey:
    """A private key; `public` is the text under which the log knows it."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = encode_public(private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public!r})"

    @classmethod
    def generate(cls) -> "SigningKey":
        """A new random key, whose public text no command takes for an option."""
        made = cls(Ed25519PrivateKey.generate())
        while made.public.startswith("-"):
            made = cls(Ed25519PrivateKey.generate())
        return made

    @classmethod
    def load(cls, path: Path) -> "SigningKey":
        """Read a key file; raises ConfigurationError naming the file and what is wrong with it."""
        try:
            raw = base64.urlsafe_b64decode(path.read_text("ascii").strip() + "==")
            return cls(Ed25519PrivateKey.from_private_bytes(raw))
        except FileNotFoundError:
            raise ConfigurationError(
                f"no signing key at {path}: register the domain here, or "
                "copy its key file to this place"
            ) from None
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"the signing key {path} cannot be read: {error}") from error

    def save(self, path: Path) -> None:
        """Write the key file with mode 0600; refuses to replace another key."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = base64.urlsafe_b64encode(self._private.private_bytes_raw()).rstrip(b"=")
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(text + b"\n")
        try:
            # unlike a replacement, a second name for a file is refused where one exists
            os.link(part, path)
        except FileExistsError:
            raise ConfigurationError(f"{path} holds a key already: move it away first") from None
        finally:
            Path(part).unlink()

    @classmethod
    def load_or_generate(cls, path: Path) -> "SigningKey":
        """The key at `path`, made there if the file does not exist yet."""
        if not path.exists():
            cls.generate().save(path)
        return cls.load(path)

    def sign(self, root: str, key: bytes, value: bytes) -> bytes:
        """64 bytes over key and value in the mesh of `root`."""
        return self._private.sign(signed_bytes(root, key, value))

    def prove(self, root: str, owner: str) -> str:
        """The proof that whoever registers this key for `owner` holds it; base64url, 86 characters.

        Arguments as of `possession_bytes`.
        """
        return _encoded(self._private.sign(possession_bytes(root, owner, self.public)))

    def sign_text(self, text: bytes) -> bytes:
        """64 bytes over a text that can never be taken for a record, such as a note's."""
        return self._private.sign(text)


def encode_public(raw: bytes) -> str:
    """32 bytes -> base64url text without padding."""
    return _encoded(raw)


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


@lru_cache(maxsize=4096)
def decode_public(text: str) -> bytes:
    """Base64url text -> 32 bytes.

    Raises ValueError for any other text or a second spelling, WeakKeyError for a point of small
    order or a y that is not reduced by the field's prime.
    """
    raw = base64.b64decode(text + "=", altchars=b"-_", validate=True)
    if len(raw) != 32 or encode_public(raw) != text:
        raise ValueError("not an Ed25519 public key")
    # the highest bit is the sign of x
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    if y >= _PRIME or y in _SMALL_ORDER:
        raise WeakKeyError("anybody can sign with this Ed25519 public key")
    return raw


def is_proven(root: str, owner: str, public: str, proof: str) -> bool:
    """Whether `proof` is what `SigningKey.prove` of the key `public` gives."""
    try:
        signature = base64.b64decode(proof + "==", altchars=b"-_", validate=True)
        text = possession_bytes(root, owner, public)
        raw = decode_public(public)
    except ValueError:
        return False
    return _encoded(signature) == proof and verifies_text(raw, signature, text)


def is_weak_key(text: str) -> bool:
    """Whether `text` has the form of a public key, and anybody can sign with it."""
    try:
        decode_public(text)
    except WeakKeyError:
        return True
    except ValueError:
        return False
    return False


def is_public_key(text: str) -> bool:
    """Whether `text` is a public key that only its owner can sign with."""
    try:
        decode_public(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=4096)
def _public(raw: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(raw)


def verifies(public: bytes, signature: bytes, root: str, key: bytes, value: bytes) -> bool:
    """Whether `signature` (64 bytes) is that of `public` (32 bytes) in the mesh of `root`."""
    return verifies_text(public, signature, signed_bytes(root, key, value))


def verifies_text(public: bytes, signature: bytes, text: bytes) -> bool:
    """Whether `signature` (64 bytes) is that of `public` (32 bytes) over a text."""
    try:
        _public(public).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True
