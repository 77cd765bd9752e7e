"""Accounts that servers run as, and what these can reach."""

import os
import pwd
import stat
from pathlib import Path

import pytest

from local_platform import PlatformSettings, domain_servers
from local_platform.errors import ServiceFailedError, UnreachableFolderError
from local_platform.security import accounts, certificates
from local_platform.security.transport import Transport
from local_platform.services import domain_spark, spark
from local_platform.site import Site


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "runs_as_root", lambda: True)


def free_number() -> int:
    taken = {one.pw_uid for one in pwd.getpwall()}
    return next(number for number in range(24000, 32000) if number not in taken)


def test_a_server_has_the_number_of_its_port_where_root_starts_it(as_root: None) -> None:
    port = free_number()
    assert accounts.account_of("spark-east", port) == port


def test_a_number_that_somebody_has_is_refused(as_root: None) -> None:
    with pytest.raises(ServiceFailedError, match="SDM_PORT_BASE"):
        accounts.account_of("spark-east", accounts.NOBODY)


def test_an_ordinary_user_starts_servers_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "runs_as_root", lambda: False)
    assert accounts.account_of("spark-east", accounts.NOBODY) is None


def test_a_folder_of_another_account_is_emptied_before_it_is_given_away(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder, account = tmp_path / "own", free_number()
    folder.mkdir()
    (folder / "left").write_text("text")
    accounts.own_folder(folder, account)
    found = folder.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (account, account, 0o700)
    assert list(folder.iterdir()) == []
    (folder / "kept").write_text("text")
    accounts.own_folder(folder, account)
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_a_folder_is_given_with_all_that_is_in_it_and_without_what_links_lead_to(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder, target, account = tmp_path / "data", tmp_path / "target", free_number()
    (folder / "inner").mkdir(parents=True)
    target.mkdir()
    for path in (folder / "inner" / "file", target / "file"):
        path.write_text("text")
    (folder / "file").symlink_to(target / "file")
    (folder / "folder").symlink_to(target)
    # another name of a file that is somebody else's
    (folder / "named").hardlink_to(target / "file")
    accounts.give(folder, account)
    given = [folder, *(one for one in folder.rglob("*") if one.name != "named")]
    assert len(given) == 5
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in given} == {(account, account)}
    assert {path.lstat().st_uid for path in (target, target / "file")} == {0}


def test_what_a_link_points_to_is_not_emptied(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    target, link = tmp_path / "target", tmp_path / "own"
    target.mkdir()
    (target / "kept").write_text("text")
    link.symlink_to(target)
    with pytest.raises(OSError, match=r"symbolic link|Not a directory"):
        accounts.own_folder(link, free_number())
    assert (target / "kept").exists()
    assert target.stat().st_uid == 0


def test_programs_in_a_closed_folder_are_copied_once(tmp_path: Path, as_root: None) -> None:
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    (closed / "bin" / "java").write_text("program")
    closed.chmod(0o700)
    copy = accounts.reachable(closed, tmp_path / "cache", "java-1")
    assert copy == tmp_path / "cache" / "unpacked" / "java-1"
    assert (copy / "bin" / "java").read_text() == "program"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o755
    assert accounts.reachable(closed, tmp_path / "cache", "java-1") == copy


def test_a_jar_that_others_may_not_read_is_named(tmp_path: Path) -> None:
    jar = Path("/tmp") / f"{tmp_path.name}.jar"
    jar.touch(mode=0o600)
    try:
        with pytest.raises(UnreachableFolderError, match=str(jar)):
            accounts.require_readable([jar], "spark-east")
    finally:
        jar.unlink()


def test_of_the_tls_files_the_client_certificate_alone_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can share a file with a group")
    site = Site.of(PlatformSettings(home=tmp_path / "mesh", tls=Transport.MTLS))
    site.make_folders()
    certificates.ensure(site.layout)
    domain_servers.remember(site.layout, "east", domain_servers.SPARK)
    before = modes(site.layout.tls)
    monkeypatch.setattr(spark, "compile_lookup", lambda *_, **__: None)
    monkeypatch.setattr(accounts, "require_reachable", lambda *_: None)
    monkeypatch.setattr(accounts, "require_readable", lambda *_: None)
    domain_spark.DomainSpark(site, "east").prepare()
    shared = {"client.pem": (0o640, site.settings.port_base)}
    assert modes(site.layout.tls) == {**before, **shared}


def modes(folder: Path) -> dict[str, tuple[int, int]]:
    """Mode and group of a folder (`.`) and of each file in it."""
    found = {".": folder.stat(), **{path.name: path.stat() for path in folder.iterdir()}}
    return {name: (stat.S_IMODE(one.st_mode), one.st_gid) for name, one in found.items()}
