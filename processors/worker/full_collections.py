"""Full garbage collections that stay short beside a state of hundreds of megabytes."""

import gc
import time

LONG_S = 0.02


class ShortCollections:
    """Passes over in later collections what survived one that took long.

    A full collection visits every object, and nothing is decided meanwhile: a tenth of a second
    with some hundred thousand objects of the state. What is frozen is still freed by its reference
    count; only cycles among objects of that age stay.
    """

    def __init__(self) -> None:
        self._began = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """See `gc.callbacks`."""
        if phase == "start":
            self._began = time.perf_counter()
        elif info["generation"] == 2 and time.perf_counter() - self._began > LONG_S:
            gc.freeze()


def keep_short() -> None:
    """Let no full collection of this process take long a second time."""
    gc.callbacks.append(ShortCollections())
