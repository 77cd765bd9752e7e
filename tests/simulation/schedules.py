"""Schedules drawn by hypothesis, which finds the shortest one that shows a fault."""

import json

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.simulation.acts import SCENES, drawn
from tests.simulation.simulation import replaced, simulate
from tests.simulation.world import Act, World

NUMBERS = st.integers(0, 7)
SCHEDULES: st.SearchStrategy[list[Act]] = st.builds(
    lambda scene, acts: [*scene, *acts],
    st.sampled_from(SCENES),
    st.lists(st.tuples(st.sampled_from(drawn()), NUMBERS, NUMBERS), min_size=12, max_size=60),
)


def again(acts: list[Act]) -> str:
    """The command that runs one schedule."""
    return f"./scripts/simulate --replay '{json.dumps(acts)}'"


class FoundError(Exception):
    """Something that must not be, and the shortest schedule that was found to show it."""

    def __init__(self, text: str, acts: list[Act]) -> None:
        super().__init__(f"{text}\nrun it alone: {again(acts)}")
        self.text, self.acts = text, acts


def run(acts: list[Act]) -> World:
    """Run one schedule.

    Raises:
        FoundError: it shows a fault.
    """
    with replaced():
        try:
            return simulate(acts)
        except Exception as fault:
            raise FoundError(f"{type(fault).__name__}: {fault}", acts) from fault


def explore(schedules: int, number: int, *, shrink: bool = True) -> None:
    """Run so many schedules; raises FoundError for the shortest one found that shows a fault.

    Args:
        schedules: how many.
        number: the seed; the same one gives the same schedules.
        shrink: look for a shorter schedule with the same fault.
    """
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    last: list[Act] = []

    @seed(number)
    @settings(
        max_examples=schedules,
        phases=phases,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(SCHEDULES)
    def attempt(acts: list[Act]) -> None:
        last[:] = acts
        simulate(acts)

    with replaced():
        try:
            attempt()
        except Exception as fault:
            # hypothesis runs the shortest one last
            text = f"{type(fault).__name__}: {fault}".partition("\nFalsifying")[0]
            raise FoundError(text, last) from fault
