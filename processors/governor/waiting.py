"""The records that wait for the world to be looked at, as their governor found them."""

from collections import deque
from collections.abc import Container, Iterator
from dataclasses import dataclass

AGAIN = 32
"""So many of the waiting records are judged again in one step, in turn."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """What a record waits for.

    checks: names of the checks
    behind: the state that holds what they are about is that of this offset, or a later one
    """

    checks: tuple[str, ...]
    behind: int


class Waits:
    """Who waits, since when and for what. Changed by one thread; `known` may be asked by others.

    Args:
        patience_s: seconds after which a record is judged again first, since its time is over.

    Attributes:
        count: of records that have begun to wait, or wait for something else.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self.count = 0
        self.clear()

    def clear(self) -> None:
        """Nobody waits."""
        # offset -> since when, s of the monotonic clock
        self._since: dict[int, float] = {}
        self._known: dict[int, Awaited] = {}
        self._found: dict[int, tuple[str, ...]] = {}
        self._turns: deque[int] = deque()
        # the same offsets as they came: the first one's time runs out first
        self._oldest: deque[int] = deque()

    def add(self, offset: int, checks: tuple[str, ...], now: float) -> None:
        """A record waits, as this step found; it is known at the step's end."""
        if offset not in self._since:
            self._since[offset] = now
            self._turns.append(offset)
            self._oldest.append(offset)
        known = self._known.get(offset)
        if known is None or known.checks != checks:
            self._found[offset] = checks

    def end_step(self, offset: int) -> None:
        """What this step decided stands at `offset` or before it."""
        if self._found:
            self.count += len(self._found)
            for one, checks in self._found.items():
                self._known[one] = Awaited(checks, offset)
            self._found.clear()

    def remove(self, offset: int) -> None:
        """A record is decided."""
        self._since.pop(offset, None)
        self._known.pop(offset, None)
        self._found.pop(offset, None)

    def waited(self, offset: int, now: float) -> float:
        """Seconds since a record began to wait; 0 for one that does not."""
        return now - self._since.get(offset, now)

    def known(self) -> dict[int, Awaited]:
        """Offset -> what it waits for; some of them may be decided by now."""
        return self._known.copy()

    def again(self, undecided: Container[int], now: float) -> Iterator[int]:
        """Offsets to be judged again: the first one if its time is over, then some in turn."""
        while self._oldest and self._oldest[0] not in undecided:
            self._oldest.popleft()
        if self._oldest and self.waited(self._oldest[0], now) > self._patience_s:
            yield self._oldest[0]
        for _ in range(min(AGAIN, len(self._turns))):
            offset = self._turns.popleft()
            if offset in undecided:
                self._turns.append(offset)
                yield offset
