"""Time as the log in memory has it, and clocks that are wrong: the broker's and the workers'."""

from mesh_events.record import Record
from projections.image import TOLERANCE_MS
from tests.memory_log import MemoryLog


class ClockedLog(MemoryLog):
    """A log on a broker whose clock may be wrong; `now` is the right time, ms.

    `off` is how far the broker's clock is ahead of it, ms. `moments` holds the right time at which
    each record came.
    """

    def __init__(self) -> None:
        super().__init__(founded=False)
        self.off = 0
        self.moments: dict[int, int] = {}

    def put(self, record: Record, *, time: int | None = None) -> int:
        """Append any bytes, at the time that the broker believes it is."""
        moment = self.now
        offset = super().put(record, time=moment + self.off if time is None else time)
        self.moments[offset] = moment
        return offset


class SimClock:
    """Stands in for the module `time` where the mesh's own code asks for it.

    `off` is how far the workers' clocks are ahead of the right time, ms; their monotonic clocks are
    right. `agreed` is the most by which broker and workers were ever ahead together, ms: two clocks
    that agree are believed.
    """

    CLOCK_BOOTTIME = 7

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, log: ClockedLog | None) -> None:
        """All clocks are right, as of the time of the log."""
        self.log, self.off, self.agreed = log, 0, 0

    def set(self, broker: int, workers: int) -> None:
        """Set the clocks: so many ms ahead of the right time."""
        assert self.log is not None
        self.log.off, self.off = broker, workers
        self.agreed = max(self.agreed, min(broker, workers))

    @property
    def deceived(self) -> bool:
        """Whether broker and workers agree now on a time that is wrong."""
        assert self.log is not None
        return min(abs(self.off), abs(self.log.off)) > TOLERANCE_MS

    def time(self) -> float:
        """Seconds since 1970 by the workers' clocks."""
        return self.monotonic() + self.off / 1000

    def monotonic(self) -> float:
        """Seconds that only go forward: the right time."""
        return self.log.now / 1000 if self.log else 0.0

    def clock_gettime(self, _: int) -> float:
        """The same."""
        return self.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass; at least a little."""
        if self.log is not None:
            self.log.now += max(1, round(seconds * 1000))
