"""What the trial of a new text runs, how long it waits, and what it takes for dealt with."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from immutables import Map

from mesh_events.errors import RefusedError
from self_service.cli.streaming import life
from self_service.cli.streaming import trial as streaming_trial
from self_service.cli.streaming.trial import Bounds, Trial
from self_service.cli.streaming.trial_comparison import Comparison

BOUNDS: Bounds = {0: (0, 10), 1: (5, 5)}
ADDED = SimpleNamespace(
    id="east.x",
    sql="SELECT * FROM east.users",
    stream="east.users",
    tables=(),
    names=Map(),
    destination="east.copied",
    application=None,
    generation=4,
    created_generation=4,
    out_begin=Map(),
)
"""A statement that was never changed, over a topic that it made."""


@dataclass
class Clock:
    """Goes on when somebody waits."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)


def waited(
    monkeypatch: pytest.MonkeyPatch, *reached: tuple[int, int], is_active: bool = True
) -> tuple[Bounds, float]:
    """(What is taken for dealt with, seconds); each pair is how far the present and the new are."""
    clock, told = Clock(), [[{0: present}, {0: new}] for present, new in reached]

    def both(*_: object) -> list[dict[int, int]]:
        return told.pop(0) if len(told) > 1 else told[0]

    monkeypatch.setattr(streaming_trial, "time", clock)
    monkeypatch.setattr(Trial, "_both", both)
    statement: Any = SimpleNamespace(id="east.x", is_active=is_active)
    options: Any = SimpleNamespace(timeout=60.0)
    nothing: Any = None
    trial = Trial(nothing, options, statement, nothing, 10)
    return trial._await(nothing, BOUNDS, is_tried=False), clock.now


@pytest.mark.parametrize(
    ("stream", "application", "meant", "reader"),
    [
        ("east.users", None, None, "east"),
        ("east.users", "east.app", None, "east"),
        ("west.users", "east.app", None, "east.app"),
        ("west.users", "east.app", "east.other", "east.other"),
    ],
)
def test_the_stream_is_read_by_who_may(
    stream: str, application: str | None, meant: str | None, reader: str
) -> None:
    statement: Any = SimpleNamespace(stream=stream, domain="east", application=application)
    nothing: Any = None
    trial = Trial(nothing, nothing, statement, SimpleNamespace(application=meant), 10)  # type: ignore[arg-type]
    assert trial._reader() == reader


def test_a_trial_that_stands_still_is_not_taken_for_one_that_has_dealt_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that is slow writes nothing for a while."""
    found, seconds = waited(monkeypatch, (3, 0), (4, 4))
    assert found[0] == (0, 4)
    assert seconds > 60


def test_a_trial_ends_when_both_are_known_to_have_dealt_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, seconds = waited(monkeypatch, (10, 0), *[(10, 4)] * 150, (12, 10))
    assert found == BOUNDS
    assert seconds < 60


def test_what_one_that_does_not_run_has_not_dealt_with_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, seconds = waited(monkeypatch, (4, 0), (4, 7), is_active=False)
    assert found[0] == (0, 4)
    assert seconds < 60


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (Comparison(changed=1, there=10, dealt_with=10), "its results would differ"),
        (
            Comparison(there=10, dealt_with=10),
            "neither text gave a result for a record of the stream",
        ),
        (
            Comparison(same=3, there=10, dealt_with=4),
            "both have processed only 4 of 10 offsets of the",
        ),
        (Comparison(same=3, there=10, dealt_with=10), None),
        (Comparison(), None),
    ],
)
def test_nothing_is_switched_without_a_yes_unless_all_was_compared(
    monkeypatch: pytest.MonkeyPatch, told: Comparison, why: str | None
) -> None:
    monkeypatch.setattr(Trial, "run", lambda _: told)
    statement: Any = SimpleNamespace(id="east.x")
    nothing: Any = None

    def compare(*, yes: bool) -> None:
        life._compare(nothing, nothing, statement, nothing, 10, yes=yes)

    compare(yes=True)
    if why is None:
        compare(yes=False)
        return
    with pytest.raises(RefusedError, match=f"was not changed, since {why}") as refused:
        compare(yes=False)
    assert refused.value.code == "not_confirmed"


@pytest.mark.parametrize(
    ("changes", "is_tried"),
    [
        ({}, False),
        ({"generation": 5}, True),
        ({"out_begin": Map({"0": 3, "1": 0})}, True),
        ({"out_begin": Map({"0": 0})}, True),
    ],
)
def test_the_present_text_is_tried_where_the_destination_may_have_what_another_made(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], is_tried: bool
) -> None:
    """As after an update, or where it was deleted and came back with another text."""
    said: list[tuple[str, str]] = []
    monkeypatch.setattr(
        Trial, "_submit", lambda _, suffix, __, **fields: said.append((suffix, fields["sql"]))
    )
    statement: Any = SimpleNamespace(**{**vars(ADDED), **changes})
    nothing: Any = None
    assert Trial(nothing, nothing, statement, nothing, 10)._tries_present() is is_tried
    assert said == ([(streaming_trial.PRESENT, ADDED.sql)] if is_tried else [])
