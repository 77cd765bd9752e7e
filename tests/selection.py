"""Which tests a run takes: all with `--long`, else what fits into a quarter of an hour.

A test that is marked `long` is left out. Of the cases of one that is marked `sample(n)`, n are
chosen at random in each run; the same seed chooses the same ones. Who names a test gets it.
"""

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

DRAW = os.environ.get("SDM_TEST_DRAW", "0")
"""Decides which cases a run takes; `./scripts/test` gives another one each time."""
Case = TypeVar("Case")


def is_long() -> bool:
    """Whether a run takes everything."""
    return "SDM_TEST_LONG" in os.environ


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


def are_named(arguments: Iterable[str]) -> bool:
    """Whether all that was asked for are single tests."""
    asked = list(arguments)
    return bool(asked) and all("::" in each for each in asked)


def _sample(cases: Sequence[Case], n: int, seed: str) -> list[Case]:
    return random.Random(seed).sample(cases, min(n, len(cases)))
