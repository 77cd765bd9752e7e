"""Some schedules in every run of the tests; `./scripts/simulate` runs as many as one likes."""

import random
import time
from functools import partial

import pytest

from tests.selection import DRAW
from tests.simulation.acts import SCENES
from tests.simulation.planted import PLANTED
from tests.simulation.schedules import FoundError, explore
from tests.simulation.simulation import replaced, simulate
from tests.simulation.world import Act

pytestmark = pytest.mark.slow

BUDGET_S = 90.0
CHUNK = 100
ENOUGH = 1500
"""So many schedules find most planted faults; what is drawn depends on the code, too."""
ROUNDS = 4
SEED = 0
_WIDENED = ("add_partitions", 0, 0)
KEPT: dict[str, list[Act]] = {
    "a_clock_that_was_set_right_is_seen_at_the_next_decision": [
        *[_WIDENED] * 6,
        ("flood", 0, 0),
        ("set_clocks", 6, 0),
        ("assign", 0, 0),
        ("decide", 0, 0),
        ("set_clocks", 0, 0),
        ("flood", 0, 0),
    ]
}
"""Planted fault -> a schedule that shows it, where 6 000 that are drawn may not."""


def test_every_invariant_holds_in_random_schedules() -> None:
    """As many as there is time for, others in each run; what is found says how to show it again."""
    seeds = random.Random(DRAW)
    end = time.monotonic() + BUDGET_S
    while time.monotonic() < end:
        explore(CHUNK, seeds.randrange(10**9))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[name](monkeypatch)
    search = partial(_replay, KEPT[name]) if name in KEPT else _seek
    with pytest.raises(FoundError) as found:
        search()
    # what breaks the simulation itself is found in every schedule, and says nothing
    assert "TypeError" not in str(found.value)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_kept_schedule_shows_nothing_without_its_fault(name: str) -> None:
    _replay(KEPT[name])


def _replay(acts: list[Act]) -> None:
    with replaced():
        try:
            simulate(acts)
        except Exception as fault:
            raise FoundError(str(fault), acts) from fault


def _seek() -> None:
    for seed in range(SEED, SEED + ROUNDS):
        explore(ENOUGH, seed, shrink=False)


@pytest.mark.parametrize("scene", range(len(SCENES)))
def test_the_same_schedule_gives_the_same_log(scene: int) -> None:
    acts = [*SCENES[scene], ("crash_before", 0, 2), ("assign", 1, 0), *SCENES[2], ("get_on", 1, 7)]
    with replaced():
        first, second = (
            [(one.key, one.headers.get("ce_type")) for one in simulate(acts).log.records]
            for _ in range(2)
        )
    assert first == second
