"""What a run takes of the tests that there are."""

from pathlib import Path

import pytest

from tests.selection import (
    IN_PARTS,
    PARTS,
    are_named,
    durations,
    left_out,
    read_durations,
    split,
    updated,
)

pytest_plugins = ["pytester"]
TESTS = """
import pytest

@pytest.mark.sample(3)
@pytest.mark.parametrize("n", range(20))
def test_drawn(n): pass

@pytest.mark.sample(3)
@pytest.mark.parametrize("n", range(2))
def test_few(n): pass

@pytest.mark.parametrize("n", range(4))
def test_all(n): pass

@pytest.mark.long
def test_long(): pass
"""


@pytest.fixture
def items(pytester: pytest.Pytester) -> list[pytest.Item]:
    pytester.makeini("[pytest]\nmarkers =\n    long\n    sample(n)")
    return pytester.getitems(TESTS)


def taken(items: list[pytest.Item], seed: object) -> list[str]:
    return [item.name for item in split(items, seed)[0]]


def test_a_run_takes_some_cases_of_what_is_sampled_and_nothing_long(
    items: list[pytest.Item],
) -> None:
    kept, left = split(items, 1)
    names = [item.name for item in kept]
    assert sum("drawn" in name for name in names) == 3
    assert [name for name in names if "drawn" not in name] == [
        *(f"test_few[{n}]" for n in range(2)),
        *(f"test_all[{n}]" for n in range(4)),
    ]
    assert sorted(kept + left, key=items.index) == items


def test_a_draw_is_the_same_for_the_same_seed_in_any_order_and_another_one_for_another(
    items: list[pytest.Item],
) -> None:
    assert set(taken(items, 7)) == set(taken(items[::-1], 7))
    assert len({tuple(taken(items, seed)) for seed in range(20)}) > 10


def test_each_file_that_needs_servers_is_in_one_part_and_others_in_all() -> None:
    tests = Path(__file__).parents[1]
    files = set(tests.rglob("test_*.py"))
    taken = [files - left_out(tests, draw) for draw in range(PARTS)]
    for file in files:
        times = sum(file in one for one in taken)
        assert times == (1 if file.relative_to(tests).parts[0] in IN_PARTS else PARTS), file
    took = {tests / name: seconds for name, seconds in durations().items()}
    sums = [sum(took.get(file, 0) for file in one) for one in taken]
    assert max(sums) - min(sums) <= max(took.values())
    assert left_out(tests, 10) == left_out(tests, 10 % PARTS)


def test_durations_are_read_from_what_pytest_prints() -> None:
    printed = """
        1.60s call     tests/integration/test_a.py::test_one[x]
        12.00s setup    tests/integration/test_a.py::test_one[x]
        3.00s call     tests/unit/test_b.py::test_two
        ===== 3 passed in 12.00s =====
    """
    assert read_durations(printed.splitlines()) == {"integration/test_a.py": 14}


def test_tests_are_named_by_file_and_test() -> None:
    assert are_named(["tests/a.py::test_b", "tests/a.py::test_c[1]"])
    assert not are_named(["tests/a.py", "tests/a.py::test_b"])
    assert not are_named([])


def test_durations_of_one_part_leave_those_of_the_others() -> None:
    known = {"integration/test_cli.py": 3, "integration/test_link.py": 4, "integration/gone.py": 5}
    assert updated(known, {"integration/test_cli.py": 30}) == {
        "integration/test_cli.py": 30,
        "integration/test_link.py": 4,
    }
