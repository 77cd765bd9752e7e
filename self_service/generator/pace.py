"""Writing at a rate: record n is due n / rate seconds after the first one."""

import time
from collections.abc import Callable, Iterator

_MOST_BEHIND_S = 1.0


def due(
    count: int | None,
    rate: float | None,
    seconds: float | None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[int]:
    """The numbers of the records, each when it is due.

    Args:
        count: how many; None: until somebody stops it.
        rate: records a second; None: as fast as they are taken.
        seconds: for so long; None: until the count is reached.
        clock: seconds that only go forward.
        sleep: waits so many seconds.
    """
    began, number, shift = clock(), 0, 0.0
    while count is None or number < count:
        now = clock()
        if seconds is not None and now - began >= seconds:
            return
        if rate is not None:
            wait = began + shift + number / rate - now
            if wait > 0:
                sleep(wait)
            elif -wait > _MOST_BEHIND_S:
                # who was held up does not make up for it in one burst
                shift -= wait
        yield number
        number += 1
