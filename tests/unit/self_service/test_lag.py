"""What is said of a copy in which nothing was found."""

from types import SimpleNamespace
from typing import Any

from mesh_events.errors import ConfigurationError
from self_service.cli.lag import still_fills
from tests import paper_story as story
from tests.paper_log import PaperLog

WEST = "west.invalid:9092"


def test_only_of_a_copy_something_is_said() -> None:
    log = PaperLog()
    story.published(log)
    mesh: Any = SimpleNamespace(image=lambda: log.image)
    assert still_fills(mesh, "east.users", WEST) is None
    story.granted(log)
    assert still_fills(mesh, "east.users", WEST) is None
    story.settle(log)
    said = still_fills(mesh, "east.users", WEST) or ""
    assert "its link east.users@west is ACTIVE" in said
    assert "--follow" in said
    assert still_fills(mesh, "west.other", WEST) is None
    assert still_fills(mesh, "east.users", "east.invalid:9092") is None


def test_without_a_mesh_nothing_is_said() -> None:
    def image() -> Any:
        raise ConfigurationError("no mesh here")

    mesh: Any = SimpleNamespace(image=image)
    assert still_fills(mesh, "east.users", WEST) is None
