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


def test_each_row_with_a_goal_says_whether_it_is_missed() -> None:
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in page().splitlines()}
    for row in ROWS:
        if row.goal is not None and "not measured" not in lines[row.text]:
            figure = _found(_result(row.file)["figures"], row.ours)
            assert figure is not None
            is_missed = f"{row.goal.text}, missed" in lines[row.text]
            assert row.goal.text in lines[row.text]
            assert is_missed == row.goal.is_missed(figure)
