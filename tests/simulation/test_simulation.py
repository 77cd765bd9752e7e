"""Some schedules in every run of the tests; `./scripts/simulate` runs as many as one likes."""

import random
import time

import pytest

from tests.selection import DRAW
from tests.simulation.acts import SCENES
from tests.simulation.planted import PLANTED
from tests.simulation.schedules import FoundError, explore
from tests.simulation.simulation import replaced, simulate

pytestmark = pytest.mark.slow

BUDGET_S = 90.0
CHUNK = 100
ENOUGH = 1500
"""So many schedules find most planted faults; what is drawn depends on the code, too."""
ROUNDS = 4
SEED = 0


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
    with pytest.raises(FoundError) as found:
        _seek()
    # what breaks the simulation itself is found in every schedule, and says nothing
    assert "TypeError" not in str(found.value)


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
