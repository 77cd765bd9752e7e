"""The figures of the README against the files that they come from."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"
FIGURES = (ROOT / "README.md").read_text("utf-8").partition("## Figures")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in FIGURES.splitlines()
    if re.match(r"\| (?!figure|--)", line) and "---" not in line
]
_NUMBER = re.compile(r"(?<![\w.])\d[\d ]*(?:\.\d+)?(?=\s*(?:ms|s\b|MiB|/))|\d[\d.]*(?= / )")


def values(found: Any) -> list[float]:
    """Every number in a result file, as it is and, of milliseconds, in seconds."""
    if isinstance(found, dict):
        return [one for inner in found.values() for one in values(inner)]
    if isinstance(found, str):
        return [float(one) for one in re.findall(r"\d+(?:\.\d+)?", found)]
    if isinstance(found, int | float):
        return [float(found), found / 1000]
    return []


def is_rounded(shown: str, known: list[float]) -> bool:
    text = shown.replace(" ", "")
    digits = len(text.partition(".")[2])
    return any(round(one, digits) == float(text) for one in known)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_figure_stands_in_the_file_that_its_row_names(row: list[str]) -> None:
    file, commit = row[-1].split(", ")
    assert re.fullmatch(r"[0-9a-f]{7}", commit)
    known = values(json.loads((RESULTS / f"{file.strip('`')}.json").read_text("utf-8"))["figures"])
    shown = [one for cell in row[1:-1] for one in _NUMBER.findall(cell)]
    assert shown
    assert [one for one in shown if not is_rounded(one, known)] == []


def test_every_result_file_is_named_with_a_commit() -> None:
    named = set(
        re.findall(r"`(?:benchmarks/results/)?(\w+)(?:\.json)?`,? [^|)]*?[0-9a-f]{7}", FIGURES)
    )
    named |= set(re.findall(r"`benchmarks/results/(\w+)\.json` \([0-9a-f]{7}\)", FIGURES))
    assert {path.stem for path in RESULTS.glob("*.json")} <= named
