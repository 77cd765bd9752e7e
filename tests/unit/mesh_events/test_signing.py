"""Keys and signatures: files, names of keys, and what a signature is good for."""

import stat
from pathlib import Path

import pytest

from mesh_events import signing
from mesh_events.errors import ConfigurationError
from mesh_events.signing import SigningKey, decode_public, is_public_key, verifies
from tests.memory_log import key

EAST = key("east")
PUBLIC = decode_public(EAST.public)
ROOT = key("root").public


def test_a_signature_fits_its_key_value_and_signer_only() -> None:
    signature = EAST.sign(ROOT, b"k", b"value")
    assert verifies(PUBLIC, signature, ROOT, b"k", b"value")
    assert not verifies(PUBLIC, signature, ROOT, b"k", b"valuf")
    assert not verifies(PUBLIC, signature, ROOT, b"l", b"value")
    assert not verifies(decode_public(key("west").public), signature, ROOT, b"k", b"value")


def test_bytes_cannot_move_between_key_and_value() -> None:
    assert not verifies(PUBLIC, EAST.sign(ROOT, b"ab", b"c"), ROOT, b"a", b"bc")


def test_the_signed_bytes_are_those_of_the_wire_format() -> None:
    assert signing.signed_bytes(ROOT, b"key", b"value") == (
        b"streaming-data-mesh record v1\x00"
        + decode_public(ROOT)
        + b"\x00\x00\x00\x03"
        + b"key"
        + b"value"
    )


@pytest.mark.parametrize(
    "text", ["", "east", EAST.public + "=", EAST.public[:-1], EAST.public + "A", "+" * 43, "é" * 43]
)
def test_a_public_key_has_one_spelling(text: str) -> None:
    assert not is_public_key(text)
    assert is_public_key(EAST.public)


def test_the_last_character_of_a_key_has_no_spare_bits() -> None:
    """43 characters hold 258 bits; the two that are left over must be zero."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    spellings = [EAST.public[:-1] + last for last in alphabet]
    assert sum(is_public_key(text) for text in spellings) == 16


def test_a_key_survives_its_file_which_only_the_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "east.key"
    EAST.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SigningKey.load(path).public == EAST.public


def test_a_key_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "east.key"
    EAST.save(path)
    with pytest.raises(ConfigurationError, match="holds a key already"):
        key("west").save(path)
    assert SigningKey.load_or_generate(path).public == EAST.public


def test_a_missing_key_file_tells_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no signing key at .*nowhere"):
        SigningKey.load(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["", "short", "ü" * 43])
def test_a_damaged_key_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "east.key"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigurationError, match=r"east\.key"):
        SigningKey.load(path)


def test_a_private_key_does_not_show_itself(tmp_path: Path) -> None:
    path = tmp_path / "east.key"
    EAST.save(path)
    assert path.read_text("ascii").strip() not in repr(EAST)


def test_generated_keys_differ(tmp_path: Path) -> None:
    first, second = SigningKey.generate(), SigningKey.load_or_generate(tmp_path / "new")
    assert first.public != second.public


def test_no_new_key_looks_like_an_option() -> None:
    # one in 64 would
    assert not any(SigningKey.generate().public.startswith("-") for _ in range(500))
