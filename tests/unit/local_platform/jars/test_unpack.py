"""Fetched archives become folders."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from local_platform.jars.unpack import extract

REAL = tarfile.TarFile.extractall


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    made = tmp_path / "archive.tar"
    with tarfile.open(made, "w") as opened:
        for name in ("bin/initdb", "share/timezone"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            opened.addfile(member, io.BytesIO(name.encode()))
    return made


def test_an_archive_is_unpacked(archive: Path, tmp_path: Path) -> None:
    extract(archive, tmp_path / "out")
    assert (tmp_path / "out/bin/initdb").read_text("utf-8") == "bin/initdb"


def test_an_archive_is_unpacked_by_a_python_without_filters(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_in_debian_12(opened: tarfile.TarFile, path: Any, **options: object) -> None:
        if options:
            raise TypeError("extractall() got an unexpected keyword argument")
        REAL(opened, path, filter="data")

    monkeypatch.setattr(tarfile.TarFile, "extractall", as_in_debian_12)
    monkeypatch.delattr(tarfile, "data_filter")
    extract(archive, tmp_path / "out")
    assert (tmp_path / "out/share/timezone").read_text("utf-8") == "share/timezone"


def test_nothing_of_an_archive_leaves_the_folder(tmp_path: Path) -> None:
    made = tmp_path / "archive.tar"
    with tarfile.open(made, "w") as opened:
        opened.addfile(tarfile.TarInfo("../outside"))
    with pytest.raises(tarfile.OutsideDestinationError):
        extract(made, tmp_path / "out")
    assert not (tmp_path / "outside").exists()
