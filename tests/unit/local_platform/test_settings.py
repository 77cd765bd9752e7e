"""Where a mesh lives by default, and what the environment may change."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from local_platform.errors import UnusableSettingError
from local_platform.ports import OFFSETS, port
from local_platform.security.transport import Transport
from local_platform.settings import PlatformSettings, read_settings


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SDM_HOME",
        "SDM_CACHE",
        "SDM_PORT_BASE",
        "SDM_MAVEN_URL",
        "SDM_LIFETIME_S",
        "SDM_TLS",
    ):
        monkeypatch.delenv(name, raising=False)


def test_an_ordinary_users_mesh_lives_in_their_own_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    found = PlatformSettings()

    assert (found.home, found.cache) == (tmp_path / "data" / "sdm", tmp_path / "cache" / "sdm")


def test_without_xdg_variables_the_usual_folders_are_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert PlatformSettings().home == tmp_path / ".local" / "share" / "sdm"


def test_roots_mesh_lives_where_the_account_of_postgres_can_reach_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)

    assert PlatformSettings().home == Path("/var/lib/sdm")


def test_a_child_process_sees_the_same_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = PlatformSettings(
        home=tmp_path,
        port_base=21000,
        maven_url="http://127.0.0.1:1",
        lifetime_s=9,
        tls=Transport.MTLS,
        reauth_s=60,
        kafka_heap_mb=1024,
        quick_java=True,
        quota_mib_s=0,
        quota_requests=50,
    )
    for name, value in given.environment().items():
        monkeypatch.setenv(name, value)

    assert PlatformSettings() == given


@pytest.mark.parametrize("base", [80, 32568, 40000])
def test_a_base_with_privileged_or_ephemeral_ports_is_refused(base: int) -> None:
    with pytest.raises(ValidationError):
        PlatformSettings(port_base=base)


def test_every_port_stays_below_the_ephemeral_range() -> None:
    assert max(port(32567, listener) for listener in OFFSETS) < 32768
    assert len(set(OFFSETS.values())) == len(OFFSETS)


@pytest.mark.parametrize(
    ("variable", "value", "may_be"),
    [
        ("SDM_PORT_BASE", "abc", "a whole number from 1024 to 32567"),
        ("SDM_PORT_BASE", "99999", "a whole number from 1024 to 32567"),
        ("SDM_PORT_BASE", "", "a whole number"),
        ("SDM_LIFETIME_S", "-1", "a number of seconds above 0"),
        ("SDM_TLS", "on", "off, tls or mtls"),
        ("SDM_TLS", "", "off, tls or mtls"),
        ("SDM_REAUTH_S", "0", "a whole number of seconds from 1 to 86400"),
        ("SDM_KAFKA_HEAP_MB", "64", "a whole number of MiB from 256"),
        ("SDM_QUICK_JAVA", "soon", "true or false"),
        ("SDM_QUOTA_MIB_S", "-1", "a whole number of MiB per second"),
        ("SDM_QUOTA_REQUESTS", "all", "a whole number of percent"),
        ("SDM_HOME", "/etc/passwd", "a folder"),
        ("SDM_HOME", "/etc/passwd/below", "a folder"),
        ("SDM_HOME", "", "a folder"),
        ("SDM_CACHE", "", "a folder"),
        ("SDM_CACHE", "/etc/passwd", "a folder"),
        ("SDM_CACHE", "x" * 300, "a folder"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named_with_what_it_may_be(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, may_be: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(UnusableSettingError) as told:
        read_settings()

    assert str(told.value).startswith(f"{variable} is {repr(value) if value else 'empty'}: ")
    assert f"set it to {may_be}" in str(told.value)


def test_a_folder_that_is_to_be_made_can_be_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SDM_HOME", str(tmp_path / "a" / "b"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDM_CACHE", "cache")

    assert read_settings().home == tmp_path / "a" / "b"
    assert read_settings().cache == Path("cache")
    assert not list(tmp_path.iterdir())
