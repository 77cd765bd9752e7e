"""What a statement or a connector may read."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from mesh_events.intents import LinkDeleted
from projections.lineage.sources import not_granted
from projections.table import PairsMapping
from tests import sample_history as story
from tests.memory_log import MemoryLog


class FoundByKey(PairsMapping[str, Any]):
    """A table that raises where it is read as a whole."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getitem__(self, key: str) -> Any:
        return self._inner[key]

    def pairs(self) -> Iterator[NoReturn]:
        raise AssertionError("it is read as a whole")


def granted() -> MemoryLog:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    return log


def asked(log: MemoryLog, application: str | None = "west.app", cluster: str = "west") -> list[str]:
    topics = ["east.users", "west.own", "east.other"]
    return not_granted(log.image, "west", application, cluster, topics)


def test_what_is_granted_to_the_application_on_the_cluster_may_be_read() -> None:
    log = granted()
    assert asked(log) == ["east.other"]
    for other in ({"application": "west.report"}, {"application": None}, {"cluster": "east"}):
        assert asked(log, **other) == ["east.users", "east.other"]


def test_what_comes_by_a_removed_link_may_not_be_read() -> None:
    log = granted()
    log.say(LinkDeleted, "west", product=story.PRODUCT, cluster="west", reason="r")
    log.govern()
    assert asked(log) == ["east.users", "east.other"]


def test_one_grant_is_found_without_a_look_at_every_request() -> None:
    image = granted().image
    access = replace(image.access, requests=FoundByKey(image.access.requests))
    found = not_granted(
        image._replace(access=access), "west", "west.app", "west", ["east.users", "east.other"]
    )
    assert found == ["east.other"]
