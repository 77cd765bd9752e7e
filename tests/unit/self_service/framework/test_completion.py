from pathlib import Path

import pytest

from self_service.cli.framework import completion
from tests import sample_history as story
from tests.memory_log import MemoryLog


def test_names_of_the_last_image_are_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDM_HOME", str(tmp_path))
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log)
    completion.remember(tmp_path, log.image)
    assert completion.products("east.") == ["east.users"]
    assert completion.products("west.") == []
    assert completion.domains("") == ["east", "north", "west"]
    assert completion.applications("n") == ["north.app"]
    assert completion.clusters("w") == ["west"]
    assert completion.links("east") == ["east.users@west"]
    assert completion.requests(asked[:4]) == [asked]
    assert [one.name for one in tmp_path.iterdir()] == ["names.json"]


def test_without_a_mesh_nothing_is_offered_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDM_HOME", str(tmp_path / "none"))
    assert completion.products("") == []
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "names.json").write_text("{broken")
    assert completion.products("") == []


def test_a_home_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    completion.remember(tmp_path / "none", MemoryLog().image)
