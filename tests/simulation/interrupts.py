"""Where a worker can be held up: before and after everything that it does to the world."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from mesh_events.errors import InfrastructureError

Result = TypeVar("Result")


class DiedError(BaseException):
    """As abrupt as a kill: nothing in the worker may catch it."""


class Fault(Enum):
    """What happens at the place where a worker is interrupted."""

    CRASH_BEFORE = "the process dies, and nothing was done"
    CRASH_AFTER = "the process dies, and it was done"
    CRASH_LATE = "the process dies, and it is done later"
    PAUSE = "the whole process stands still while others go on"
    REPLACED = "the whole process stands still, and another worker takes over"
    YIELD = "this thread stands still while the rest of the process and others go on"
    REFUSED = "no answer, and nothing was done"
    UNHEARD = "no answer, but it was done"
    LATE = "no answer, and it is done later"


STANDSTILLS = (Fault.PAUSE, Fault.REPLACED, Fault.YIELD)


@dataclass
class Interrupt:
    """A fault that waits for the `countdown`-th place from now whose name begins with `at`.

    `length` is how many acts go by where something stands still.
    """

    fault: Fault
    countdown: int
    length: int
    at: str = ""


class Interrupts:
    """The interrupts of one worker process.

    Args:
        meanwhile: lets `length` acts happen while this worker, or only its thread, stands still.
        later: takes what is done at some later time.
    """

    def __init__(
        self, meanwhile: Callable[[Fault, int], None], later: Callable[[Callable[[], object]], None]
    ) -> None:
        self._meanwhile, self._later = meanwhile, later
        self.next: Interrupt | None = None
        self.dead = False

    def effect(self, what: str, do: Callable[[], Result]) -> Result:
        """Do something to the world, unless an interrupt says otherwise."""
        fault = self._due(what)
        if fault in (Fault.CRASH_LATE, Fault.LATE):
            self._later(do)
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_LATE):
            self.die(what)
        if fault in (Fault.REFUSED, Fault.LATE):
            raise InfrastructureError(f"{what}: no answer", retriable=True)
        done = do()
        if fault is Fault.CRASH_AFTER:
            self.die(what)
        if fault is Fault.UNHEARD:
            raise InfrastructureError(f"{what}: no answer", retriable=True)
        return done

    def place(self, what: str) -> None:
        """A named place between two effects."""
        if self._due(what) in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_LATE):
            self.die(what)

    def die(self, what: str) -> None:
        """This process is gone."""
        self.dead = True
        raise DiedError(what)

    def _due(self, what: str) -> Fault | None:
        """The fault that is due here; a pause happens at once."""
        if self.dead:
            raise DiedError("it was dead already")
        interrupt = self.next
        if interrupt is None or not what.startswith(interrupt.at):
            return None
        interrupt.countdown -= 1
        if interrupt.countdown > 0:
            return None
        self.next = None
        if interrupt.fault in STANDSTILLS:
            self._meanwhile(interrupt.fault, interrupt.length)
            if self.dead:
                raise DiedError("killed while it stood still")
            return None
        return interrupt.fault
