"""`sdm key prove` and `sdm key register` with a key that was made elsewhere."""

import json
import stat
from pathlib import Path

import pytest

from mesh_events.settings import Profile
from mesh_events.signing import is_proven
from self_service.cli.framework.exits import ExitCode
from tests.memory_log import key
from tests.unit.self_service.test_app import sdm

ROOT = key("root").public


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a participant: the mesh's profile and east's key, and nothing that answers."""
    profile = Profile(
        mesh="paper",
        governance_cluster="east",
        bootstrap_servers="127.0.0.1:1",
        registry_url="http://127.0.0.1:1",
        root_key=ROOT,
        governor_key=key("governor").public,
    )
    profile.save(tmp_path)
    key("east").save(tmp_path / "keys" / "east.key")
    return tmp_path


def test_a_proof_is_made_without_a_server(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "laptop.key"
    done = sdm("key", "prove", "--file", str(file), "--for", "east", "-o", "json", home=home)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert is_proven(ROOT, "east", found["public_key"], found["proof"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = sdm("key", "prove", "--file", str(file), "--for", "east", "-o", "json", home=home)
    assert json.loads(again.stdout) == found


def test_no_key_is_proven_for_the_mesh_itself(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.key"
    done = sdm("key", "prove", "--file", str(file), "--for", "mesh/governor", home=home)
    assert done.exit_code == ExitCode.REFUSED
    assert not file.exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([], "go together"),
        (
            ["--proof", key("new").prove(ROOT, "west")],
            "--proof does not fit this key, the domain east",
        ),
        (["--proof", "A" * 86], "--proof does not fit this key, the domain east"),
    ],
)
def test_a_key_of_somebody_else_is_not_sent(home: Path, more: list[str], reason: str) -> None:
    given = ["key", "register", "--public-key", key("new").public, *more, "-d", "east"]
    done = sdm(*given, home=home)
    assert done.exit_code == ExitCode.USAGE
    assert reason in " ".join(done.output.split())


def test_a_mistyped_path_of_a_key_makes_no_folders(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "new.key"
    for given in (["register", "-d", "east"], ["prove", "--for", "east"]):
        done = sdm("key", *given, "--file", str(file), home=home)
        assert done.exit_code == ExitCode.CONFIGURATION
        assert f"there is no folder {file.parent}" in " ".join(done.output.split())
    assert not file.parent.exists()
