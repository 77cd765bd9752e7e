"""The account of the local Postgres, where root starts it: its files are closed to all others."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.security.accounts import NOBODY, runs_as_root
from local_platform.services.postgres import Postgres
from local_platform.site import Site
from tests.integration.local_platform.clients import run_as

pytestmark = pytest.mark.platform


@pytest.fixture(autouse=True)
def as_root() -> None:
    if not runs_as_root():
        pytest.skip("only root can start a server as another account")


@pytest.fixture
def site() -> Iterator[Site]:
    """A site without servers, in a folder that other accounts can enter."""
    home = Path(tempfile.mkdtemp(prefix="sdm-test-postgres-"))
    home.chmod(0o755)
    found = Site.of(PlatformSettings(home=home, port_base=19000))
    found.make_folders()
    yield found
    shutil.rmtree(home)


def as_nobody(*argv: str) -> subprocess.CompletedProcess[str]:
    return run_as(NOBODY, NOBODY, [], *argv)


def owners(folder: Path) -> set[tuple[int, int]]:
    every = [folder, *folder.rglob("*")]
    return {(path.lstat().st_uid, path.lstat().st_gid) for path in every}


def test_it_runs_as_an_account_of_its_own_and_so_do_its_files(
    platform: Endpoints, settings: PlatformSettings
) -> None:
    local = LocalPlatform(settings)
    [pid] = [one.pid for one in local.status() if one.name == "postgres"]
    own, data = platform.postgres_port, settings.home / "data" / "postgres"
    account = psutil.Process(pid)
    with psycopg.connect(**platform.postgres_login(), autocommit=True) as database:
        # what a server writes while it runs is its own as well
        database.execute("CHECKPOINT")
    assert own != NOBODY
    assert (account.uids().real, account.gids().real) == (own, own)
    assert owners(data) == {(own, own)}

    assert as_nobody("find", str(data), "-readable").stdout == ""
    access_rules = data / "pg_hba.conf"
    before = access_rules.read_bytes()
    assert as_nobody("cat", str(access_rules)).returncode != 0
    assert as_nobody("tee", "-a", str(access_rules)).returncode != 0
    assert access_rules.read_bytes() == before
    assert as_nobody("kill", str(pid)).returncode != 0


def test_nobody_reaches_what_initdb_works_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    server, seen = Postgres(site), list[str]()
    initdb = Postgres._initdb

    def watched(self: Postgres, cluster: Path, password: Path, group: int | None) -> None:
        initdb(self, cluster, password, group)
        for path in (password, cluster, cluster / "pg_hba.conf"):
            assert path.exists()
            seen.append(as_nobody("find", str(path)).stdout)

    monkeypatch.setattr(Postgres, "_initdb", watched)
    server.prepare()
    assert seen == ["", "", ""]
    own = site.port("postgres")
    assert owners(server.data) == {(own, own)}


def test_its_files_follow_it_to_another_port(site: Site) -> None:
    Postgres(site).prepare()
    moved = Site.of(site.settings.model_copy(update={"port_base": 19200}))
    server = Postgres(moved)
    server.prepare()
    own = moved.port("postgres")
    assert own != site.port("postgres")
    assert owners(server.data) == {(own, own)}
