"""Lanes: one server's trouble stays in its lane, and nothing is done twice."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from mesh_events.errors import StateFaultError
from processors.controllers import lanes as module
from processors.controllers.controller import NotLeaderError
from processors.controllers.lanes import ThreadedLanes, for_a_while, in_turn
from projections.image import EMPTY
from tests.kafka_client import eventually


class MemoryLeadership:
    """As much of a leadership as lanes look at."""

    last_report = -1


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> ThreadedLanes:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    return ThreadedLanes("test")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Hangs whoever waits for it until the end of the test."""
    found = threading.Event()
    yield found
    found.set()


def test_a_lane_that_hangs_holds_up_no_other(lanes: ThreadedLanes, gate: threading.Event) -> None:
    done: list[str] = []
    jobs = {"down": lambda: gate.wait() and None, "up": lambda: done.append("up")}
    for _ in range(3):
        lanes.run(jobs, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
    assert done == ["up"] * 3


def test_a_lane_does_one_thing_at_a_time(lanes: ThreadedLanes, gate: threading.Event) -> None:
    begun: list[int] = []

    def job() -> None:
        begun.append(1)
        gate.wait()

    for _ in range(3):
        lanes.run({"east": job}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
    assert len(begun) == 1
    gate.set()

    def again() -> bool:
        lanes.run({"east": job}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
        return len(begun) > 1

    eventually(again, "the lane is free")


def test_what_a_lane_reported_is_in_the_image_of_its_next_job(lanes: ThreadedLanes) -> None:
    leadership, done = MemoryLeadership(), []

    def job() -> None:
        done.append(1)
        leadership.last_report = 7

    lanes.run({"east": job}, EMPTY._replace(offset=5), leadership)  # type: ignore[arg-type]
    lanes.run({"east": job}, EMPTY._replace(offset=6), leadership)  # type: ignore[arg-type]
    assert len(done) == 1
    lanes.run({"east": job}, EMPTY._replace(offset=7), leadership)  # type: ignore[arg-type]
    assert len(done) == 2


@pytest.mark.parametrize("fault", [NotLeaderError("another leads"), ValueError("a bug")])
def test_what_a_job_raises_comes_out_and_its_lane_is_free_again(
    lanes: ThreadedLanes, fault: Exception
) -> None:
    def fail() -> None:
        raise fault

    with pytest.raises(type(fault)):
        lanes.run({"east": fail}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
    done: list[int] = []
    lanes.run({"east": lambda: done.append(1)}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
    assert done == [1]


def test_a_lane_that_hangs_for_good_is_an_error(
    lanes: ThreadedLanes, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STALL_S", 0.01)
    with pytest.raises(StateFaultError, match="hangs at east"):
        lanes.run({"east": lambda: gate.wait() and None}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]


def test_a_lane_that_waits_for_a_thread_does_not_hang(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, first = [1000.0], threading.Event()
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    monkeypatch.setattr(module, "_MOST", 1)
    monkeypatch.setattr(module, "STALL_S", 60.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    lanes, begun = ThreadedLanes("test"), threading.Event()

    def second() -> None:
        begun.set()
        gate.wait()

    jobs = {"east": lambda: first.wait() and None, "west": second}
    lanes.run(jobs, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
    now[0] += 50
    first.set()
    assert begun.wait(60)
    now[0] += 50
    lanes.run({}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
    now[0] += 50
    with pytest.raises(StateFaultError, match="hangs at west for 100 s"):
        lanes.run({}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]


def test_a_lane_of_one_domain_that_hangs_is_logged_once_and_ends_no_worker(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, begun, done = [1000.0], threading.Event(), list[str]()
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    lanes = ThreadedLanes("test", of_domains=True)

    def slow() -> None:
        begun.set()
        gate.wait()
        done.append("east")

    jobs = {"east": slow, "west": lambda: done.append("west")}
    with capture_logs() as logs:
        lanes.run(jobs, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
        assert begun.wait(60)
        for _ in range(3):
            now[0] += module.STALL_S + 1
            lanes.run(jobs, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
        assert done == ["west"] * 4
        gate.set()

        def again() -> bool:
            lanes.run(jobs, EMPTY, MemoryLeadership())  # type: ignore[arg-type]
            return done.count("east") > 1

        eventually(again, "the lane goes on")
    told = [(one["event"], one["log_level"], one["lane"]) for one in logs]
    assert told == [("lane_hangs", "error", "east"), ("lane_goes_on", "info", "east")]


def test_the_end_of_an_earlier_leadership_is_no_news_to_the_next(lanes: ThreadedLanes) -> None:
    earlier, later, done = MemoryLeadership(), MemoryLeadership(), list[str]()
    gate = threading.Event()

    def over() -> None:
        gate.wait()
        raise NotLeaderError("another leads")

    lanes.run({"east": over, "west": over}, EMPTY, earlier)  # type: ignore[arg-type]
    gate.set()

    def again() -> bool:
        jobs = {name: (lambda name=name: done.append(name)) for name in ("east", "west")}
        lanes.run(jobs, EMPTY, later)  # type: ignore[arg-type]
        return {"east", "west"} <= set(done)

    eventually(again, "both lanes work for the later leadership")


def test_a_fault_of_the_program_is_not_hidden_by_the_end_of_a_leadership(
    lanes: ThreadedLanes,
) -> None:
    def over() -> None:
        raise NotLeaderError("another leads")

    def broken() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        lanes.run({"east": over, "west": broken}, EMPTY, MemoryLeadership())  # type: ignore[arg-type]


def test_a_job_begins_nothing_new_after_a_while() -> None:
    assert list(for_a_while("abc", seconds=60)) == ["a", "b", "c"]
    assert list(for_a_while("abc", seconds=-1)) == ["a"]


def test_owners_come_in_turn_whoever_has_more() -> None:
    items = [*(f"a{number}" for number in range(5)), "b0", "c0", "b1"]
    turns = ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"]
    assert in_turn(items, lambda item: item[0]) == turns
