"""Each try that the documentation tells of is made again by the test that it names."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "security" / "hostile-tries.md"
ROWS = [
    re.split(r"(?<!\\)\|", line.strip()[1:-1])
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| try", "|--"))
]


def test_the_page_has_its_tables() -> None:
    assert len(ROWS) >= 40


@pytest.mark.parametrize("row", ROWS, ids=[row[0].strip()[:60] for row in ROWS])
def test_a_try_names_a_test_that_is_there(row: list[str]) -> None:
    tried, came_of_it, test = (cell.strip() for cell in row)
    assert tried
    assert came_of_it
    found = re.fullmatch(r"\[(test_\w+)\]\((\S+)\)", test)
    assert found is not None, test
    name, path = found.groups()
    text = (PAGE.parent / path).read_text("utf-8")
    assert f"def {name}(" in text
