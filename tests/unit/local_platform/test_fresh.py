"""A fresh start removes all that belongs to one log, also where it is cut off in between."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_platform import LocalPlatform, PlatformSettings
from local_platform.endpoints import Endpoints
from local_platform.layout import Layout
from mesh_events.settings import key_path, notes_path, profile_path

KEPT = ("logs/kafka.log", "tls/ca.pem", "transport", "up.lock")
MADE = (
    "data/kafka-east/log",
    "conf/kafka.properties",
    "run/state",
    "secrets/east/admin",
    "platform.json",
    "errors/link.txt",
    "mesh.json",
    "keys/root.key",
    "checkpoints/mesh.notes",
    "snapshots/mesh.0.db",
    "snapshots/mesh.0.db-wal",
    "names.json",
    "current-domain",
    "schema-ids.json",
)


class Cut(BaseException):
    """The power is gone."""


class Home:
    """A platform whose servers are none, at a home with all that a mesh leaves there."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch) -> None:
        self.layout = Layout(home)
        for name in (*MADE, *KEPT):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("off")
        self.platform = LocalPlatform(PlatformSettings(home=home, cache=home / "cache"))
        self.founded_on: list[str] | None = None
        patch.setattr(LocalPlatform, "down", lambda _: [])
        patch.setattr(LocalPlatform, "_up", lambda *_: self._found())
        patch.setattr(Endpoints, "load", lambda _: None)

    def _found(self) -> None:
        self.founded_on = self.left()

    def left(self) -> list[str]:
        home = self.layout.home
        return [name for name in MADE if (home / name).exists()]

    def up(self, *, fresh: bool = False) -> None:
        self.platform.up(fresh=fresh)


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path / "home", monkeypatch)


def test_nothing_of_the_old_log_is_left_and_logs_and_certificates_are(old: Home) -> None:
    old.up(fresh=True)
    assert old.founded_on == []
    assert all((old.layout.home / name).exists() for name in KEPT)
    assert {path.name for path in old.layout.home.iterdir()} == {
        Path(name).parts[0] for name in KEPT
    }


def test_all_that_is_known_of_a_log_is_of_one_life(old: Home) -> None:
    home, gone = old.layout.home, old.layout.of_one_life
    for path in (profile_path(home), key_path(home, "root"), notes_path(home, "mesh")):
        assert any(path.is_relative_to(one) for one in gone)


def test_a_plain_start_leaves_all_as_it_is(old: Home) -> None:
    old.up()
    assert old.founded_on == list(MADE)


@pytest.mark.parametrize("steps", range(len({Path(name).parts[0] for name in MADE}) + 1))
def test_a_start_finishes_a_removal_that_was_cut_off(
    steps: int, old: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the new log would stand under the old root's key, where old intents count."""
    done = 0

    def counting(act: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            nonlocal done
            if done == steps:
                raise Cut
            done += 1
            return act(*args, **more)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", counting(shutil.rmtree))
        patch.setattr(Path, "unlink", counting(Path.unlink))
        with pytest.raises(Cut):
            old.up(fresh=True)
    assert old.founded_on is None
    old.up()
    assert old.founded_on == []
