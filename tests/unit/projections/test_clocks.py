"""The finding on clocks that disagree."""

import pytest

from projections.clocks import CLOCKS_DISAGREE, clock_finding
from projections.image import EMPTY, TOLERANCE_MS, Image

NOW = 1_790_000_000_000
MINUTE, HOUR = 60_000, 3_600_000
BROKER, WORKER = "the broker that leads mesh.governance", "the governor's machine"


def image(broker: int, worker: int) -> Image:
    return EMPTY._replace(clock=NOW, skew=broker, worker_skew=worker)


@pytest.mark.parametrize("skew", [0, TOLERANCE_MS, -TOLERANCE_MS])
def test_clocks_within_the_tolerance_are_no_finding(skew: int) -> None:
    assert clock_finding(image(skew, -skew)) is None


@pytest.mark.parametrize(
    ("broker", "worker", "text"),
    [
        (26 * HOUR + 61_000, 0, f"{BROKER} is 26 h 1 min 1 s ahead of the mesh's clock"),
        (-HOUR, 0, f"{BROKER} is 1 h 0 s behind the mesh's clock"),
        (0, 10 * MINUTE, f"{WORKER} is 10 min 0 s ahead of the mesh's clock"),
    ],
)
def test_a_finding_names_each_clock_that_differs_and_shows_all(
    broker: int, worker: int, text: str
) -> None:
    found = clock_finding(image(broker, worker))
    assert found is not None
    assert (found.code, found.mesh) == (CLOCKS_DISAGREE, NOW)
    assert (found.broker, found.worker) == (NOW + broker, NOW + worker)
    assert found.text.startswith(f"{text}: ")
    assert found.next.startswith(f"set the clock of {BROKER if broker else WORKER} ")


def test_where_both_agree_and_the_mesh_was_ahead_there_is_nothing_to_set() -> None:
    found = clock_finding(image(-HOUR, -HOUR - 1000))
    assert found is not None
    assert BROKER in found.text
    assert WORKER in found.text
    assert found.next.startswith("if that is the right time, wait")
