"""Signed notes as C2SP specifies them (c2sp.org/signed-note): a text and who signed it.

A note is its text, an empty line, and one line for each signature. Only Ed25519 is made and
checked; signatures of other kinds and of unknown keys, such as a witness's, are passed over.
"""

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256

from mesh_events.signing import SigningKey, decode_public, verifies_text

MAX_NOTE_BYTES = 1 << 20
"""A longer note is not read."""
SIGNATURE = "— "
_ED25519 = b"\x01"
_KEY_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: the key's name, its id of 4 bytes, and what it signed with."""

    name: str
    key_id: bytes
    value: bytes

    def __str__(self) -> str:
        return f"{SIGNATURE}{self.name} {base64.b64encode(self.key_id + self.value).decode()}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends in a newline, and its signatures."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def __str__(self) -> str:
        return f"{self.text}\n{''.join(map(str, self.signatures))}"

    @property
    def digest(self) -> str:
        """SHA-256 of the text in hex: it does not change when somebody signs the note too."""
        return sha256(self.text.encode()).hexdigest()

    def names(self, name: str, public: str) -> bool:
        """Whether a signature claims to be that of the key `public` (base64url) of that name."""
        return bool(self._claims(name, public))

    def is_signed_by(self, name: str, public: str) -> bool:
        """Whether that key has signed the text: each signature that claims so must be valid."""
        claims, text, raw = self._claims(name, public), self.text.encode(), decode_public(public)
        return bool(claims) and all(verifies_text(raw, one.value, text) for one in claims)

    def _claims(self, name: str, public: str) -> list[NoteSignature]:
        wanted = key_id(name, public)
        return [one for one in self.signatures if (one.name, one.key_id) == (name, wanted)]


def key_id(name: str, public: str) -> bytes:
    """The 4 bytes by which a signature line names its key."""
    described = name.encode() + b"\n" + _ED25519 + decode_public(public)
    return sha256(described).digest()[:_KEY_ID_BYTES]


def verifier_key(name: str, public: str) -> str:
    """A public key in the form that other tools for signed notes take."""
    encoded = base64.b64encode(_ED25519 + decode_public(public)).decode()
    return f"{name}+{key_id(name, public).hex()}+{encoded}"


def signed(text: str, name: str, key: SigningKey) -> Note:
    """The note with one signature; `text` ends in a newline, `name` has no space and no plus."""
    value = key.sign_text(text.encode())
    return Note(text, (NoteSignature(name, key_id(name, key.public), value),))


def parse_note(raw: str) -> Note:
    """Read a note; raises ValueError with a sentence for anything that is none."""
    if len(raw.encode(errors="surrogatepass")) > MAX_NOTE_BYTES:
        raise ValueError(f"the note is longer than {MAX_NOTE_BYTES} bytes")
    if any(ord(letter) < 0x20 and letter != "\n" for letter in raw):
        raise ValueError("the note holds control characters")
    text, found, tail = raw.rpartition("\n\n")
    if not found or not tail.endswith("\n"):
        raise ValueError("the note has no signatures behind an empty line")
    note = Note(f"{text}\n", tuple(map(_signature, tail[:-1].split("\n"))))
    if str(note) != raw:
        raise ValueError("the note's signatures are spelt in another way than they must be")
    return note


def _signature(line: str) -> NoteSignature:
    name, _, encoded = line.removeprefix(SIGNATURE).partition(" ")
    if not line.startswith(SIGNATURE) or not name or not encoded:
        raise ValueError("a signature line has another form")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a signature is not base64") from None
    if len(raw) <= _KEY_ID_BYTES:
        raise ValueError("a signature is too short")
    return NoteSignature(name, raw[:_KEY_ID_BYTES], raw[_KEY_ID_BYTES:])
