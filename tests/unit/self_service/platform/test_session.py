from pathlib import Path

import pytest

from mesh_events.errors import ConfigurationError, RefusedError
from mesh_events.settings import key_path
from mesh_events.signing import SigningKey
from self_service.cli.framework.exits import ExitCode
from self_service.cli.mesh.callers import OPERATOR, acting_as, actor_id, current_domain, known_keys
from tests.unit.self_service.test_app import sdm


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDM_DOMAIN", "SDM_ACTOR"):
        monkeypatch.delenv(name, raising=False)


def with_keys(home: Path, *names: str) -> Path:
    """A home with signing keys."""
    for name in names:
        SigningKey.generate().save(key_path(home, name))
    return home


def test_the_switched_domain_speaks_until_another_is_chosen(tmp_path: Path) -> None:
    home = with_keys(tmp_path, "east", "west")
    assert sdm("switch-domain", "east", home=home).exit_code == 0
    assert acting_as(home, None).domain == "east"
    assert sdm("switch-domain", "west", home=home).exit_code == 0
    assert acting_as(home, None).principal == "west"


def test_an_option_wins_over_the_environment_and_that_over_the_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = with_keys(tmp_path, "east")
    sdm("switch-domain", "east", home=home)
    monkeypatch.setenv("SDM_DOMAIN", "north")
    assert current_domain(home) == "north"
    assert acting_as(home, "west").domain == "west"


def test_a_domain_without_a_key_here_cannot_be_chosen(tmp_path: Path) -> None:
    home = with_keys(tmp_path, "east")
    told = sdm("switch-domain", "west", home=home)
    assert told.exit_code == ExitCode.NOT_FOUND
    assert "this home has keys of east" in told.stderr
    assert current_domain(home) is None


def test_without_a_choice_an_intent_has_no_sender(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="sdm switch-domain"):
        acting_as(tmp_path, None)


def test_mesh_is_the_operator(tmp_path: Path) -> None:
    assert acting_as(tmp_path, "mesh") == OPERATOR


def test_the_keys_of_the_mesh_itself_are_no_domains(tmp_path: Path) -> None:
    home = with_keys(tmp_path, "root", "governor", "controller", "operator", "east")
    assert known_keys(home) == ["east", "mesh"]


def test_the_actor_is_an_id_and_never_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert actor_id(None).startswith("uid-")
    monkeypatch.setenv("SDM_ACTOR", "ana-7")
    assert actor_id(None) == "ana-7"
    assert actor_id("given-1") == "given-1"


@pytest.mark.parametrize("actor", ["Ana Maria", "ana\n", "m\u0435sh.governor"])
def test_an_actor_of_other_letters_is_refused(actor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedError, match=r"A-Z, a-z, 0-9") as told:
        actor_id(actor)
    assert told.value.code == "invalid_actor"
    monkeypatch.setenv("SDM_ACTOR", actor)
    with pytest.raises(RefusedError):
        actor_id(None)
