"""Which tests a run takes: all with `--long`, else what fits into a quarter of an hour.

A test that is marked `long` is left out. Of the cases of one that is marked `sample(n)`, n are
chosen at random in each run; the same seed chooses the same ones. Of the files that need servers a
whole run takes one part of `PARTS`, which the draw says too: draws 0, 1, 2 and so on take them all.
The parts take about the same time, by `durations.json`: `python -m tests.selection` puts into it
what `./scripts/test` with `--durations=0` in PYTEST_ADDOPTS prints, of one part or of all. Who
names a test gets it, and who names a file or a folder gets all of its files.
"""

import json
import os
import random
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

DRAW = os.environ.get("SDM_TEST_DRAW", "0")
"""Decides which cases a run takes; `./scripts/test` gives another one each time."""
Case = TypeVar("Case")
PARTS = 6
"""A whole run takes one of so many parts of the files below `IN_PARTS`."""
IN_PARTS = ("faults", "integration")
"""Folders whose files need servers for minutes."""
_DURATIONS = Path(__file__).parent / "durations.json"
_UNKNOWN_S = 40
"""What a file is taken to need that is new."""
_DURATION = re.compile(
    r"\s*(?P<seconds>[\d.]+)s (?:call|setup|teardown)\s+"
    rf"tests/(?P<file>(?:{'|'.join(IN_PARTS)})/\S+?\.py)::"
)


def is_long() -> bool:
    """Whether a run takes everything."""
    return "SDM_TEST_LONG" in os.environ


def is_whole() -> bool:
    """Whether a run was not told which files to take."""
    return "SDM_TEST_WHOLE" in os.environ


def left_out(tests: Path, draw: int) -> set[Path]:
    """The files below the folder of the tests that a whole run leaves out.

    The longest one goes to the part that is the shortest so far, then the next one.
    """
    took = durations()
    files = [one for folder in IN_PARTS for one in (tests / folder).rglob("test_*.py")]
    seconds = {one: took.get(one.relative_to(tests).as_posix(), _UNKNOWN_S) for one in files}
    parts: list[set[Path]] = [set() for _ in range(PARTS)]
    for one in sorted(files, key=lambda one: (-seconds[one], one)):
        min(parts, key=lambda part: sum(seconds[each] for each in part)).add(one)
    return set(files) - parts[draw % PARTS]


def durations() -> dict[str, int]:
    """Seconds of the files that need servers, as `read_durations` found them."""
    found: dict[str, int] = json.loads(_DURATIONS.read_text("utf-8"))
    return found


def read_durations(lines: Iterable[str]) -> dict[str, int]:
    """Seconds by file, out of what `pytest --durations=0` prints."""
    found: dict[str, float] = {}
    for line in lines:
        if match := _DURATION.match(line):
            found[match["file"]] = found.get(match["file"], 0) + float(match["seconds"])
    return {file: round(seconds) for file, seconds in sorted(found.items())}


def updated(known: Mapping[str, int], seen: Mapping[str, int]) -> dict[str, int]:
    """The durations of the files that there are, by the latest run of each."""
    tests = _DURATIONS.parent
    there = {file: took for file, took in known.items() if (tests / file).exists()}
    return dict(sorted((there | dict(seen)).items()))


def split(
    items: Sequence[pytest.Item], seed: object
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """(what a run takes, what it leaves out), each in the order of `items`.

    seed: decides which cases are drawn.
    """
    left = {item for item in items if item.get_closest_marker("long")}
    by_test: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in sorted(set(items) - left, key=lambda item: item.nodeid):
        if marker := item.get_closest_marker("sample"):
            test = item.nodeid.partition("[")[0]
            by_test.setdefault((test, marker.args[0]), []).append(item)
    for (test, n), cases in by_test.items():
        left.update(set(cases) - set(_sample(cases, n, f"{seed} {test}")))
    return [item for item in items if item not in left], [item for item in items if item in left]


def drawn(cases: Sequence[Case], n: int) -> list[Case]:
    """Of cases within one test, those that this run takes: `n` of them, or all."""
    return list(cases) if is_long() else _sample(cases, n, DRAW)


def draws(of: object) -> random.Random:
    """The random numbers of one test, or of a part of it: others in each run, see `DRAW`."""
    return random.Random(f"{DRAW} {of}")


def are_named(arguments: Iterable[str]) -> bool:
    """Whether all that was asked for are single tests."""
    asked = list(arguments)
    return bool(asked) and all("::" in each for each in asked)


def _sample(cases: Sequence[Case], n: int, seed: str) -> list[Case]:
    return random.Random(seed).sample(cases, min(n, len(cases)))


if __name__ == "__main__":
    text = json.dumps(updated(durations(), read_durations(sys.stdin)), indent=1)
    _DURATIONS.write_text(f"{text}\n", "utf-8")
