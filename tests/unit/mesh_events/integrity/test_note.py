"""Signed notes, as other tools for them write and read them."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.integrity.note import Note, key_id, parse_note, signed, verifier_key
from mesh_events.signing import encode_public
from tests.memory_log import key

# the example that golang.org/x/mod/sumdb/note is documented and tested with
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
GO_NOTE = (
    f"{GO_TEXT}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2p"
    "ZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
NAME = "paper/mesh.governance"
NOTE = signed("one\n\ntwo\n", NAME, key("controller"))


def go_public() -> str:
    return encode_public(base64.b64decode(GO_KEY.rpartition("+")[2])[1:])


def test_a_note_of_another_implementation_is_verified() -> None:
    note = parse_note(GO_NOTE)
    assert note.text == GO_TEXT
    assert note.is_signed_by("PeterNeumann", go_public())
    assert str(note) == GO_NOTE


def test_a_key_is_named_as_other_tools_name_it() -> None:
    assert verifier_key("PeterNeumann", go_public()) == GO_KEY
    assert key_id("PeterNeumann", go_public()).hex() == "c74f20a3"


def test_what_was_signed_is_read_again_empty_lines_and_all() -> None:
    assert parse_note(str(NOTE)) == NOTE
    assert NOTE.is_signed_by(NAME, key("controller").public)
    assert not NOTE.is_signed_by(NAME, key("stranger").public)
    assert not NOTE.is_signed_by("other", key("controller").public)


def test_a_witness_may_sign_too_and_its_signature_is_passed_over() -> None:
    witness = signed(NOTE.text, "witness.example", key("stranger"))
    both = Note(NOTE.text, (*NOTE.signatures, *witness.signatures))
    found = parse_note(str(both))
    assert found.is_signed_by(NAME, key("controller").public)
    assert found.is_signed_by("witness.example", key("stranger").public)
    assert found.digest == NOTE.digest


def test_of_two_signatures_that_claim_one_key_both_must_hold() -> None:
    other = signed("another\n", NAME, key("controller"))
    both = Note(NOTE.text, (*NOTE.signatures, *other.signatures))
    assert both.names(NAME, key("controller").public)
    assert not both.is_signed_by(NAME, key("controller").public)


@given(st.data())
def test_any_bit_of_a_note_matters(data: st.DataObject) -> None:
    raw = bytearray(str(NOTE).encode())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = parse_note(raw.decode())
    except ValueError:
        return
    assert not found.is_signed_by(NAME, key("controller").public)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "text\n",
        "text\n\n",
        f"text\n{NOTE.signatures[0]}",
        "text\n\n- dash YWJjZGVm\n",
        "text\n\n— name\n",
        "text\n\n— name YWJj\n",
        "text\n\n— name Y?Jj\n",
        str(NOTE)[:-1],
        str(NOTE).replace("one", "o\tne"),
        "x" * (1 << 20) + str(NOTE),
    ],
)
def test_what_is_no_note_is_refused(raw: str) -> None:
    with pytest.raises(ValueError, match=r"note|signature"):
        parse_note(raw)
