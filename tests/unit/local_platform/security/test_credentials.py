"""Passwords on disk: generated once, closed to others."""

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local_platform.security.credentials import Credentials
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
    threads, rounds = 8, 40
    together = threading.Barrier(threads)

    def ask(principal: str) -> str:
        together.wait(10)
        return credentials.password("east", principal)

    with ThreadPoolExecutor(threads) as pool:
        for number in range(rounds):
            found = set(pool.map(ask, [f"user-{number}"] * threads))
            assert len(found) == 1
            assert len(found.pop()) >= 32

    assert len(list((tmp_path / "secrets" / "east").iterdir())) == rounds
