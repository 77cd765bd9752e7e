"""What the snapshots controller does with the answers of the process that makes snapshots."""

from pathlib import Path
from typing import Any, cast

import pytest

from processors.controllers.controller import Leadership
from processors.log.watch import LogWatch
from processors.snapshotting import process
from processors.snapshotting.controller import SnapshotsController
from processors.snapshotting.growth import Damage, Growth
from snapshots.history import OtherLogError
from snapshots.store import SnapshotError, Store
from tests.memory_log import MemoryLog


class Watching:
    """A watch that found nothing yet, and keeps what contradicts the log."""

    finding, looks_back = "", False

    def __init__(self) -> None:
        self.contradictions: list[tuple[int, int]] = []

    def contradicted(self, error: OtherLogError) -> None:
        self.contradictions.append((error.first, error.last))


class Leads:
    epoch = 7


def no_store() -> Store:
    raise SnapshotError("there is no file")


class Scene:
    """A controller, and a process that answers what the test says."""

    def __init__(self, *answers: Growth) -> None:
        self.answers, self.asked = list(answers), list[int]()
        self.watch = Watching()
        self.controller = SnapshotsController(
            cast("Any", None), no_store, self.grow, cast("LogWatch", self.watch), every=10
        )

    def grow(self, end: int) -> Growth:
        self.asked.append(end)
        return self.answers.pop(0)

    def look(self, offset: int) -> None:
        self.controller._not_before = 0.0
        image = MemoryLog().image._replace(offset=offset)
        self.controller.reconcile(image, cast("Leadership", Leads()))


def test_snapshots_are_made_when_enough_records_are_new() -> None:
    scene = Scene(Growth(newest=30, made=3), Growth(newest=40, made=1))
    for offset in (35, 39, 40, 45):
        scene.look(offset)
    assert scene.asked == [35, 40]


def test_what_fails_is_not_tried_again_in_this_leadership() -> None:
    scene = Scene(Growth(fault="no broker"))
    scene.look(35)
    scene.look(99)
    assert scene.asked == [35]


def test_a_damaged_file_is_put_aside_and_made_again_once(tmp_path: Path) -> None:
    path = tmp_path / "local.db"
    path.write_bytes(b"not a database")
    damage = Damage(text="not a database", path=path, inode=path.stat().st_ino)
    scene = Scene(Growth(damage=damage), Growth(damage=damage))
    for _ in range(3):
        scene.look(35)
    assert scene.asked == [35, 35]
    assert Path(f"{path}.bad").exists()


def test_a_log_that_is_another_than_that_of_the_snapshots_is_a_finding() -> None:
    scene = Scene(Growth(differs=(12, 14)))
    scene.look(35)
    assert scene.watch.contradictions == [(12, 14)]


def test_a_process_that_does_not_find_its_settings_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SDM_HOME", str(tmp_path))
    fault = process.run(5).fault
    assert fault is not None
    assert "settings are missing or wrong" in fault


def test_a_process_that_ends_without_an_answer_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MODULE", "processors.snapshotting.nothing")
    assert process.run(5).fault == "processors.snapshotting.nothing ended with exit code 1"
