"""Checkpoints: their text, what is none, and how they stand in a file."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.integrity.checkpoint import Checkpoint, origin_of, ranges, read_checkpoint
from mesh_events.integrity.note import signed
from mesh_events.integrity.places import checkpoints, file_text, read_file, whole_notes
from mesh_events.settings import notes_path
from tests.memory_log import key

BODY = Checkpoint("paper/mesh.governance", 41, bytes(range(32)), 43, ((3, 3), (7, 9)), "ab" * 32)


def test_the_text_is_the_one_that_the_wire_format_shows() -> None:
    assert BODY.text.splitlines() == [
        "paper/mesh.governance",
        "41",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "offset 43",
        "unverified 3,7-9",
        f"previous {'ab' * 32}",
    ]
    first = replace(BODY, unverified=(), previous="")
    assert first.text.splitlines()[3:] == ["offset 43"]


@given(st.sets(st.integers(0, 60)), st.integers(1, 2**40), st.binary(min_size=32, max_size=32))
def test_what_was_signed_is_read_again(bad: set[int], size: int, root: bytes) -> None:
    body = replace(BODY, size=size, root=root, unverified=ranges(sorted(bad)))
    found = read_checkpoint(str(body.sign(key("controller")).note))
    assert found.body == body
    assert (
        found.signer([key("stranger").public, key("controller").public]) == key("controller").public
    )
    assert found.signer([key("stranger").public]) is None
    told = {at for first, last in body.unverified for at in range(first, last + 1)}
    assert told == bad


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n41\n", "\n041\n"),
        ("\n41\n", "\n\u0664\u0661\n"),
        ("\n41\n", "\n-1\n"),
        ("AAEC", "AAE"),
        ("Hh8=", "Hh9="),
        ("offset 43", "offset"),
        ("offset 43", "size 43"),
        ("3,7-9", "7-9,3"),
        ("3,7-9", "3,4"),
        ("3,7-9", "3,9-7"),
        ("3,7-9", "3,x"),
        ("previous", "later"),
    ],
)
def test_a_text_in_another_form_is_no_checkpoint_whoever_signed_it(old: str, new: str) -> None:
    assert old in BODY.text
    note = signed(BODY.text.replace(old, new), BODY.origin, key("controller"))
    with pytest.raises(ValueError, match=r"checkpoint|number|root|unverified"):
        read_checkpoint(str(note))


def test_the_origin_can_name_a_key() -> None:
    assert origin_of("local") == "local/mesh.governance"
    assert origin_of("our mesh+more/é") == "our%20mesh%2Bmore%2F%C3%A9/mesh.governance"


def test_a_file_is_read_up_to_the_half_note_at_its_end(tmp_path) -> None:
    path = notes_path(tmp_path, "local")
    assert read_file(path) == []
    notes = [replace(BODY, size=size).sign(key("controller")) for size in (1, 2)]
    text = "".join(file_text(one.note) for one in notes)
    path.parent.mkdir()
    for cut in range(len(file_text(notes[1].note))):
        part = text[: len(text) - cut]
        assert len(whole_notes(part)) == (2 if cut == 0 else 1)
    path.write_text(text)
    assert checkpoints(read_file(path)) == notes
    path.write_text(text.replace("offset 43", "offset x", 1))
    first, second = read_file(path)
    assert (first.checkpoint, second.checkpoint) == (None, notes[1])
    assert first.fault
    assert "note 1" in first.place


@pytest.mark.parametrize("lost", range(6))
def test_a_lost_line_costs_one_note(lost: int, tmp_path) -> None:
    path = notes_path(tmp_path, "local")
    path.parent.mkdir()
    notes = [replace(BODY, size=size).sign(key("controller")) for size in (1, 2, 3)]
    lines = "".join(file_text(one.note) for one in notes).split("\n")
    each = len(file_text(notes[0].note).split("\n")) - 1
    del lines[each + lost % each]
    path.write_text("\n".join(lines))
    left = checkpoints(read_file(path))
    assert notes[0] in left
    assert notes[2] in left
