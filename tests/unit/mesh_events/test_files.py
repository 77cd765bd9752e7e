"""Files that are replaced in one step."""

import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mesh_events.files import write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("wanted", [0o600, 0o644])
def test_a_file_has_its_text_and_its_mode(tmp_path: Path, wanted: int) -> None:
    path = tmp_path / "folder" / "file"
    write_atomically(path, "one", mode=0o640)
    write_atomically(path, "two", mode=wanted)
    assert path.read_text() == "two"
    assert mode(path) == wanted
    assert list(path.parent.iterdir()) == [path]


def test_a_link_that_takes_its_place_gives_its_mode_to_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account that owns the folder, such as a domain's Spark server, may replace the file."""
    private = tmp_path / "private"
    private.write_text("a password")
    private.chmod(0o600)
    made = tempfile.mkstemp

    def replaced(**options: Any) -> tuple[int, str]:
        handle, name = made(**options)
        Path(name).unlink()
        Path(name).symlink_to(private)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", replaced)
    write_atomically(tmp_path / "folder" / "settings", "x", mode=0o644)
    assert mode(private) == 0o600
