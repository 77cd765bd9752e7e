"""References to secrets, and what is said of those that lead nowhere."""

from pathlib import Path

import pytest

from mesh_events.references import UnresolvedReferenceError, resolve


def test_a_file_gives_its_text_without_one_trailing_newline(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("se:cret \n\n", encoding="utf-8")

    assert resolve(f"file:{path}") == "se:cret \n"


def test_a_variable_gives_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "value\n")

    assert resolve("env:A_SECRET") == "value"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("env:NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set: export it"),
        ("file:relative/path", "is relative: give the absolute path"),
        ("file:/does/not/exist", "secret file /does/not/exist: No such file"),
        ("plainpassword", "named by env:NAME or file:/abs/path"),
        ("vault:x", "it is not shown here"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told(reference: str, said: str) -> None:
    with pytest.raises(UnresolvedReferenceError, match=said):
        resolve(reference)


def test_a_password_given_in_place_of_a_reference_is_not_repeated() -> None:
    with pytest.raises(UnresolvedReferenceError) as caught:
        resolve("correct-horse-battery-staple")

    assert "battery" not in str(caught.value)


def test_a_binary_file_is_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(UnresolvedReferenceError, match="is not text"):
        resolve(f"file:{path}")


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_secret_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Who changes one may empty its file before it is filled."""
    path = tmp_path / "password"
    path.write_text(text)
    monkeypatch.setenv("A_SECRET", text)
    for reference in (f"file:{path}", "env:A_SECRET"):
        with pytest.raises(UnresolvedReferenceError, match="is empty: put the secret there"):
            resolve(reference)


def test_a_secret_without_an_end_is_read_no_further() -> None:
    with pytest.raises(UnresolvedReferenceError, match="is longer than 65536 characters"):
        resolve("file:/dev/zero")


def test_a_name_that_no_file_has_leads_nowhere() -> None:
    with pytest.raises(UnresolvedReferenceError):
        resolve("file:/a\0b")


def test_what_may_be_the_secret_itself_is_not_shown() -> None:
    with pytest.raises(UnresolvedReferenceError) as told:
        resolve("hunter2")
    assert "hunter" not in str(told.value)
