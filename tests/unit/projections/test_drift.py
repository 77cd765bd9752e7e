"""What was found and left on the clusters: it opens, it ends, and rights never depend on it."""

from typing import Any

import pytest

from mesh_events.facts import DriftFound, DriftKind, Remedy
from projections.drift import Left
from projections.image import Image
from tests import paper_story as story
from tests.paper_log import PaperLog


def told(log: PaperLog, remedy: Remedy, *lines: str, by: str = "keeper", **changes: Any) -> int:
    """A fact about mallory's right in the west."""
    fields = {
        "subject": "principal/mallory",
        "cluster": "west",
        "generation": -1,
        "bindings": list(lines),
        "drift": DriftKind.FOREIGN_RIGHT,
        "remedy": remedy,
        "principal": "mallory",
        "topics": [],
    }
    return log.append(log.make(DriftFound, "mesh", **{**fields, **changes}), by=by)


@pytest.fixture
def log() -> PaperLog:
    log = PaperLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    return log


def left(log: PaperLog) -> list[Left]:
    return list(log.image.drifts.values())


def test_what_is_left_is_known_since_it_was_told_first(log: PaperLog) -> None:
    first = told(log, Remedy.LEFT, "one")
    when = log.image.time
    told(log, Remedy.LEFT, "one", "two")
    assert left(log) == [Left(frozenset({"one", "two"}), first, when)]


@pytest.mark.parametrize("remedy", [Remedy.ENDED, Remedy.REPAIRED, Remedy.UNKNOWN])
def test_another_end_closes_it_and_only_it(log: PaperLog, remedy: Remedy) -> None:
    told(log, Remedy.LEFT, "one")
    told(log, Remedy.LEFT, "one", cluster="east")
    told(log, remedy, "one")
    assert [cluster for cluster, _, _ in log.image.drifts] == ["east"]


def test_nobody_but_the_keeper_tells(log: PaperLog) -> None:
    told(log, Remedy.LEFT, "one", by="west")
    assert not left(log)


def test_no_right_depends_on_it(log: PaperLog) -> None:
    before = log.image
    [(request, access)] = before.access.requests.items()
    for kind in DriftKind:
        for remedy in Remedy:
            told(
                log,
                remedy,
                subject=request,
                cluster=access.cluster,
                generation=access.generation,
                drift=kind,
            )
    assert rest(log.image) == rest(before)


def rest(image: Image) -> Image:
    """The image but for its place on the log and what is left."""
    empty = Image()
    return image._replace(offset=0, time=0, drifts=empty.drifts, touched=())
