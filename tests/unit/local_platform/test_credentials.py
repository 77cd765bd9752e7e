"""Passwords on disk: generated once, closed to others."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local_platform.credentials import Credentials
from mesh_events.references import resolve


def test_a_password_is_generated_once(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "secrets")

    assert credentials.password("east", "admin") == credentials.password("east", "admin")
    assert credentials.password("east", "admin") != credentials.password("west", "admin")


def test_only_the_owner_can_read_a_password(tmp_path: Path) -> None:
    path = Credentials(tmp_path / "secrets").path("east", "admin")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


def test_a_reference_leads_to_the_password(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "secrets")

    assert resolve(credentials.reference("spark", "token")) == credentials.password(
        "spark", "token"
    )


def test_of_many_who_ask_at_once_all_get_the_same_password(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "secrets")
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(credentials.password, "east", "admin") for _ in range(64)]
        found = {future.result() for future in asked}

    assert len(found) == 1
    assert len(next(iter(found))) >= 32
    assert [path.name for path in (tmp_path / "secrets" / "east").iterdir()] == ["admin"]
