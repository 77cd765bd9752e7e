"""Time as the log on paper has it: it goes on with every record, and when somebody sleeps."""

from tests.paper_log import PaperLog


class SimClock:
    """Stands in for the module `time` where the mesh's own code asks for it."""

    def __init__(self) -> None:
        self.log: PaperLog | None = None

    def time(self) -> float:
        """Seconds since 1970."""
        return self.log.now / 1000 if self.log else 0.0

    monotonic = time
    CLOCK_BOOTTIME = 7

    def clock_gettime(self, _: int) -> float:
        """The same, whichever clock is asked."""
        return self.time()

    def sleep(self, seconds: float) -> None:
        """Let time pass; at least a little."""
        if self.log is not None:
            self.log.now += max(1, round(seconds * 1000))
