"""The mesh's clock: one time for all decisions, which follows no single clock that is wrong.

It begins at the earlier one of two clocks, that of the broker that took the governor's start and
that of this machine. A broker that is behind the last decision on the log does not count. Then it
counts by the monotonic clock. Where both agree that it is wrong it is set, forward once they have
agreed for `_STEADY_S`: one host's clock is both, and a step of hours that is put right again must
not end what has an end. Since it never goes back, one that was ahead stops until they have caught
up. What the log says stands in `Image.clock`;
how far the broker and the machine are off it in `Image.skew` and `Image.worker_skew`.
"""

import time
from collections.abc import Callable

from processors.worker.leadership import now as monotonic
from projections.image import TOLERANCE_MS

_STEADY_S = 600.0


def wall() -> float:
    """Seconds since 1970 as this machine tells them."""
    return time.time()


class MeshClock:
    """The clock of one governor.

    Args:
        started: append time of the governor's start, ms.
        last: the mesh's clock as of the last decision, ms.
        ticks: seconds that only go forward.
        here: this machine's time, seconds since 1970.
    """

    def __init__(
        self,
        started: int,
        last: int,
        *,
        ticks: Callable[[], float] = monotonic,
        here: Callable[[], float] = wall,
    ) -> None:
        self._ticks, self._here = ticks, here
        now = round(here() * 1000)
        earlier = min(started, now)
        if abs(now - started) <= TOLERANCE_MS:
            self._base = earlier
        else:
            late = started < last - TOLERANCE_MS
            self._base = max(last, now if late else earlier)
        self._since, self._last = ticks(), last
        # since when broker and machine agree that it is behind
        self._behind: float | None = None

    def now(self, appended: int) -> int:
        """The mesh's time, ms; never less than before.

        Args:
            appended: the latest append time on the log, ms. Within the tolerance a decision is not
                made before what it is about.
        """
        counted = self._counted()
        here = round(self._here() * 1000)
        is_off = abs(appended - counted) > TOLERANCE_MS and abs(here - appended) <= TOLERANCE_MS
        if is_off and (here < counted or self._is_steadily_behind()):
            self._base, self._since = here, self._ticks()
            counted, is_off = here, False
        if not is_off:
            self._behind = None
        if abs(appended - counted) <= TOLERANCE_MS:
            counted = max(counted, appended)
        self._last = max(self._last, counted)
        return self._last

    def _is_steadily_behind(self) -> bool:
        ticks = self._ticks()
        if self._behind is None:
            self._behind = ticks
        return ticks - self._behind >= _STEADY_S

    def shown(self) -> int:
        """The mesh's time, ms, for who only shows it: nothing is set."""
        return max(self._last, self._counted())

    def worker_skew(self, clock: int) -> int:
        """How far this machine is ahead of `clock`, ms."""
        return round(self._here() * 1000) - clock

    def _counted(self) -> int:
        return self._base + round((self._ticks() - self._since) * 1000)
