"""A limit on what may hang for good: the process is ended, and whoever keeps it starts it again."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def limited(seconds: float, code: int, tell: Callable[[], None]) -> Iterator[None]:
    """End the process where the block takes longer.

    Args:
        seconds: how long it may take.
        code: the exit code then.
        tell: called before the end, in another thread.
    """

    def end() -> None:
        try:
            tell()
        finally:
            # no handler may run: the thread that would run it is the one that hangs
            os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
