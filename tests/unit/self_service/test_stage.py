from pathlib import Path

import pytest

from self_service.demo.stage import Stage, StoryBrokenError


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    found = Stage(tmp_path, {})
    found.chapter("A mesh starts")
    found.check("servers run", held=True)
    return found


def test_a_story_whose_checks_held_holds(stage: Stage) -> None:
    assert stage.summary("done")


def test_a_failed_story_ends_with_the_check_the_logs_and_the_next_step(
    stage: Stage, tmp_path: Path
) -> None:
    stage.check("the read is refused", held=False, detail="3 rows were read")
    assert not stage.summary("done")
    end = stage.failure()
    assert "the read is refused: 3 rows were read" in end
    assert "servers run" not in end
    assert str(tmp_path / "logs") in end
    assert "./scripts/demo --keep" in end.splitlines()[-1]


def test_a_story_that_broke_off_tells_where_and_why(stage: Stage) -> None:
    stage.chapter("Two domains join")
    assert "in chapter 2 the story broke off: no broker" in stage.failure("no broker")


def test_a_command_that_fails_breaks_the_story_off_with_its_words(stage: Stage) -> None:
    with pytest.raises(StoryBrokenError, match="no mesh at"):
        stage.sdm("catalog", "list")
