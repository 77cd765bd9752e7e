"""What was found and left on the clusters: it opens, it ends, and rights never depend on it."""

from typing import Any

import pytest

from mesh_events.facts import DriftFound, DriftKind, Remedy
from projections import drift
from projections.drift import Left, all_left
from projections.image import Image
from tests import sample_history as story
from tests.memory_log import MemoryLog


def told(
    log: MemoryLog, remedy: Remedy, *lines: str, by: str = "controller", **changes: Any
) -> int:
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
        "basis": log.image.offset,
    }
    return log.append(log.make(DriftFound, "mesh", **{**fields, **changes}), by=by)


@pytest.fixture
def log() -> MemoryLog:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    return log


def left(log: MemoryLog) -> list[Left]:
    return [one for _, one in all_left(log.image.drifts)]


def test_what_is_left_is_known_since_it_was_told_first(log: MemoryLog) -> None:
    first = told(log, Remedy.LEFT, "one")
    when = log.image.time
    last = told(log, Remedy.LEFT, "one", "two")
    assert left(log) == [Left(frozenset({"one", "two"}), first, when, last)]


@pytest.mark.parametrize("remedy", [Remedy.ENDED, Remedy.REPAIRED, Remedy.UNKNOWN])
def test_another_end_closes_it_and_only_it(log: MemoryLog, remedy: Remedy) -> None:
    told(log, Remedy.LEFT, "one")
    told(log, Remedy.LEFT, "one", cluster="east")
    told(log, remedy, "one")
    assert [cluster for (cluster, _, _), _ in all_left(log.image.drifts)] == ["east"]


def test_a_copy_of_an_earlier_fact_brings_nothing_back_and_hides_nothing(log: MemoryLog) -> None:
    first = told(log, Remedy.LEFT, "one")
    end = told(log, Remedy.ENDED, "one")
    log.put(log.records[first])
    assert not left(log)
    told(log, Remedy.LEFT, "two")
    [found] = left(log)
    for copy in (first, end):
        log.put(log.records[copy])
        assert left(log) == [found]


def test_what_has_ended_may_be_left_again(log: MemoryLog) -> None:
    told(log, Remedy.LEFT, "one")
    told(log, Remedy.ENDED, "one")
    again = told(log, Remedy.LEFT, "one")
    assert [one.since for one in left(log)] == [again]


def test_findings_that_ended_are_remembered_up_to_a_bound(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "MOST_ENDED", 3)
    for number in range(5):
        for remedy in (Remedy.LEFT, Remedy.ENDED):
            told(log, remedy, "one", subject=f"principal/mallory-{number}")
    names = {subject for _, subject, _ in log.image.drifts}
    assert names == {f"principal/mallory-{number}" for number in (2, 3, 4)}


def test_nobody_but_the_controller_tells(log: MemoryLog) -> None:
    told(log, Remedy.LEFT, "one", by="west")
    assert not left(log)


def test_no_right_depends_on_it(log: MemoryLog) -> None:
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
