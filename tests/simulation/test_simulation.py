"""Some schedules in every run of the tests; `./scripts/simulate` runs as many as one likes."""

import random
import time

import pytest

from tests.selection import DRAW
from tests.simulation.acts import SCENES
from tests.simulation.kept import FOUND, kept_schedules
from tests.simulation.planted import PLANTED, UNSEEN
from tests.simulation.schedules import FoundError, explore, run
from tests.simulation.simulation import replaced, simulate

pytestmark = pytest.mark.slow

BUDGET_S = 90.0
CHUNK = 100
KEPT = kept_schedules()


def test_every_invariant_holds_in_random_schedules() -> None:
    """As many as there is time for, others in each run; what is found says how to show it again."""
    seeds = random.Random(DRAW)
    end = time.monotonic() + BUDGET_S
    while time.monotonic() < end:
        explore(CHUNK, seeds.randrange(10**9))


@pytest.mark.parametrize("name", sorted(PLANTED.keys() - UNSEEN))
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[name](monkeypatch)
    with pytest.raises(FoundError) as found:
        run(KEPT[name])
    # what breaks the simulation itself is found in every schedule, and says nothing
    assert "TypeError" not in str(found.value)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_kept_schedule_shows_nothing_without_its_fault(name: str) -> None:
    run(KEPT[name])


def test_each_planted_fault_has_a_kept_schedule_or_is_said_to_have_none() -> None:
    of_planted = {name for name in KEPT if not name.startswith(FOUND)}
    assert of_planted == PLANTED.keys() - UNSEEN


@pytest.mark.parametrize("scene", range(len(SCENES)))
def test_the_same_schedule_gives_the_same_log(scene: int) -> None:
    acts = [*SCENES[scene], ("crash_before", 0, 2), ("assign", 1, 0), *SCENES[2], ("get_on", 1, 7)]
    with replaced():
        first, second = (
            [(one.key, one.headers.get("ce_type")) for one in simulate(acts).log.records]
            for _ in range(2)
        )
    assert first == second
