"""Some schedules in every run of the tests; `./scripts/simulate` runs as many as one likes."""

import pytest

from tests.simulation.acts import SCENES
from tests.simulation.planted import PLANTED
from tests.simulation.schedules import FoundError, explore
from tests.simulation.simulation import replaced, simulate

SHORT = 400
ENOUGH = 3000
"""So many schedules find every planted fault, with the seed below."""
SEED = 2
QUICKER = {
    "the_same_intent_counts_twice": 3,
    "reports_on_links_count_for_any_generation": 12,
    "earlier_incarnations_keep_the_right_to_write": 7,
    "a_domain_in_quarantine_keeps_what_it_was_granted": 3,
}
"""Seeds that find a fault sooner."""
SLOW = {"reports_on_rights_count_for_any_generation"}
"""Takes half a minute; `./scripts/simulate --planted` finds it too."""


def test_every_invariant_holds_in_random_schedules(request: pytest.FixtureRequest) -> None:
    explore(SHORT, request.config.getoption("randomly_seed", SEED))


@pytest.mark.parametrize("name", sorted(PLANTED.keys() - SLOW))
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[name](monkeypatch)
    with pytest.raises(FoundError):
        explore(ENOUGH, QUICKER.get(name, SEED), shrink=False)


@pytest.mark.parametrize("scene", range(len(SCENES)))
def test_the_same_schedule_gives_the_same_log(scene: int) -> None:
    acts = [*SCENES[scene], ("hold_up", 0, 2), ("assign", 1, 0), *SCENES[2], ("get_on", 1, 7)]
    with replaced():
        first, second = (
            [(one.key, one.headers.get("ce_type")) for one in simulate(acts).log.records]
            for _ in range(2)
        )
    assert first == second
