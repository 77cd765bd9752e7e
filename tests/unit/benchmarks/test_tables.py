"""The table of figures says which goals are missed."""

import pytest

from benchmarks.rows import ROWS, Goal
from benchmarks.tables import _found, _result, page


@pytest.mark.parametrize(
    ("goal", "missed"),
    [
        (Goal("12 s", "seconds", 12), [12.1, 19.2]),
        (Goal("1 000/s", "seconds", 1000, is_least=True), [999.9, 622]),
    ],
)
def test_a_goal_is_missed_on_its_own_side(goal: Goal, missed: list[float]) -> None:
    assert all(goal.is_missed({"seconds": one}) for one in missed)
    assert not goal.is_missed({"seconds": goal.value})
    assert not goal.is_missed({"seconds": goal.value + (1 if goal.is_least else -1)})


def test_a_goal_beside_a_peer_is_missed_by_their_ratio() -> None:
    goal = Goal("1.5 times the peer", "per_s", 1.5, is_least=True, is_ratio=True)
    assert not goal.is_missed({"per_s": 150}, {"per_s": 100})
    assert goal.is_missed({"per_s": 149}, {"per_s": 100})


def test_each_row_with_a_goal_says_whether_it_is_missed() -> None:
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in page().splitlines()}
    for row in ROWS:
        if row.goal is not None and "not measured" not in lines[row.text]:
            figures = _result(row.file)["figures"]
            figure = _found(figures, row.ours)
            beside = _found(figures, row.beside[1]) if row.beside else None
            assert figure is not None
            if row.goal.is_ratio and beside is None:
                continue
            is_missed = f"{row.goal.text}, missed" in lines[row.text]
            assert row.goal.text in lines[row.text]
            assert is_missed == row.goal.is_missed(figure, beside)
