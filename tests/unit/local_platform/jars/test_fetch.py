"""The fetcher against a real HTTP server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_platform.errors import FetchFailedError
from local_platform.jars.fetch import Fetcher
from local_platform.jars.lock import Jar, JarStore
from tests.unit.local_platform.repository import Repository, serving


@pytest.fixture
def repository() -> Iterator[Repository]:
    with serving() as found:
        yield found


def store_of(folder: Path, *jars: Jar) -> JarStore:
    return JarStore(folder / "jars", jars)


def leftovers(store: JarStore) -> list[Path]:
    """Return every file that is neither a pinned jar nor the record of verified ones."""
    known = {store.path(jar) for jar in store.jars} | {store.folder / "verified.json"}
    return [path for path in store.folder.rglob("*") if path.is_file() and path not in known]


def test_fetches_what_is_missing_and_nothing_twice(repository: Repository, tmp_path: Path) -> None:
    jars = [repository.add(f"a{number}", os.urandom(1000 + number)) for number in range(5)]
    store = store_of(tmp_path, *jars)

    first = Fetcher(store, repository.url).fetch()
    second = Fetcher(store, repository.url).fetch()

    assert set(first) == set(jars)
    assert second == []
    assert all(store.path(jar).read_bytes() == repository.files[jar.path] for jar in jars)
    assert set(repository.asked.values()) == {1}


def test_reports_bytes_up_to_the_total(repository: Repository, tmp_path: Path) -> None:
    jars = [repository.add(f"b{number}", os.urandom(200_000)) for number in range(3)]
    seen: list[tuple[int, int]] = []

    Fetcher(store_of(tmp_path, *jars), repository.url).fetch(lambda *step: seen.append(step))

    assert seen[-1] == (600_000, 600_000)
    assert seen == sorted(seen)


def test_repairs_a_truncated_file(repository: Repository, tmp_path: Path) -> None:
    jar = repository.add("whole", os.urandom(5000))
    store = store_of(tmp_path, jar)
    Fetcher(store, repository.url).fetch()
    store.path(jar).write_bytes(repository.files[jar.path][:100])

    assert Fetcher(store, repository.url).fetch() == [jar]
    assert store.path(jar).read_bytes() == repository.files[jar.path]


def test_verify_finds_a_change_that_keeps_the_size(repository: Repository, tmp_path: Path) -> None:
    jar = repository.add("same-size", os.urandom(5000))
    store = store_of(tmp_path, jar)
    Fetcher(store, repository.url).fetch()
    store.path(jar).write_bytes(bytes(5000))

    assert Fetcher(store, repository.url).missing() == []
    assert Fetcher(store, repository.url).fetch(verify=True) == [jar]
    assert store.path(jar).read_bytes() == repository.files[jar.path]


def test_refuses_other_bytes_and_keeps_none_of_them(repository: Repository, tmp_path: Path) -> None:
    jar = repository.add("forged", os.urandom(5000))
    repository.files[jar.path] = os.urandom(5000)
    store = store_of(tmp_path, jar)

    with pytest.raises(FetchFailedError, match=r"org\.example:forged:1\.0.*sha256 is .* lock file"):
        Fetcher(store, repository.url).fetch()

    assert not store.path(jar).exists()
    assert leftovers(store) == []


def test_a_connection_cut_midway_leaves_nothing_behind(
    repository: Repository, tmp_path: Path
) -> None:
    jar = repository.add("cut", os.urandom(5000))
    longer = Jar(jar.coordinate, jar.group, jar.sha256, jar.size)
    repository.files[jar.path] = repository.files[jar.path][:2000]
    store = store_of(tmp_path, longer)

    with pytest.raises(FetchFailedError):
        Fetcher(store, repository.url).fetch()

    assert leftovers(store) == []


def test_an_absent_jar_is_named_and_the_others_are_kept(
    repository: Repository, tmp_path: Path
) -> None:
    good = [repository.add(f"c{number}", os.urandom(50_000)) for number in range(3)]
    lost = repository.add("lost", b"small")
    body = repository.files.pop(lost.path)
    store = store_of(tmp_path, *good, lost)

    with pytest.raises(FetchFailedError, match=r"org\.example:lost.*HTTP 404.*run again"):
        Fetcher(store, repository.url).fetch()
    repository.files[lost.path] = body
    resumed = Fetcher(store, repository.url).fetch()

    assert lost in resumed
    assert Fetcher(store, repository.url).missing(verify=True) == []
    for jar in set(good) - set(resumed):
        assert repository.asked[jar.path] == 1


def test_an_unreachable_repository_is_named_with_the_next_step(tmp_path: Path) -> None:
    jar = Jar("org.example:far:1.0:jar:", "kafka", "0" * 64, 10)
    with serving() as gone:
        url = gone.url

    with pytest.raises(FetchFailedError, match=rf"{url}.*check the network"):
        Fetcher(store_of(tmp_path, jar), url, retries=0).fetch()


CHILD = """
import json, signal, sys
from pathlib import Path
from local_platform.jars.fetch import Fetcher
from local_platform.jars.lock import Jar, JarStore
# whoever starts the tests in the background has SIGINT ignored, and children inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
jars = tuple(Jar(*entry) for entry in json.loads(sys.argv[2]))
Fetcher(JarStore(Path(sys.argv[1]), jars), sys.argv[3]).fetch()
"""


def test_ctrl_c_leaves_nothing_half_and_the_next_run_resumes(
    repository: Repository, tmp_path: Path
) -> None:
    small = repository.add("small", os.urandom(1000))
    large = repository.add("large", os.urandom(8 * 1024 * 1024))
    repository.slow.add(large.path)
    store = store_of(tmp_path, small, large)
    entries = [[jar.coordinate, jar.group, jar.sha256, jar.size] for jar in store.jars]
    argv = [sys.executable, "-c", CHILD, str(store.folder), json.dumps(entries), repository.url]

    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 20
        while not (store.path(small).exists() and list(store.folder.rglob("large*.part"))):
            assert time.monotonic() < deadline, "the child never began"
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) != 0
    assert leftovers(store) == []
    assert not store.path(large).exists()

    repository.slow.clear()
    assert Fetcher(store, repository.url).fetch() == [large]
    assert repository.asked[small.path] == 1
