"""Which tests a run takes: all with `--long`, else what fits into a quarter of an hour.

A test that is marked `long` is left out. Of the cases of one that is marked `sample(n)`, n are
drawn anew in each run; the same seed draws the same ones. Who names a test gets it.
"""

import os
import random
from collections.abc import Iterable, Sequence
from itertools import groupby
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
    by_test = sorted(filter(_is_drawn, set(items) - left), key=lambda item: item.nodeid)
    for test, cases in groupby(by_test, _test):
        left.update(_undrawn(list(cases), random.Random(f"{seed} {test}")))
    return [item for item in items if item not in left], [item for item in items if item in left]


def drawn(cases: Sequence[Case], n: int) -> list[Case]:
    """Of cases within one test, those that this run takes: `n` of them, or all."""
    return list(cases) if is_long() else random.Random(DRAW).sample(cases, min(n, len(cases)))


def are_named(arguments: Iterable[str]) -> bool:
    """Whether all that was asked for are single tests."""
    asked = list(arguments)
    return bool(asked) and all("::" in each for each in asked)


def _is_drawn(item: pytest.Item) -> bool:
    return item.get_closest_marker("sample") is not None


def _test(item: pytest.Item) -> str:
    """The test without its case."""
    return item.nodeid.partition("[")[0]


def _undrawn(cases: list[pytest.Item], chance: random.Random) -> list[pytest.Item]:
    marker = cases[0].get_closest_marker("sample")
    assert marker is not None
    return chance.sample(cases, max(0, len(cases) - marker.args[0]))
