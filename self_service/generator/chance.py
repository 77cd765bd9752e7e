"""Drawing with a seed: record n is the same whatever was drawn before it."""

import random
from bisect import bisect
from dataclasses import dataclass, field
from itertools import accumulate


def of_record(seed: int, number: int) -> random.Random:
    """The chance of record `number`: a stream of draws of its own."""
    # two numbers in one: a text would be hashed, which takes longer than all the draws
    return random.Random((seed << 64) | number)  # noqa: S311 - it is to be repeatable


@dataclass(frozen=True, slots=True)
class Skewed:
    """Numbers from 1 to `most`, the first ones more often.

    skew: exponent of Zipf's law: number k is drawn in proportion to k ** -skew; 0: all alike.
    """

    most: int
    skew: float
    _sums: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = (k**-self.skew for k in range(1, self.most + 1)) if self.skew else ()
        object.__setattr__(self, "_sums", tuple(accumulate(weights)))

    def draw(self, chance: random.Random) -> int:
        """One number."""
        if not self._sums:
            return chance.randint(1, self.most)
        return min(bisect(self._sums, chance.random() * self._sums[-1]) + 1, self.most)
